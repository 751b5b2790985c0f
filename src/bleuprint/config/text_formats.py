"""The formats of parallel texts, and which of them a file has by its name."""

from typing import Literal

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
