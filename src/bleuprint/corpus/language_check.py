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
from bleuprint.text.language_codes import language_code
from bleuprint.text.parallel import Pair

# The number of pairs whose languages are identified.
_IDENTIFIED_PAIRS = 200
# The share above which pairs count as most of the text.
_MAJORITY = 0.5
# A sentence may be in a language unless another one is this many times as likely. It is the value
# that the entry of a new corpus has in its filter.
_MIN_ODDS = 10.0


def check_languages(
    files: Sequence[Path], user_text: OwnText, sample: Sequence[Pair], has_given_languages: bool
) -> str:
    """Check that a user's files are parallel text in the languages that they should be in.

    Args:
        files: The source file and the target file, or one file with both sides.
        user_text: The settings of the text in these files, among them its two languages.
        sample: Some of its sentence pairs.
        has_given_languages: Whether the user named the languages; otherwise, file names gave them.

    Returns:
        A note for the user if most pairs seem to be in other languages; otherwise an empty string.

    Raises:
        UserError: No pair has text on both sides; or in most pairs, the target repeats the source,
            or source and target are exchanged.
    """
    names = join_with_and(files)
    pairs = _first_full_pairs(sample)
    if not pairs:
        raise UserError(
            f"{names}: no pair has text on both sides. Line n of the target must be the "
            "translation of line n of the source"
        )
    if _share_of_copies(pairs) > _MAJORITY:
        raise UserError(
            f"{names}: source and target are the same text in most pairs. The target must be the "
            "translation of the source"
        )
    language_codes = set(map(language_code, user_text.languages))
    unknown_languages = sorted(language_codes - set(LanguageId.known_languages))
    if unknown_languages:
        # Text in these languages cannot be identified, so the check ends here.
        print_message(
            f"the filter language_id does not know {join_with_and(unknown_languages)}, so the "
            "languages of the text are not checked",
            "note",
        )
        return ""
    return _check_identified_languages(names, user_text, pairs, has_given_languages)


def _check_identified_languages(
    names: str, user_text: OwnText, pairs: Sequence[Pair], has_given_languages: bool
) -> str:
    """Identify the languages of some sentence pairs, and compare them with the settings.

    Args:
        names: The names of the user's files, for messages.
        user_text: The settings of the text, among them its two languages.
        pairs: Some of its sentence pairs.
        has_given_languages: Whether the user named the languages; otherwise, file names gave them.

    Returns:
        A note for the user if most pairs seem to be in other languages; otherwise an empty string.

    Raises:
        UserError: In most pairs, source and target are exchanged.
    """
    source, target = user_text.languages
    share = _share_in_languages(pairs, source, target)
    exchanged_share = _share_in_languages(pairs, source=target, target=source)
    # Short sentences may fit both orders, so exchanged pairs must also be the more frequent ones.
    if exchanged_share > share and exchanged_share > _MAJORITY:
        raise UserError(
            f"{names}: {exchanged_share:.0%} of the pairs are {target} and {source}, not {source} "
            f"and {target}. {_advice_to_exchange(user_text, has_given_languages)}"
        )
    if share >= _MAJORITY:
        return ""
    note = f"{names}: {share:.0%} of the pairs look like {source} and {target}. Look at the files"
    if has_given_languages:
        return note
    return f"{note}, or name the languages: --languages SOURCE TARGET"


def _first_full_pairs(sample: Sequence[Pair]) -> list[Pair]:
    """Return the first pairs with text on both sides, up to the number that is worth checking."""
    full_pairs = [pair for pair in sample if pair.source.strip() and pair.target.strip()]
    return full_pairs[:_IDENTIFIED_PAIRS]


def _share_of_copies(pairs: Sequence[Pair]) -> float:
    """Return the share of sentence pairs whose target is the same text as the source."""
    copies = [pair for pair in pairs if pair.source == pair.target]
    return len(copies) / len(pairs)


def _share_in_languages(pairs: Sequence[Pair], source: str, target: str) -> float:
    """Return the share of sentence pairs that seem to be in a source and a target language.

    Args:
        pairs: Sentence pairs, at least one.
        source: Code of the language in which the sources should be, such as `de`.
        target: Code of the language in which the targets should be.
    """
    # A sentence passes unless another language is ten times as likely: the language of a short
    # sentence is often unclear.
    language_check = LanguageId(min_odds=_MIN_ODDS)
    source_code = language_code(source)
    target_code = language_code(target)
    passing_pairs = 0
    for pair in pairs:
        is_in_source_language = language_check.passes(pair.source, source_code)
        if is_in_source_language and language_check.passes(pair.target, target_code):
            passing_pairs += 1
    return passing_pairs / len(pairs)


def _advice_to_exchange(user_text: OwnText, has_given_languages: bool) -> str:
    """Return what the user should do if source and target are in each other's language.

    Args:
        user_text: The settings of the text, with its two languages in the wrong order.
        has_given_languages: Whether the user named the languages; otherwise, file names gave them.
    """
    source, target = user_text.languages
    if user_text.text.columns:
        # The text is a table with a column for each language.
        exchanged_columns = []
        for column in reversed(user_text.text.columns):
            exchanged_columns.append(shlex.quote(str(column)))
        return (
            f"To exchange the columns, add: --columns {' '.join(exchanged_columns)} "
            f"--languages {source} {target}"
        )
    if user_text.text.format == "tmx":
        # TMX, the format of translation memories, marks each sentence with its language.
        return f"In the file, exchange the two language codes {source} and {target}"
    if user_text.text.format == "moses":
        # The names of the files in an archive say their languages.
        return "Unpack the archive, exchange the names of its two files, and name both"
    if has_given_languages:
        return f"Name the two files in the other order, or use: --languages {target} {source}"
    return f"Exchange the names of the files, or add: --languages {target} {source}"
