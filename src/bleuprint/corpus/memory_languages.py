"""Choose two languages of a translation memory, a .tmx file, or a regional variant of a language.

`choose_memory_languages` is the entry point. A unit of a translation memory is a sentence in
several languages. Each language has a code that may name a region or a script, such as en-GB: this
is a variant of the language.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download.download import open_file
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.download.formats.tmx import count_code_sets, listed_codes, units_by_code
from bleuprint.corpus.file_languages import (
    Languages,
    check_two_languages,
    languages_of_one_file,
)
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.wording import counted
from bleuprint.text.language_codes import (
    includes_tag,
    language_code,
    normalized_tag,
    primary_subtag,
)


@dataclass(frozen=True)
class MemoryLanguages:
    """The languages that are read from a translation memory.

    Attributes:
        languages: The codes of source and target, without regions.
        variants: The tags of source and target if one of them is a variant, such as
            ("en-GB", "de"); None to read all variants of both languages.
        about: A line for the user that lists the codes in the file.
    """

    languages: Languages
    variants: tuple[str, str] | None
    about: str


def choose_memory_languages(file: File, given_tags: Sequence[str] | None) -> MemoryLanguages:
    """Choose the source and the target language of a translation memory, and report the choice.

    A translation memory contains sentences in several languages, each with a code, such as `de` or
    `en-GB`. If a language is mixed from variants, such as `en-GB` and `en-US`, a note is printed.

    Args:
        file: The .tmx file.
        given_tags: The codes of source and target that the user gives. None to choose them: by the
            name of the file, such as news.de-en.tmx, or as the only two languages of the text.

    Raises:
        UserError: The file contains no text or only one language, or the choice is unclear.
    """
    memory = file.name
    with open_file(file, downloads_of_environment()) as stream:
        code_sets = count_code_sets(stream, memory)
    # A unit is a sentence in several languages.
    units_with_code = units_by_code(code_sets)
    if not units_with_code:
        raise UserError(f"{memory}: the translation memory contains no text")
    tags = _choose_tags(memory, given_tags, code_sets)
    for tag in tags:
        if not any(_is_variant(code, tag) for code in units_with_code):
            raise UserError(f"{memory}: no unit is in {tag}. {_list_codes(code_sets)}")
    note = _note_on_variants(tags, code_sets)
    if note:
        print_message(f"{memory}: {note}", "note")
    source_tag, target_tag = tags
    languages = check_two_languages([memory], language_code(source_tag), language_code(target_tag))
    # A code such as en-GB, in place of en, selects one variant of a language.
    has_variant = any(normalized_tag(tag) != language_code(tag) for tag in tags)
    return MemoryLanguages(
        languages=languages,
        variants=(source_tag, target_tag) if has_variant else None,
        about=f"{memory}: units by language code: {listed_codes(units_with_code)}",
    )


def _choose_tags(
    memory: str, given_tags: Sequence[str] | None, code_sets: Counter[tuple[str, ...]]
) -> tuple[str, str]:
    """Choose the language codes of source and target in a translation memory.

    They are the codes that the user gives; otherwise the last two languages in the name of the
    file, if the text is in both; otherwise the only two languages of the text.

    Args:
        memory: The name of the .tmx file.
        given_tags: The codes that the user gives, such as `de` and `en-GB`, or None.
        code_sets: The number of units (sentences in several languages) with each combination of
            language codes, such as {("de", "en"): 5, ("de",): 2}.

    Raises:
        UserError: The file contains only one language, or more than two to choose from.
    """
    if given_tags:
        source_tag, target_tag = given_tags
        return source_tag, target_tag
    file_languages = list(dict.fromkeys(map(language_code, units_by_code(code_sets))))
    languages_in_name = languages_of_one_file(Path(memory))
    if languages_in_name and set(languages_in_name) <= set(file_languages):
        return languages_in_name
    if len(file_languages) == 1:
        raise UserError(
            f"{memory}: all text is in {file_languages[0]}, but a corpus needs two languages. "
            f"{_list_codes(code_sets)}"
        )
    if len(file_languages) > 2:
        example = " ".join(_most_frequent_languages(code_sets))
        raise UserError(
            f"{memory}: the text is in more than two languages. Name two, such as: --languages "
            f"{example}. {_list_codes(code_sets)}"
        )
    source, target = file_languages
    return source, target


def _list_codes(code_sets: Counter[tuple[str, ...]]) -> str:
    """Return a sentence for messages that lists the language codes of a translation memory."""
    return f"The language codes in this file are {listed_codes(units_by_code(code_sets))}"


def _most_frequent_languages(code_sets: Counter[tuple[str, ...]]) -> tuple[str, str]:
    """Return the two languages that occur together most often, for an example in a message.

    Args:
        code_sets: The number of units (sentences in several languages) with each combination of
            language codes, such as {("de", "en"): 5, ("de",): 2}.

    Returns:
        The codes of both languages, as the file writes them.
    """
    # A file may write a language by several codes, such as en and eng. The first one is returned.
    code_of_language = dict[str, str]()
    for code in units_by_code(code_sets):
        code_of_language.setdefault(language_code(code), primary_subtag(code))
    units_with_both = Counter[tuple[str, str]]()
    for codes, unit_count in code_sets.items():
        unit_languages = dict.fromkeys(map(language_code, codes))
        for source, target in combinations(unit_languages, 2):
            units_with_both[source, target] += unit_count
    if not units_with_both:
        # Each unit is in a single language: return the first two languages of the file.
        first_code, second_code, *_ = code_of_language.values()
        return first_code, second_code
    [(most_frequent_pair, _)] = units_with_both.most_common(1)
    source, target = most_frequent_pair
    return code_of_language[source], code_of_language[target]


def _is_variant(code: str, tag: str) -> bool:
    """Return whether a language code of the file belongs to a wanted one: `en-GB` to `en`."""
    return includes_tag(normalized_tag(tag), normalized_tag(code))


@dataclass(frozen=True)
class _Variants:
    """The variants of one language in a translation memory.

    Attributes:
        units: The number of units with each variant, by its code in the file.
        has_unit_with_several: Whether a unit contains several variants of the language.
    """

    units: Counter[str]
    has_unit_with_several: bool


def _note_on_variants(tags: Sequence[str], code_sets: Counter[tuple[str, ...]]) -> str | None:
    """Return a note if source or target mixes variants of a language, such as en-GB and en-US.

    The note ends with the command-line options that choose a single variant on each side: those
    with which the most sentence pairs remain.

    Args:
        tags: The chosen codes of source and target, such as `de` and `en`.
        code_sets: The number of units (sentences in several languages) with each combination of
            language codes, such as {("de", "en"): 5, ("de",): 2}.

    Returns:
        The note; None if neither side mixes variants.
    """
    mixtures = []
    has_unit_with_several = False
    # For the source, then for the target: the codes that the user could choose.
    choices = []
    for tag in tags:
        variants = _find_variants(tag, code_sets)
        # Only codes with a region or script, such as en-GB, choose a variant. The code en does not.
        regional_codes = [
            code for code in variants.units if normalized_tag(code) != normalized_tag(tag)
        ]
        is_mixed = len(regional_codes) >= 2 or variants.has_unit_with_several
        if is_mixed:
            mixtures.append(f"{tag} mixes {listed_codes(variants.units)}")
            has_unit_with_several |= variants.has_unit_with_several
            choices.append(regional_codes)
        else:
            # This side needs no choice: its code stays as it is.
            choices.append([tag])
    if not mixtures:
        return None
    note = "; ".join(mixtures)
    if has_unit_with_several:
        note += ". If a unit has several variants of a language, the first is taken"
    source_choices, target_choices = choices
    unit_counts = _count_units_by_choice(source_choices, target_choices, code_sets)
    if not unit_counts:
        return note  # No unit contains a variant of the source and one of the target.
    [(best_choice, unit_count)] = unit_counts.most_common(1)
    return (
        f"{note}. One variant alone leaves {counted(unit_count, 'pair')}: "
        f"--languages {' '.join(best_choice)}"
    )


def _count_units_by_choice(
    source_variants: Sequence[str],
    target_variants: Sequence[str],
    code_sets: Counter[tuple[str, ...]],
) -> Counter[tuple[str, str]]:
    """Count how many sentence pairs a translation memory has for each choice of two variants.

    A result could be {("en-GB", "de"): 5, ("en-US", "de"): 7}.

    Args:
        source_variants: The codes to choose from for the source, such as `en-GB` and `en-US`.
        target_variants: The codes to choose from for the target.
        code_sets: The number of units (sentences in several languages) with each combination of
            language codes, such as {("de", "en"): 5, ("de",): 2}.

    Returns:
        The number of pairs by the codes of source and target; choices without pairs are missing.
    """
    unit_counts = Counter[tuple[str, str]]()
    for source_tag, target_tag in product(source_variants, target_variants):
        for codes, unit_count in code_sets.items():
            has_source = any(_is_variant(code, source_tag) for code in codes)
            has_target = any(_is_variant(code, target_tag) for code in codes)
            if has_source and has_target:
                unit_counts[source_tag, target_tag] += unit_count
    return unit_counts


def _find_variants(tag: str, code_sets: Counter[tuple[str, ...]]) -> _Variants:
    """Count in how many units a translation memory has text in each variant of a language.

    Codes with the same meaning, such as en-US and eng_us, are one variant, which is listed under
    the first of these codes. A code without a region or script, such as eng, is listed in its usual
    form, en.

    Args:
        tag: The code of the language, such as `en`.
        code_sets: The number of units (sentences in several languages) with each combination of
            language codes, such as {("de", "en"): 5, ("de",): 2}.
    """
    # The code under which each variant is listed, by its normalized code: {"en-us": "en-US"}.
    listed_code = dict[str, str]()
    units = Counter[str]()
    has_unit_with_several = False
    for codes, unit_count in code_sets.items():
        # The variants of this language in these units, as normalized codes, with the codes that
        # the units write.
        code_of_variant = {}
        for code in codes:
            if _is_variant(code, tag):
                code_of_variant[normalized_tag(code)] = code
        if len(code_of_variant) > 1:
            has_unit_with_several = True
        for variant, code in code_of_variant.items():
            if variant not in listed_code:
                has_region_or_script = variant != language_code(code)
                listed_code[variant] = code if has_region_or_script else variant
            units[listed_code[variant]] += unit_count
    return _Variants(units, has_unit_with_several)
