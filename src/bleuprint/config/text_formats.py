"""The formats of parallel texts, and which of them a file has by its name."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge
from pydantic import Field, StringConstraints

# A column of a table: its number from 1, or its name.
Column = Annotated[int, Ge(1)] | Annotated[str, StringConstraints(min_length=1)]

Format = Literal[
    "plain",
    "documents",
    "tsv",
    "csv",
    "jsonl",
    "parquet",
    "tmx",
    "moses",
    "ted-tags",
    "ted-xml",
    "sgml",
    "wmt-xml",
]
# The formats with both sides in one file.
TWO_SIDED = frozenset({"tsv", "csv", "jsonl", "parquet", "tmx", "moses", "wmt-xml"})
# Of these, the tables, whose setting `columns` says where source and target are.
TABLES = frozenset({"tsv", "csv", "jsonl", "parquet"})
# The tables whose columns always have names, so that they cannot be numbered.
TABLES_OF_RECORDS = frozenset({"jsonl", "parquet"})
# The format that the extension of a name says. Files with other extensions may be plain text.
_FORMATS_BY_EXTENSION: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tmx": "tmx",
}
_COMPRESSION_EXTENSIONS = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class PairScore:
    """A column of a table with a score of each pair, and the lowest score of a pair that is kept.

    Attributes:
        column: The column: its number from 1, or its name, as in `columns`.
        min: Pairs with a lower score are dropped.
    """

    column: Column
    min: Annotated[float, Field(allow_inf_nan=False)]

    def check_format(self, text_format: Format) -> None:
        """Raise ValueError unless a format is a table, in which a column may contain scores.

        Args:
            text_format: The format of the text.
        """
        if text_format not in TABLES:
            raise ValueError(
                f"score.column is {self.column!r}, but only a table has columns, and format is "
                f"{text_format}. Remove score, or set format: {' or '.join(sorted(TABLES))}"
            )
        if text_format in TABLES_OF_RECORDS and not isinstance(self.column, str):
            raise ValueError(
                f"score.column is {self.column}, but the columns of format {text_format} have "
                "names. Write its name"
            )


def format_of_name(name: str) -> Format | None:
    """Return the format that the name of a file says: `jsonl` for `train.jsonl.gz`.

    Args:
        name: The name, path or URL of the file.

    Returns:
        The format; None if the name has no such extension, as plain text.
    """
    base_name = name.lower().partition("?")[0]
    for compression in _COMPRESSION_EXTENSIONS:
        base_name = base_name.removesuffix(compression)
    for extension, file_format in _FORMATS_BY_EXTENSION.items():
        if base_name.endswith(extension):
            return file_format
    return None
