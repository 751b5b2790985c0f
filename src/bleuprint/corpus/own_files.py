"""Files of a user in inputs/: their format, their languages, and what is wrong with them."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Literal

from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.archive import open_member
from bleuprint.corpus.download.formats.tmx import count_code_sets, listed_codes, units_by_code
from bleuprint.corpus.other_formats import way_on
from bleuprint.corpus.table_columns import choose_columns
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import describe_non_file, path_on_disk
from bleuprint.runtime.streams import printable
from bleuprint.runtime.wording import counted, join_with_and
from bleuprint.text.language_codes import (
    includes,
    is_listed,
    language_named,
    language_of,
    normalized_tag,
    primary_subtag,
)
from bleuprint.text.parallel import Pair

# Pairs whose languages are identified, and the share that is most of them.
_IDENTIFIED, _MOST = 200, 0.5
_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")

Languages = tuple[str, str]


@dataclass(frozen=True)
class OwnText:
    """Parallel text in files of a user.

    `text`: the settings of the files. `languages`: the codes of source and target. `about`: which
    columns or language codes were chosen, a line each.
    """

    text: Text
    languages: Languages
    about: tuple[str, ...] = ()


def own_text(
    files: Sequence[Path], languages: Sequence[str] | None, columns: Sequence[str] | None
) -> OwnText:
    """Find out what is in files: their format, columns and languages.

    Args:
        files: source and target, or one file with both.
        languages: the codes of source and target; by default those in the names of the files, in
            the header of a table, or the only two of a translation memory.
        columns: the columns of a table, by numbers or names; by default those with text.

    Raises:
        UserError: a file is missing, not below inputs/ or in another format, or the languages or
            columns are not clear.
    """
    if len(files) > 2:
        raise _wrong_files(files)
    sides = _checked_files(files)
    kind = format_of([path_on_disk(path) for path in files])
    if columns and kind != "tsv":
        raise UserError(f"{files[0]}: --columns is for a .tsv file")
    given = [_language_given(code) for code in languages] if languages else None
    if kind == "plain":
        found = given or languages_of(files)
        pair = _two_languages(files, found[0], found[1])
        return OwnText(Text("", source=sides[0], target=sides[1]), pair)
    path = files[0]
    if kind == "tsv":
        return _table(path, sides[0], given or _languages_in_name(path), columns)
    return _memory(path, sides[0], languages)


def format_of(files: Sequence[Path]) -> Literal["plain", "tsv", "tmx"]:
    """Return the format of two files, or of one by its name.

    Raises:
        UserError: the format is not read here; the message says what to do.
    """
    if way := way_on(files):
        raise UserError(way)
    if len(files) == 2:
        return "plain"
    kinds = {suffix.lower() for suffix in files[0].suffixes} & {".tsv", ".tmx"}
    if not kinds:
        raise _wrong_files(files)
    return "tsv" if ".tsv" in kinds else "tmx"


def _wrong_files(files: Sequence[Path]) -> UserError:
    """The error of one file in another format, or of more than two files."""
    names = ", ".join(map(str, files))
    return UserError(f"{names}: name two files, source and target, or one .tsv or .tmx file")


def languages_of(files: Sequence[Path]) -> list[str]:
    """Return the languages in the names of two files: de of a.en-de.de or a-de.txt.

    Raises:
        UserError: a name says no language, or both say the same.
    """
    found = []
    for path in files:
        known = _languages_in(path)
        if not known:
            example = _example_with([code for file in files for code in _languages_in(file)])
            raise UserError(f"{path}: unknown language: name both, such as: --languages {example}")
        found.append(known[-1])
    if found[0] == found[1]:
        raise UserError(
            f"{join_with_and(files)}: both names end in {found[0]}: name the languages, "
            f"such as: --languages {_example_with(found)}"
        )
    return found


def check_languages(
    files: Sequence[Path], own: OwnText, sample: Sequence[Pair], are_given: bool
) -> str:
    """Check that a text is in its languages.

    Args:
        files: source and target, or one file with both.
        own: what is in the files.
        sample: some of the pairs.
        are_given: whether the user named the languages.

    Returns:
        A note if most pairs seem to be in other languages; otherwise an empty string.

    Raises:
        UserError: most pairs are the same text twice, or in the other order of languages.
    """
    names = join_with_and(files)
    some = [pair for pair in sample if all(map(str.strip, pair))][:_IDENTIFIED]
    if not some:
        raise UserError(
            f"{names}: no pair has text on both sides; line n of the target must be "
            "the translation of line n of the source"
        )
    if sum(source == target for source, target in some) > _MOST * len(some):
        raise UserError(
            f"{names}: source and target are the same text in most pairs; the target must be the "
            "translation of the source"
        )
    if unknown := sorted({*own.languages} - {*LanguageId.known_languages}):
        print_message(
            f"{join_with_and(unknown)}: not a language that the filter language_id knows", "note"
        )
        return ""
    source, target = own.languages
    right = _share_in(some, source, target)
    swapped = _share_in(some, target, source)
    if right < swapped and swapped > _MOST:
        raise UserError(
            f"{names}: {swapped:.0%} of the pairs are {target} and {source}, not {source} and "
            f"{target}. {_way_to_exchange(own, are_given)}"
        )
    if right >= _MOST:
        return ""
    note = f"{names}: {right:.0%} of the pairs look like {source} and {target}. Look at the files"
    if are_given:
        return note
    return f"{note}, or name the languages: --languages SOURCE TARGET"


def _way_to_exchange(own: OwnText, are_given: bool) -> str:
    """What the user does if the source is in the target language, and the target in the source."""
    source, target = own.languages
    if own.text.columns:
        columns = [shlex.quote(str(column)) for column in reversed(own.text.columns)]
        return (
            f"To exchange the columns, add: --columns {' '.join(columns)} "
            f"--languages {source} {target}"
        )
    if own.text.format == "tmx":
        return f"In the file, exchange the two language codes {source} and {target}"
    if are_given:
        return f"Name the two files in the other order, or use: --languages {target} {source}"
    return f"Exchange the names of the files, or add: --languages {target} {source}"


def _share_in(pairs: Sequence[Pair], source: str, target: str) -> float:
    """The share of pairs that may be in these languages."""
    check = LanguageId(min_odds=10.0)
    passed = 0
    for pair in pairs:
        passed += check.passes(pair.source, source) and check.passes(pair.target, target)
    return passed / len(pairs)


def _checked_files(files: Sequence[Path]) -> list[File]:
    """The settings of files that exist below inputs/."""
    for path in files:
        if not path_on_disk(path).is_file():
            raise UserError(f"{path}: {describe_non_file(path)}; name a text file below inputs/")
        if str(path) != str(path).encode(errors="replace").decode():
            raise UserError(f"{printable(str(path))}: its name is not UTF-8: rename it")
    if len(files) == 2 and path_on_disk(files[0]).samefile(path_on_disk(files[1])):
        raise UserError(f"{files[0]} is given twice: name the source file, then the target file")
    try:
        return [File(path=str(path_on_disk(path))) for path in files]
    except ValueError as error:
        raise UserError(f"{error}: copy both there") from None


def _table(
    path: Path, file: File, languages: Sequence[str] | None, columns: Sequence[str] | None
) -> OwnText:
    """The text in two columns of a .tsv file."""
    chosen = choose_columns(path_on_disk(path), columns, languages)
    found = languages or chosen.languages
    if found is None:
        example = _example_with(_languages_in(path))
        raise UserError(f"{path}: unknown languages: name both, such as: --languages {example}")
    text = Text("", "tsv", both=file, columns=chosen.columns)
    return OwnText(text, _two_languages([path], found[0], found[1]), (chosen.about,))


def _memory(path: Path, file: File, given: Sequence[str] | None) -> OwnText:
    """The text in two languages, or variants of them, of a .tmx file."""
    with open_member(path_on_disk(path), str(path), ()) as stream:
        code_sets = count_code_sets(stream, str(path))
    codes = units_by_code(code_sets)
    if not codes:
        raise UserError(f"{path}: no unit has text")
    listed = f"The language codes in this file are {listed_codes(codes)}"
    in_file = [*dict.fromkeys(map(language_of, codes))]
    wanted = list(given or _languages_in_name(path) or ())
    if not given and not {*wanted} <= {*in_file}:
        wanted = []
    if not wanted and len(in_file) == 2:
        wanted = in_file
    if not wanted and len(in_file) == 1:
        raise UserError(
            f"{path}: all text is in {in_file[0]}, but a corpus needs two languages. {listed}"
        )
    if not wanted:
        example = " ".join(_example_languages(code_sets))
        raise UserError(f"{path}: name two languages, such as: --languages {example}. {listed}")
    about = [f"{path}: units by language code: {listed_codes(codes)}"]
    for tag in wanted:
        if not any(_is_variant(tag, code) for code in codes):
            raise UserError(f"{path}: no unit is in {tag}. {listed}")
    if note := _note_on_variants(wanted, code_sets):
        print_message(f"{path}: {note}", "note")
    pair = _two_languages([path], language_of(wanted[0]), language_of(wanted[1]))
    has_variant = any(normalized_tag(tag) != language_of(tag) for tag in wanted)
    tags = (wanted[0], wanted[1]) if has_variant else None
    return OwnText(Text("", "tmx", both=file, languages=tags), pair, tuple(about))


def _example_languages(code_sets: Counter[tuple[str, ...]]) -> tuple[str, str]:
    """The two languages that most units have, as the file writes their codes."""
    written: dict[str, str] = {}
    for code in units_by_code(code_sets):
        written.setdefault(language_of(code), primary_subtag(code))
    units_with: Counter[tuple[str, str]] = Counter()
    for codes, units in code_sets.items():
        languages = dict.fromkeys(map(language_of, codes))
        for source, target in combinations(languages, 2):
            units_with[source, target] += units
    if not units_with:
        first, second, *_ = written.values()
        return first, second
    source, target = max(units_with, key=lambda pair: units_with[pair])
    return written[source], written[target]


def _is_variant(tag: str, code: str) -> bool:
    """Whether the code of a file is `tag`, or a variant of it."""
    return includes(normalized_tag(tag), normalized_tag(code))


def _note_on_variants(wanted: Sequence[str], code_sets: Counter[tuple[str, ...]]) -> str | None:
    """A note if languages mix variants, with the languages that take one variant alone."""
    mixed = []
    has_several = False
    choices = []
    for tag in wanted:
        variants, is_several = _variants_of(tag, code_sets)
        regional = [code for code in variants if normalized_tag(code) != normalized_tag(tag)]
        if len(regional) < 2 and not is_several:
            choices.append([tag])
            continue
        mixed.append(f"{tag} mixes {listed_codes(variants)}")
        has_several = has_several or is_several
        choices.append(regional)
    if not mixed:
        return None
    note = "; ".join(mixed)
    if has_several:
        note += ". If a unit has several variants of a language, the first is taken"
    pairs: Counter[tuple[str, ...]] = Counter()
    for source, target in product(*choices):
        for codes, units in code_sets.items():
            has_source = any(_is_variant(source, code) for code in codes)
            has_target = any(_is_variant(target, code) for code in codes)
            if has_source and has_target:
                pairs[source, target] += units
    if not pairs:
        return note
    [(chosen, remaining)] = pairs.most_common(1)
    left = counted(remaining, "pair")
    return f"{note}. One variant alone leaves {left}: --languages {' '.join(chosen)}"


def _variants_of(tag: str, code_sets: Counter[tuple[str, ...]]) -> tuple[Counter[str], bool]:
    """The variants of a language with their units, and whether a unit has several.

    Codes that are equal, such as `en-US` and `eng_us`, are one variant under its first code; a code
    without a region or script is the language itself.
    """
    written: dict[str, str] = {}
    units_with: Counter[str] = Counter()
    has_several = False
    for codes, units in code_sets.items():
        in_unit = {normalized_tag(code): code for code in codes if _is_variant(tag, code)}
        has_several = has_several or len(in_unit) > 1
        for variant, code in in_unit.items():
            first = variant if variant == language_of(code) else code
            units_with[written.setdefault(variant, first)] += units
    return units_with, has_several


def _language_given(code: str) -> str:
    """Our code of a language that the user names; raises UserError if it is no code."""
    if _CODE.fullmatch(code):
        return language_of(code)
    named = language_named(code)
    hint = f"{code} is {named}" if named else "use one such as de"
    raise UserError(f"--languages {code}: not a language code of two or three letters; {hint}")


def _two_languages(files: Sequence[Path], source: str, target: str) -> Languages:
    """Source and target; raises UserError if they are one language."""
    if source == target:
        raise UserError(
            f"{join_with_and(files)}: source and target are both {source}. For text in "
            f"one language, such as simplification, give the target a code for local use: "
            f"--languages {source} qaa"
        )
    return source, target


def _languages_in_name(path: Path) -> list[str] | None:
    """The last two languages in the name of one file; None if there are fewer."""
    known = _languages_in(path)
    return known[-2:] if len(known) > 1 else None


def _example_with(known: Sequence[str]) -> str:
    """Two languages for an example, with the known ones first."""
    defaults = ["de", "en"] if {*known} <= {"en"} else ["en"]
    source, target, *_ = dict.fromkeys([*known, *defaults])
    return f"{source} {target}"


def _languages_in(path: Path) -> list[str]:
    """The languages in the name of a file, without its first part."""
    parts = re.split(r"[^A-Za-z]+", path.name)[1:]
    found = []
    for part in parts:
        if part.islower() and is_listed(part):
            found.append(language_of(part))
        elif named := language_named(part):
            found.append(named)
    return found
