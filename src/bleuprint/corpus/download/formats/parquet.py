"""The format parquet, in which most data sets on Hugging Face are stored."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

from bleuprint.corpus.download.formats.records import (
    NumberedRecord,
    PairChoice,
    listed_columns,
    missing_column,
    pairs_of_records,
)
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# The number of rows that are converted to Python together.
_BATCH_ROWS = 1000


def read_parquet(stream: BinaryIO, name: str, choice: PairChoice) -> Iterator[Pair]:
    """Read the sentence pairs of a Parquet file.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        choice: Which pairs are read.

    Raises:
        UserError: The file is damaged, or lacks a column, a column is not text, or a score is not a
            number.
    """
    with _opened_parquet(stream, name) as file:
        types = _column_types(file.schema_arrow)
        columns = choice.columns_among(list(types), name)
        for column in columns:
            if column not in types:
                raise missing_column(column, list(types), name)
            if not _is_text(types[column]):
                raise UserError(
                    f"{name}: column {column!r} contains {types[column]}, not text. Name two "
                    f"others under columns. There are: {listed_columns(list(types))}"
                )
        read_columns = list(columns)
        if choice.limit is not None:
            score_column = str(choice.limit.column)
            if score_column not in types:
                raise missing_column(score_column, list(types), name)
            read_columns.append(score_column)
        yield from pairs_of_records(_records(file, read_columns), name, columns, choice)


def parquet_records(stream: BinaryIO, name: str) -> Iterator[NumberedRecord]:
    """Yield the rows of a Parquet file, with all columns.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: The file is damaged.
    """
    with _opened_parquet(stream, name) as file:
        yield from _records(file, list(_column_types(file.schema_arrow)))


@contextmanager
def _opened_parquet(stream: BinaryIO, name: str) -> Iterator[Any]:
    """Open a Parquet file for a `with` block, in which errors of Arrow become a UserError.

    Args:
        stream: The bytes of the file. A packed file, which cannot seek, is first unpacked to a
            temporary file, since the list of a Parquet file's columns is at its end.
        name: The name of the file in messages.

    Yields:
        A pyarrow.parquet.ParquetFile.
    """
    # Imported here: loading Arrow takes a tenth of a second.
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    with TemporaryFile() as unpacked:
        file: IO[bytes] = stream
        if not stream.seekable():
            shutil.copyfileobj(stream, unpacked)
            file = unpacked
        try:
            # Without reading ahead in threads, which may outlive a program that ends with an error.
            yield ParquetFile(file, pre_buffer=False)
        except (ArrowException, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # A problem of the disk, which is reported elsewhere.
            cause = " ".join(str(error).split())  # In one line.
            raise UserError(f"{name}: not a valid Parquet file: {cause}") from None


def _records(file: Any, columns: Sequence[str]) -> Iterator[NumberedRecord]:
    """Yield the rows of a Parquet file.

    Args:
        file: The pyarrow.parquet.ParquetFile.
        columns: The names of the columns to read, such as `translation.de`.
    """
    number = 0
    # One thread, so that rows are not decoded ahead of their use: memory stays small.
    batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns), use_threads=False)
    for batch in batches:
        for record in batch.to_pylist():
            number += 1
            yield NumberedRecord(number, record)


def _column_types(fields: Any, prefix: str = "") -> dict[str, Any]:
    """Return the Arrow types of a Parquet file's columns, by their names, such as translation.de.

    Args:
        fields: The Arrow schema of the file, or the fields of a column that is an object.
        prefix: The names of the outer columns, such as `translation.`; empty for a schema.
    """
    from pyarrow.types import is_struct

    types = {}
    for field in fields:
        name = f"{prefix}{field.name}"
        if is_struct(field.type):
            children = [field.type.field(index) for index in range(field.type.num_fields)]
            types.update(_column_types(children, prefix=f"{name}."))
        else:
            types[name] = field.type
    return types


def _is_text(arrow_type: Any) -> bool:
    """Return whether an Arrow type is text, perhaps as a dictionary of different values."""
    from pyarrow.types import is_dictionary, is_large_string, is_string, is_string_view

    value_type = arrow_type.value_type if is_dictionary(arrow_type) else arrow_type
    return any(is_type(value_type) for is_type in (is_string, is_large_string, is_string_view))
