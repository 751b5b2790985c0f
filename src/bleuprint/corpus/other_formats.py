"""Tell the user how to turn files in other formats into two text files for new-corpus.

`advice_for_files` is the entry point. Its advice ends in a command to type, such as a short Python
program that reads a .json file with pandas.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bleuprint.corpus.download.formats.records import Record, column_names, value_of
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first

# The program for a JSON file with a list of records: it writes each named column to FILE.COLUMN,
# one cell per line. White space in a cell, such as a line break, becomes one space. `p` is pandas
# and `f` is the path. {key} is empty, or an index such as ['data'] if a member of the JSON object
# contains the records.
_RECORDS_PROGRAM = (
    "import json, sys, pandas as p; f, *columns = sys.argv[1:]; "
    "t = p.json_normalize(json.load(open(f, encoding='utf-8')){key}); "
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
_SUBTITLES = (
    "Subtitles of two languages rarely fit line by line. Write their sentences to two text files, "
    "with an empty line after each film, and see docs/corpora.md, Documents"
)
# Advice for other formats, by suffix. {file} is the path, and {stem} is
# the path without its suffix; both are quoted for a shell.
_ADVICE = {
    ".7z": "Run: 7z x {file} -oinputs",
    ".rar": "Run: unrar x {file} inputs/",
    ".po": _TOOLKIT + "po2tmx -l CODE {file} {stem}.tmx (CODE: the language of the translations)",
    ".xlf": _TOOLKIT + "xliff2po {file} {stem}.po and po2tmx -l CODE {stem}.po {stem}.tmx",
    ".xliff": _TOOLKIT + "xliff2po {file} {stem}.po and po2tmx -l CODE {stem}.po {stem}.tmx",
    ".properties": _TOOLKIT + "prop2po -t ENGLISH.properties {file} {stem}.po and "
    "po2tmx -l CODE {stem}.po {stem}.tmx (ENGLISH.properties: the file with the same keys and the "
    "source texts; CODE: the language of {file})",
    ".srt": _SUBTITLES,
    ".vtt": _SUBTITLES,
    ".xlsx": "Save it as text separated by tabs, in UTF-8, with the end .tsv",
    ".ods": "Save it as text separated by tabs, in UTF-8, with the end .tsv",
}
# The number of lines that show whether a .json file has an object per line.
_JSON_LINES_READ = 3
# The number of archive members or columns that a message lists.
_MAX_LISTED = 6


def advice_for_files(files: Sequence[Path]) -> str | None:
    """Tell a user how to convert files in formats that the command new-corpus does not read.

    Args:
        files: The files that the user named, such as data.json.

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


def has_json_lines(path: Path) -> bool:
    """Return whether a .json file has several lines with a JSON object each.

    Args:
        path: A user's file of any format.
    """
    if not path.name.lower().endswith(".json"):
        return False
    with path.open("rb") as file:
        first_lines = [line for line in islice(file, _JSON_LINES_READ) if line.strip()]
    try:
        values = [json.loads(line) for line in first_lines]
    except (ValueError, RecursionError):
        return False
    # A file of one line is a single JSON value.
    return len(values) > 1 and all(isinstance(value, dict) for value in values)


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
    if name.endswith(".json"):
        return _records_advice(path, quoted_path)
    for suffix, command in _ADVICE.items():
        if name.endswith(suffix):
            # The path without its suffix. It is cut by length, since it may be in upper case.
            quoted_stem = shlex.quote(str(path)[: -len(suffix)])
            instruction = command.format(file=quoted_path, stem=quoted_stem)
            return f"{suffix} files are not read. {instruction}"
    return None


def _records_advice(path: Path, quoted_path: str) -> str:
    """Tell a user how to convert a JSON file with a list of records into two text files.

    The advice ends in a command to type: a short Python program that writes two columns to files.

    Args:
        path: The JSON file.
        quoted_path: The path, quoted for a shell.

    Raises:
        UserError: The file is damaged, or has fewer than two columns of text.
    """
    try:
        table = _read_records(path)
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a valid .json file: {error}") from None
    columns = table.columns
    if len(columns) < 2:
        raise UserError(
            f"{path}: .json files are not read, and no two columns of text were found in this "
            "one. Make two text files with equally many lines, or a .jsonl file"
        )
    # The rows may be the value of a key: {"data": [...]}. The program then reads the member
    # ['data'] of the file.
    key_index = f"[{table.records_key!r}]" if table.records_key else ""
    program = _RECORDS_PROGRAM.format(key=key_index)
    # The command names the first two columns. If there are more, the user may want other ones.
    choice = ""
    if len(columns) > 2:
        choice = f". Its columns are {list_first(columns, _MAX_LISTED)}. Name two of them"
    quoted_columns = f"{shlex.quote(columns[0])} {shlex.quote(columns[1])}"
    return (
        f".json files are not read. This command writes two text files, {path}.COLUMN"
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
    """The text columns of a table in a JSON file.

    Attributes:
        columns: The names of the columns. A column of a nested record is named OUTER.INNER, as
            pandas.json_normalize names it.
        records_key: The member of a JSON object that contains the list of records; None if the
            file is the list itself.
    """

    columns: list[str]
    records_key: str | None = None


def _read_records(path: Path) -> _Table:
    """Read the column names of a table in a JSON file.

    The file contains a list of records, that is, of objects with the same keys; or an object, one
    of whose values is such a list. The first record shows the columns.
    """
    with path.open(encoding="utf-8-sig") as file:
        content = json.load(file)
    if _is_record_list(content):
        return _Table(_text_columns(content[0]))
    if isinstance(content, dict):
        for key, value in content.items():
            if _is_record_list(value):
                return _Table(_text_columns(value[0]), records_key=key)
    return _Table([])


def _is_record_list(value: Any) -> bool:
    """Return whether a JSON value is a list whose first element is an object."""
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


def _text_columns(record: Record) -> list[str]:
    """Return the names of a record's columns whose values are text."""
    return [name for name in column_names(record) if isinstance(value_of(record, name), str)]
