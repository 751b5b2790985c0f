"""Files of a user in inputs/: their format, their languages, and what is wrong with them."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.archive import open_member
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import not_a_file
from bleuprint.runtime.streams import shown
from bleuprint.text.parallel import Pair

# Pairs whose languages are identified, and the share that is most of them.
_IDENTIFIED, _MOST = 200, 0.5
# Lines of a table by which its columns of text are found.
_LOOKED_AT = 1000


def format_of(files: Sequence[Path]) -> Literal["plain", "tsv", "tmx"]:
    """Two files are plain; one is what its name says. Raises UserError."""
    if len(files) == 2:
        return "plain"
    kinds = {suffix.lower() for suffix in files[0].suffixes} & {".tsv", ".tmx"}
    if len(files) > 2 or not kinds:
        names = ", ".join(map(str, files))
        raise UserError(f"{names}: name two files, source and target, or one .tsv or .tmx file")
    return "tsv" if ".tsv" in kinds else "tmx"


def text_of(files: Sequence[Path]) -> Text:
    """The settings of files that exist; raises UserError."""
    kind = format_of(files)
    for path in files:
        if not path.is_file():
            raise UserError(f"{path}: {not_a_file(path)}; name a text file below inputs/")
        if str(path) != str(path).encode(errors="replace").decode():
            raise UserError(f"{shown(str(path))}: its name is not UTF-8: rename it")
    if len(files) == 2 and files[0].samefile(files[1]):
        raise UserError(f"{files[0]} is given twice: name the source file, then the target file")
    try:
        sides = [File(path=str(path)) for path in files]
    except ValueError as error:
        raise UserError(f"{error}: copy both there") from None
    if kind == "plain":
        return Text("", source=sides[0], target=sides[1])
    return Text("", kind, both=sides[0], columns=_columns(files[0]) if kind == "tsv" else None)


def _columns(path: Path) -> tuple[int, int]:
    """The first two columns of a table in most of whose cells are words; else 1 and 2."""
    with open_member(path, str(path), ()) as stream:
        lines = [line.decode(errors="replace").split("\t") for line in islice(stream, _LOOKED_AT)]
    width = min(map(len, lines), default=0)
    words = [sum(any(map(str.isalpha, line[at])) for line in lines) for at in range(width)]
    found = [at for at, count in enumerate(words, 1) if count > _MOST * len(lines)]
    return (found[0], found[1]) if len(found) > 1 else (1, 2)


def languages_of(files: Sequence[Path]) -> list[str]:
    """The last parts of files' names that are languages: de of a.en-de.de or a-de.txt.

    Of one file its last two. Raises UserError.
    """
    found = []
    for path in files:
        parts = re.split(r"[^A-Za-z]+", path.name)[1:]
        known = [part for part in parts if part in LanguageId.known_languages]
        if len(known) < (wanted := 3 - len(files)):
            raise UserError(f"{path}: unknown language: name both, such as: --languages de en")
        found += known[-wanted:]
    if found[0] == found[1]:
        raise UserError(
            f"{' and '.join(map(str, files))}: both names end in {found[0]}: name the languages, "
            "such as: --languages de en"
        )
    return found


def check_languages(names: str, languages: Sequence[str], sample: Sequence[Pair]) -> None:
    """Raise UserError if most pairs are the same text twice, or in the other order of languages."""
    some = [pair for pair in sample if all(map(str.strip, pair))][:_IDENTIFIED]
    if not some:
        raise UserError(f"{names}: no pair has text on both sides")
    if sum(source == target for source, target in some) > _MOST * len(some):
        raise UserError(f"{names}: the same text on both sides, which is no translation")
    if unknown := sorted({*languages} - {*LanguageId.known_languages}):
        say(f"{' and '.join(unknown)}: not a language that the filter language_id knows", "note")
        return
    check = LanguageId(likelier=10.0)

    def share(source: str, target: str) -> float:
        passed = (check.passes(a, source) and check.passes(b, target) for a, b in some)
        return sum(passed) / len(some)

    source, target = languages
    right, swapped = share(source, target), share(target, source)
    if right < swapped and swapped > _MOST:
        raise UserError(
            f"{names}: {swapped:.0%} of the pairs are {target} and {source}, not {source} and "
            f"{target}: rename the files, or add: --languages {target} {source}"
        )
    if right < _MOST:
        say(
            f"{names}: {right:.0%} of the pairs look like {source} and {target}: look at the "
            "files, or name the languages by --languages; if they are right, leave out the filter "
            "language_id, which drops the others",
            "note",
        )
