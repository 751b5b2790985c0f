"""Tell the user how to turn files in other formats into two text files for new-corpus.

`advice_for_files` is the entry point. Its advice ends in a command to type, such as a short Python
program that reads a table with pandas.
"""

import csv
import json
import shlex
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first

# Python expressions that read a table with pandas, by suffix. In an expression, `p` is pandas and
# `f` is the path. `{key}` is empty, or an index such as ['data'] if a member of a JSON object
# contains the records.
_PANDAS_READERS = {
    ".csv": "p.read_csv(f, dtype=str, keep_default_na=False)",
    ".jsonl": "p.json_normalize([json.loads(x) for x in open(f, encoding='utf-8')])",
    ".ndjson": "p.json_normalize([json.loads(x) for x in open(f, encoding='utf-8')])",
    ".json": "p.json_normalize(json.load(open(f, encoding='utf-8')){key})",
    ".parquet": "p.json_normalize(p.read_parquet(f).to_dict('records'))",
}
# The program for a table: it writes each named column to FILE.COLUMN, one cell per line. White
# space in a cell, such as a line break, becomes one space.
_TABLE_PROGRAM = (
    "import json, sys, pandas as p; f, *columns = sys.argv[1:]; t = {reader}; "
    "[open(f'{{f}}.{{c.rpartition(\".\")[2]}}', 'w', encoding='utf-8')"
    ".writelines(' '.join(str(s).split()) + '\\n' for s in t[c]) for c in columns]"
)
# The program for two JSON files that map keys to texts, such as the message catalogs of an
# application. `flat` turns nested objects into one dictionary with tuples of keys. The program
# writes the texts of the keys that occur in both files, in the same order, to FILE.txt.
_JSON_PAIR_PROGRAM = (
    "import json, sys; files = sys.argv[1:]; "
    "flat = lambda v, k=(): {k: v} if isinstance(v, str) else {a: b for n, w in "
    "(v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, list) else ()) "
    "for a, b in flat(w, (*k, n)).items()}; "
    "texts = [flat(json.load(open(f, encoding='utf-8'))) for f in files]; "
    "[open(f + '.txt', 'w', encoding='utf-8').writelines(' '.join(t[k].split()) + '\\n' "
    "for k in texts[0] if k in texts[1]) for f, t in zip(files, texts)]"
)
_TOOLKIT = "Run: pip install translate-toolkit, then "
# Advice for formats that pandas does not read here, by suffix. {file} is the path, and {stem} is
# the path without its suffix; both are quoted for a shell.
_ADVICE = {
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
# The number of archive members or columns that a message lists.
_MAX_LISTED = 6
# Python's own unpacker, which every user of this program has.
_UNZIP = "python -m zipfile -e {file} inputs"


def advice_for_files(files: Sequence[Path]) -> str | None:
    """Tell a user how to convert files in formats that the command new-corpus does not read.

    Args:
        files: The files that the user named, such as data.csv.

    Returns:
        A message that begins with a path and ends in a command to type; None if no advice is
        needed or known, as for plain text.

    Raises:
        UserError: A file is damaged, or contains nothing that the command could extract.
    """
    if len(files) == 2 and all(path.name.lower().endswith(".json") for path in files):
        return _json_pair_advice(*files)
    for path in files:
        advice = _advice_for_file(path)
        if advice is not None:
            return f"{path}: {advice}"
    return None


def _json_pair_advice(source: Path, target: Path) -> str:
    """Tell a user how to convert two JSON files that map the same keys to texts in two languages.

    Applications store their messages in such files. The advice ends in a command to type.
    """
    quoted_paths = f"{shlex.quote(str(source))} {shlex.quote(str(target))}"
    return (
        f"{source} and {target}: .json files are not read. This command writes the texts "
        f"of the keys that both have to two text files, FILE.txt: "
        f"python -c {_in_double_quotes(_JSON_PAIR_PROGRAM)} {quoted_paths}"
    )


def _advice_for_file(path: Path) -> str | None:
    """Tell a user how to convert a file; None if no advice is needed or known for its format."""
    name = path.name.lower()
    quoted_path = shlex.quote(str(path))
    if name.endswith(".zip"):
        return _zip_advice(path, quoted_path)
    for suffix in _PANDAS_READERS:
        if name.endswith(suffix):
            return _table_advice(path, quoted_path, suffix)
    for suffix, command in _ADVICE.items():
        if name.endswith(suffix):
            # The path without its suffix. It is cut by length, since it may be in upper case.
            quoted_stem = shlex.quote(str(path)[: -len(suffix)])
            instruction = command.format(file=quoted_path, stem=quoted_stem)
            return f"{suffix} files are not read. {instruction}"
    return None


def _zip_advice(path: Path, quoted_path: str) -> str:
    """Tell a user how to unpack a .zip archive, and which files it contains.

    Args:
        path: The archive.
        quoted_path: The path, quoted for a shell.

    Raises:
        UserError: The archive is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: damaged, or not a .zip archive: {error}") from None
    # The names of folders end in a slash.
    file_members = [member for member in members if not member.endswith("/")]
    return (
        f".zip archives are not read. This one contains {_listed(file_members)}. "
        f"Unpack it, then name its files: {_UNZIP.format(file=quoted_path)}"
    )


def _table_advice(path: Path, quoted_path: str, suffix: str) -> str:
    """Tell a user how to convert a table (.csv, .json or .parquet) into two text files.

    The advice ends in a command to type: a short Python program that writes two columns to files.

    Args:
        path: The table.
        quoted_path: The path, quoted for a shell.
        suffix: The suffix of the file, such as `.csv`.

    Raises:
        UserError: The table is damaged, or has fewer than two columns of text.
    """
    table = _read_table(path, suffix)
    columns = table.columns
    if len(columns) < 2:
        raise UserError(
            f"{path}: {suffix} files are not read, and no two columns of text were found in this "
            "one. Make two text files with equally many lines, or a .tsv file"
        )
    # In a JSON file, the rows may be the value of a key: {"data": [...]}. The program then reads
    # the member ['data'] of the file.
    key_index = f"[{table.records_key!r}]" if table.records_key else ""
    reader = _PANDAS_READERS[suffix].format(key=key_index)
    program = _TABLE_PROGRAM.format(reader=reader)
    # The command names the first two columns. If there are more, the user may want other ones.
    choice = ""
    if len(columns) > 2:
        choice = f". Its columns are {_listed(columns)}. Name two of them"
    quoted_columns = f"{shlex.quote(columns[0])} {shlex.quote(columns[1])}"
    return (
        f"{suffix} files are not read. This command writes two text files, {path}.COLUMN"
        f"{choice}: python -c {_in_double_quotes(program)} {quoted_path} {quoted_columns}"
    )


def _in_double_quotes(program: str) -> str:
    """Quote a Python program so that a shell reads it as one word.

    Double quotes are used because the programs contain many single quotes, which then need no
    escapes.
    """
    escaped = program.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


@dataclass(frozen=True)
class _Table:
    """The text columns of a table.

    Attributes:
        columns: The names of the columns. A column of a nested record is named OUTER.INNER, as
            pandas.json_normalize names it.
        records_key: The member of a JSON object that contains the list of records; None if the
            file is the list itself.
    """

    columns: list[str]
    records_key: str | None = None


def _read_table(path: Path, suffix: str) -> _Table:
    """Read the names of a table's columns, as far as they contain text.

    Args:
        path: The table.
        suffix: Its format: `.csv`, `.parquet`, `.json`, or else one JSON object per line.

    Raises:
        UserError: The file is damaged.
    """
    try:
        if suffix == ".csv":
            return _csv_table(path)
        if suffix == ".parquet":
            return _parquet_table(path)
        if suffix == ".json":
            return _json_table(path)
        return _json_lines_table(path)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise UserError(f"{path}: not a valid {suffix} file: {error}") from None


def _csv_table(path: Path) -> _Table:
    """Read the column names from the header of a .csv file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    return _Table(header)


def _parquet_table(path: Path) -> _Table:
    """Read the names of the string columns from the schema of a Parquet file."""
    from pyarrow.parquet import read_schema

    return _Table(_string_fields(read_schema(path)))


def _json_table(path: Path) -> _Table:
    """Read the column names of a table in a JSON file.

    The file contains a list of records, that is, of objects with the same keys; or an object, one
    of whose values is such a list. The first record shows the columns.
    """
    with path.open(encoding="utf-8-sig") as file:
        content = json.load(file)
    if _is_record_list(content):
        return _Table(_string_members(content[0]))
    if isinstance(content, dict):
        for key, value in content.items():
            if _is_record_list(value):
                return _Table(_string_members(value[0]), records_key=key)
    return _Table([])


def _json_lines_table(path: Path) -> _Table:
    """Read the column names of a file with one JSON object per line, from its first line."""
    with path.open(encoding="utf-8-sig") as file:
        record = json.loads(file.readline())
    if isinstance(record, dict):
        return _Table(_string_members(record))
    return _Table([])


def _is_record_list(value: Any) -> bool:
    """Return whether a JSON value is a list whose first element is an object."""
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


def _string_fields(fields: Any, prefix: str = "") -> list[str]:
    """Return the names of a Parquet table's columns that contain text.

    A column may consist of fields, which may be nested: `translation.de` names the field `de` of
    the column `translation`.

    Args:
        fields: The Arrow schema of the table, or the fields of a column.
        prefix: The names of the outer fields, such as `translation.`; empty for a schema.
    """
    names = []
    for field in fields:
        name = f"{prefix}{field.name}"
        child_count = field.type.num_fields
        if child_count > 0:
            children = [field.type.field(index) for index in range(child_count)]
            names += _string_fields(children, prefix=f"{name}.")
        elif str(field.type) in ("string", "large_string", "string_view"):
            names.append(name)
    return names


def _string_members(record: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the keys of a JSON object whose values are text.

    Objects may be nested: `translation.de` names the text in `{"translation": {"de": "Ja"}}`.

    Args:
        record: The object.
        prefix: The keys of the outer objects, such as `translation.`; empty for the outermost one.
    """
    names = []
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            names += _string_members(value, prefix=f"{name}.")
        elif isinstance(value, str):
            names.append(name)
    return names


def _listed(names: Sequence[str]) -> str:
    """List names for a message: the first ones, and how many more there are."""
    if not names:
        return "nothing"
    return list_first(names, _MAX_LISTED)
