r"""The format jsonl, and what it shares with parquet: records, whose columns have names.

A column may be nested: `translation.de` names the text in `{"translation": {"de": "Ja"}}`, the form
of translation data sets on Hugging Face. A record whose source or target is null is dropped, and
counted as `one_language`. A text may contain line breaks, but a sentence may not: white space with
a \n in it becomes a space.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.download.formats.scores import ScoreLimit
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first
from bleuprint.text.bcp47 import tags_of_language
from bleuprint.text.parallel import Pair

# White space with a line break in it.
_LINE_BREAK = re.compile(r"[ \t\r]*\n[ \t\r\n]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
# The number of columns, and of characters of a value, that a message shows.
_LISTED_COLUMNS = 12
_SHOWN_CHARACTERS = 40
# So many records at the start of a .jsonl file are searched for its columns.
RECORDS_FOR_COLUMNS = 1000

Record = Mapping[str, Any]


class NumberedRecord(NamedTuple):
    """A row of a .jsonl or .parquet file.

    Attributes:
        number: The number of the row, from 1; of a .jsonl file that of the line.
        values: The values by column.
    """

    number: int
    values: Record


@dataclass(frozen=True)
class PairChoice:
    """Which sentence pairs of a table of records are read.

    Attributes:
        columns: The names of the source and the target column. None for those that are named after
            the languages.
        languages: The codes of source and target.
        counts: Statistics to which pairs with a null are added as dropped.
        limit: Drops pairs by a column of scores; None to keep all pairs.
    """

    columns: tuple[str, str] | None
    languages: tuple[str, str]
    counts: SetCounts
    limit: ScoreLimit | None = None

    def columns_among(self, names: Sequence[str], location: str) -> tuple[str, str]:
        """Return the names of the source and the target column.

        Args:
            names: The names of all columns.
            location: Where the names are written, for messages.

        Raises:
            UserError: The user names no columns, and none or several are named after a language.
        """
        return self.columns or columns_by_language(names, self.languages, location)


def read_json_lines(stream: BinaryIO, name: str, choice: PairChoice) -> Iterator[Pair]:
    """Read the sentence pairs of a .jsonl file, which has a JSON object per line.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        choice: Which pairs are read.

    Raises:
        UserError: A line is not a JSON object, or lacks a column, or a value is not text.
    """
    records = json_records(stream, name)
    first_records = list(islice(records, RECORDS_FOR_COLUMNS))
    if not first_records:
        return
    header = record_with_columns(first_records)
    columns = choice.columns_among(column_names(header.values), f"{name}:{header.number}")
    yield from pairs_of_records(chain(first_records, records), name, columns, choice)


def record_with_columns(first_records: Sequence[NumberedRecord]) -> NumberedRecord:
    """Return the record of a .jsonl file that shows which columns the file has.

    This is the first record. But if that contains a null, as in `{"translation": null}`, the null
    may stand for an object with columns. Then it is the first record with the most columns.

    Args:
        first_records: The first records of the file, at least one.
    """
    first_record = first_records[0]
    if None not in first_record.values.values():
        return first_record
    return max(first_records, key=lambda record: len(column_names(record.values)))


def json_records(stream: BinaryIO, name: str) -> Iterator[NumberedRecord]:
    """Yield the records of a .jsonl file. Blank lines are skipped.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: A line is not a JSON object.
    """
    for number, line in enumerate(read_lines(stream, name), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{name}:{number}: not JSON: {error}. A .jsonl file has one JSON object per line"
            ) from None
        if not isinstance(record, dict):
            raise UserError(
                f"{name}:{number}: the line is {_shown(record)}, not a JSON object. Write pairs as "
                'objects: {"de": "Ja", "en": "Yes"}'
            )
        yield NumberedRecord(number, record)


def pairs_of_records(
    records: Iterator[NumberedRecord],
    name: str,
    columns: tuple[str, str],
    choice: PairChoice,
) -> Iterator[Pair]:
    """Yield the sentence pairs of records.

    Args:
        records: The records of a file.
        name: The name of the file in messages.
        columns: The names of the source and the target column.
        choice: Which pairs are read.

    Raises:
        UserError: A record lacks a column, a value is not text, or a score is not a number.
    """
    source_column, target_column = columns
    limit = choice.limit
    for number, record in records:
        location = f"{name}:{number}"
        source = text_of(record, source_column, location)
        target = text_of(record, target_column, location)
        if source is None or target is None:
            choice.counts.count_dropped("one_language")
        elif limit is None or limit.keeps(_score_of(record, limit, location), location):
            yield Pair(source, target)


def _score_of(record: Record, limit: ScoreLimit, location: str) -> Any:
    """Return the value of a record in the column of scores.

    Args:
        record: The record.
        limit: Names the column.
        location: The file and the row, for messages.

    Raises:
        UserError: The record has no such column.
    """
    column = str(limit.column)
    try:
        return value_of(record, column)
    except KeyError:
        raise missing_column(column, column_names(record), location) from None


def text_of(record: Record, column: str, location: str) -> str | None:
    """Return the text of a record in a column, without line breaks; None for a null.

    Args:
        record: The record, or an object in it.
        column: The name of the column. `translation.de` is the column `de` of the object
            `translation`.
        location: The file and the row, for messages.

    Raises:
        UserError: The record has no such column, or the value is not text.
    """
    try:
        value = value_of(record, column)
    except KeyError:
        raise missing_column(column, column_names(record), location) from None
    if value is None:
        return None
    if not isinstance(value, str):
        raise UserError(f"{location}: column {column!r} contains {_shown(value)}, not text")
    if _SURROGATE.search(value):
        raise UserError(
            f"{location}: column {column!r} contains half of a surrogate pair, such as \\ud83d, "
            "which is not a character. Remove it"
        )
    return in_one_line(value)


def value_of(record: Record, column: str) -> Any:
    """Return the value of a record in a column; None for a null, also in place of an object.

    Args:
        record: The record.
        column: The name of the column. `translation.de` is the column `de` of the object
            `translation`; but a column with a dot in its own name is preferred.

    Raises:
        KeyError: The record has no such column.
    """
    if column in record:
        return record[column]
    # At each dot, the name may go on in an object: `a.b.c` may be `c` in `a.b`, or `b.c` in `a`.
    for dot in re.finditer(r"\.", column):
        key = column[: dot.start()]
        if key not in record:
            continue
        inner_record = record[key]
        if inner_record is None:
            return None
        if isinstance(inner_record, Mapping):
            # Another dot may lead to the column, if this one does not.
            with suppress(KeyError):
                return value_of(inner_record, column[dot.end() :])
    raise KeyError(column)


def column_names(record: Record, prefix: str = "") -> list[str]:
    """Return the names of a record's columns. A column in an object is named OBJECT.COLUMN.

    Args:
        record: The record, or an object in it.
        prefix: The names of the outer objects, such as `translation.`; empty for a record.
    """
    names = []
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            names += column_names(value, prefix=f"{name}.")
        else:
            names.append(name)
    return names


def columns_by_language(
    names: Sequence[str], languages: tuple[str, str], location: str
) -> tuple[str, str]:
    """Find the columns that are named after the source and the target language.

    The language is the last part of the name: `de` and `translation.de` are in German.

    Args:
        names: The names of all columns.
        languages: The codes of source and target.
        location: Where the names are written, for messages.

    Raises:
        UserError: No column, or more than one, is named after a language; or one column is named
            after both, as `zh` is after zh-Hans and zh-Hant.
    """
    source_column = _column_of_language(names, languages[0], languages, location)
    target_column = _column_of_language(names, languages[1], languages, location)
    if source_column == target_column:
        raise UserError(
            f"{location}: only the column {source_column!r} is named after {languages[0]} and "
            f"{languages[1]}. {_columns_advice(names, languages)}"
        )
    return source_column, target_column


def _column_of_language(
    names: Sequence[str], language: str, languages: tuple[str, str], location: str
) -> str:
    """Return the name of the only column that is named after a language.

    Args:
        names: The names of all columns.
        language: The language.
        languages: The codes of source and target, for messages.
        location: Where the names are written, for messages.

    Raises:
        UserError: No column, or more than one, is named after the language.
    """
    columns_by_name_end: dict[str, list[str]] = {}
    for name in names:
        name_end = name.strip().rpartition(".")[2]
        columns_by_name_end.setdefault(name_end, []).append(name)
    matching = []
    for name_end in tags_of_language(columns_by_name_end, language):
        matching += columns_by_name_end[name_end]
    if len(matching) > 1:
        # A data set of Hugging Face may have a column `id` beside `translation.id`, Indonesian.
        nested = [name for name in matching if name.startswith("translation.")]
        matching = nested or matching
    if len(matching) == 1:
        return matching[0]
    count = f"{len(matching)} columns are" if matching else "no column is"
    raise UserError(
        f"{location}: {count} named after the language {language}. "
        f"{_columns_advice(names, languages)}"
    )


def _columns_advice(names: Sequence[str], languages: tuple[str, str]) -> str:
    """Return how to name the columns of a table in params.yaml, as the end of a message.

    Args:
        names: The names of all columns.
        languages: The codes of source and target.
    """
    return (
        f"Name source and target, such as columns: [text_{languages[0]}, text_{languages[1]}]. "
        f"Columns: {listed_columns(names)}"
    )


def missing_column(column: str, names: Sequence[str], location: str) -> UserError:
    """Return the error for a column that a row or a file does not have.

    Args:
        column: The name of the missing column.
        names: The names of the columns that exist.
        location: The file, perhaps with the row.
    """
    return UserError(f"{location}: no column is named {column!r}. Columns: {listed_columns(names)}")


def listed_columns(names: Sequence[str]) -> str:
    """List the first columns of a table for a message, each by the start of its name."""
    if not names:
        return "none"
    # The first row of a table without a header is a sentence pair, whose cells may be long.
    return list_first([_start_of(repr(name)) for name in names], _LISTED_COLUMNS)


def _shown(value: Any) -> str:
    """Return the start of a JSON value for a message."""
    return _start_of(json.dumps(value, ensure_ascii=True, default=str))


def _start_of(text: str) -> str:
    """Return the first 40 characters of a text for a message."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def in_one_line(cell: str) -> str:
    """Return the text of a cell with a space in place of each line break in it."""
    if "\n" not in cell:
        return cell
    return _LINE_BREAK.sub(" ", cell).strip(" ")
