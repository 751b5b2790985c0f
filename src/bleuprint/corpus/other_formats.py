"""Formats that new-corpus does not read, and the commands that turn them into two text files."""

import csv
import json
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError

# How pandas reads a table, by the end of the file's name; `f` is the file.
_READERS = {
    ".csv": "p.read_csv(f, dtype=str, keep_default_na=False)",
    ".jsonl": "p.json_normalize([json.loads(x) for x in open(f, encoding='utf-8')])",
    ".ndjson": "p.json_normalize([json.loads(x) for x in open(f, encoding='utf-8')])",
    ".json": "p.json_normalize(json.load(open(f, encoding='utf-8')){key})",
    ".parquet": "p.json_normalize(p.read_parquet(f).to_dict('records'))",
}
# A column at a time, to FILE.COLUMN, each text in one line.
_PROGRAM = (
    "import json, sys, pandas as p; f, *columns = sys.argv[1:]; t = {reader}; "
    "[open(f'{{f}}.{{c.rpartition(\".\")[2]}}', 'w', encoding='utf-8')"
    ".writelines(' '.join(str(s).split()) + '\\n' for s in t[c]) for c in columns]"
)
# Two files of keys and texts, as of translations of a program: the texts of the keys in both.
_BY_KEY = (
    "import json, sys; files = sys.argv[1:]; "
    "flat = lambda v, k=(): {k: v} if isinstance(v, str) else {a: b for n, w in "
    "(v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ()) "
    "for a, b in flat(w, (*k, n)).items()}; "
    "texts = [flat(json.load(open(f, encoding='utf-8'))) for f in files]; "
    "[open(f + '.txt', 'w', encoding='utf-8').writelines(' '.join(t[k].split()) + '\\n' "
    "for k in texts[0] if k in texts[1]) for f, t in zip(files, texts)]"
)
_TOOLKIT = "Run: pip install translate-toolkit, then "
# Other formats, and what a user does with them; {file} is the file's name for a shell.
_COMMANDS = {
    ".zst": "Run: zstd -d {file}",
    ".7z": "Run: 7z x {file} -oinputs",
    ".rar": "Run: unrar x {file} inputs/",
    ".tar": "Run: tar xf {file} -C inputs",
    ".tar.gz": "Run: tar xf {file} -C inputs",
    ".tar.bz2": "Run: tar xf {file} -C inputs",
    ".tar.xz": "Run: tar xf {file} -C inputs",
    ".tgz": "Run: tar xf {file} -C inputs",
    ".po": _TOOLKIT + "po2tmx -l CODE {file} {stem}.tmx (CODE: the language of the translations)",
    ".xlf": _TOOLKIT + "xliff2po {file} {stem}.po and po2tmx -l CODE {stem}.po {stem}.tmx",
    ".xliff": _TOOLKIT + "xliff2po {file} {stem}.po and po2tmx -l CODE {stem}.po {stem}.tmx",
    ".xlsx": "Save it as text separated by tabs, in UTF-8, with the end .tsv",
    ".ods": "Save it as text separated by tabs, in UTF-8, with the end .tsv",
}
# Members of an archive, and columns, that a message lists.
_MOST_NAMED = 6
# Programs that decompress a file to standard output would need another name for it.
_ZIP = "python -m zipfile -e {file} inputs"


def way_on(files: Sequence[Path]) -> str | None:
    """Return what to do with files in a format that is not read here.

    Returns:
        A message that begins with a file's name and ends in a command to type; None for files in
        other formats, such as plain text.

    Raises:
        UserError: a file is damaged, or has nothing that the command could take.
    """
    if len(files) == 2 and all(path.name.lower().endswith(".json") for path in files):
        names = " ".join(shlex.quote(str(path)) for path in files)
        return (
            f"{files[0]} and {files[1]}: .json files are not read. This command writes the texts "
            f"of the keys that both have to two text files, FILE.txt: "
            f"python -c {_quoted(_BY_KEY)} {names}"
        )
    for path in files:
        if way := _way_of(path):
            return f"{path}: {way}"
    return None


def _way_of(path: Path) -> str | None:
    """What to do with a file in another format."""
    name = path.name.lower()
    file = shlex.quote(str(path))
    if name.endswith(".zip"):
        return _zip_way(path, file)
    for end in _READERS:
        if name.endswith(end):
            return _table_way(path, file, end)
    for end, command in _COMMANDS.items():
        if name.endswith(end):
            stem = shlex.quote(str(path)[: -len(end)])
            return f"{end} files are not read. {command.format(file=file, stem=stem)}"
    return None


def _zip_way(path: Path, file: str) -> str:
    """What to do with a .zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.namelist() if not each.endswith("/")]
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: damaged, or not a .zip archive: {error}") from None
    return (
        f".zip archives are not read. This one contains {_listed(members)}. "
        f"Unpack it, then name its files: {_ZIP.format(file=file)}"
    )


def _table_way(path: Path, file: str, end: str) -> str:
    """What to do with a table whose columns are texts."""
    table = _table(path, end)
    columns = table.columns
    if len(columns) < 2:
        raise UserError(
            f"{path}: {end} files are not read, and no two columns of text were found in this one. "
            "Make two text files with equally many lines, or a .tsv file"
        )
    reader = _READERS[end].format(key=f"[{table.key!r}]" if table.key else "")
    program = _PROGRAM.format(reader=reader)
    which = "" if len(columns) == 2 else f". Its columns are {_listed(columns)}: name two of them"
    names = " ".join(map(shlex.quote, columns[:2]))
    return (
        f"{end} files are not read. This command writes two text files, {path}.COLUMN"
        f"{which}: python -c {_quoted(program)} {file} {names}"
    )


def _quoted(program: str) -> str:
    """A program without single quotes at the shell's level, in double quotes."""
    escaped = program.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


@dataclass(frozen=True)
class _Table:
    """The columns with text of a file of records; those of records within records have a dot.

    `key`: where the records are in a file that is one object.
    """

    columns: list[str]
    key: str = ""


def _table(path: Path, end: str) -> _Table:
    """The columns of a file of records; raises UserError if it is damaged."""
    try:
        if end == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return _Table(next(csv.reader(file), []))
        if end == ".parquet":
            from pyarrow.parquet import read_schema

            return _Table(_of_schema(read_schema(path)))
        with path.open(encoding="utf-8-sig") as file:
            content = json.load(file) if end == ".json" else [json.loads(file.readline())]
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UserError(f"{path}: not a sound {end} file: {error}") from None
    if isinstance(content, dict):
        for key, value in content.items():
            if _is_records(value):
                return _Table(list(_text_keys(value[0])), key)
    return _Table(list(_text_keys(content[0])) if _is_records(content) else [])


def _is_records(value: Any) -> bool:
    """Whether a value of JSON is a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _of_schema(fields: Any, before: str = "") -> list[str]:
    """The names of the fields of text in a schema of Arrow."""
    names = []
    for field in fields:
        name = f"{before}{field.name}"
        if field.type.num_fields:
            children = [field.type.field(place) for place in range(field.type.num_fields)]
            names += _of_schema(children, f"{name}.")
        elif str(field.type) in ("string", "large_string", "string_view"):
            names.append(name)
    return names


def _text_keys(record: dict[str, Any], before: str = "") -> Iterator[str]:
    """The keys of text in a record; those of records within it have a dot."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _text_keys(value, f"{before}{key}.")
        elif isinstance(value, str):
            yield f"{before}{key}"


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown or "nothing"
