"""Check that a user's text is in the languages that it should be in, before an entry is written.

`check_languages` is the entry point of the command new-corpus.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from bleuprint.corpus.own_files import OwnText
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.parallel import Pair

# The number of pairs whose languages are identified.
_IDENTIFIED_PAIRS = 200
# The share above which pairs count as most of the text.
_MAJORITY = 0.5
# A sentence may be in a language unless another one is this many times as likely. It is the value
# that the entry of a new corpus has in its filter.
_MIN_ODDS = 10.0


def check_languages(
    files: Sequence[Path], user_text: OwnText, sample: Sequence[Pair], are_given: bool
) -> str:
    """Check that a text is in its languages.

    Args:
        files: The source file and the target file, or one file with both sides.
        user_text: The text, with its languages.
        sample: Some of its pairs.
        are_given: Whether the user named the languages.

    Returns:
        A note if most pairs seem to be in other languages; otherwise an empty string.

    Raises:
        UserError: No pair has two sides, or most pairs contain the same text twice or have the
            languages in the other order.
    """
    names = join_with_and(files)
    pairs = _first_full_pairs(sample)
    if not pairs:
        raise UserError(
            f"{names}: no pair has text on both sides; line n of the target must be "
            "the translation of line n of the source"
        )
    if _share_of_copies(pairs) > _MAJORITY:
        raise UserError(
            f"{names}: source and target are the same text in most pairs; the target must be the "
            "translation of the source"
        )
    unknown_languages = sorted(set(user_text.languages) - set(LanguageId.known_languages))
    if unknown_languages:
        # Text in these languages cannot be identified, so there is nothing more to check.
        print_message(
            f"{join_with_and(unknown_languages)}: not a language that the filter language_id knows",
            "note",
        )
        return ""
    source, target = user_text.languages
    share = _share_in_languages(pairs, source, target)
    exchanged_share = _share_in_languages(pairs, target, source)
    if exchanged_share > share and exchanged_share > _MAJORITY:
        raise UserError(
            f"{names}: {exchanged_share:.0%} of the pairs are {target} and {source}, not {source} "
            f"and {target}. {_advice_to_exchange(user_text, are_given)}"
        )
    if share >= _MAJORITY:
        return ""
    note = f"{names}: {share:.0%} of the pairs look like {source} and {target}. Look at the files"
    if are_given:
        return note
    return f"{note}, or name the languages: --languages SOURCE TARGET"


def _first_full_pairs(sample: Sequence[Pair]) -> list[Pair]:
    """Return the first pairs with text on both sides, as many as are identified."""
    full_pairs = [pair for pair in sample if pair.source.strip() and pair.target.strip()]
    return full_pairs[:_IDENTIFIED_PAIRS]


def _share_of_copies(pairs: Sequence[Pair]) -> float:
    """Return the share of pairs whose target is the same text as the source."""
    copies = [pair for pair in pairs if pair.source == pair.target]
    return len(copies) / len(pairs)


def _share_in_languages(pairs: Sequence[Pair], source: str, target: str) -> float:
    """Return the share of pairs that may be in two languages, one on each side."""
    check = LanguageId(min_odds=_MIN_ODDS)
    passing_pairs = 0
    for pair in pairs:
        if check.passes(pair.source, source) and check.passes(pair.target, target):
            passing_pairs += 1
    return passing_pairs / len(pairs)


def _advice_to_exchange(user_text: OwnText, are_given: bool) -> str:
    """Return what the user should do if source and target are in each other's language.

    Args:
        user_text: The text, with its languages in the wrong order.
        are_given: Whether the user named the languages.
    """
    source, target = user_text.languages
    if user_text.text.columns:
        columns = [shlex.quote(str(column)) for column in reversed(user_text.text.columns)]
        return (
            f"To exchange the columns, add: --columns {' '.join(columns)} "
            f"--languages {source} {target}"
        )
    if user_text.text.format == "tmx":
        return f"In the file, exchange the two language codes {source} and {target}"
    if are_given:
        return f"Name the two files in the other order, or use: --languages {target} {source}"
    return f"Exchange the names of the files, or add: --languages {target} {source}"
