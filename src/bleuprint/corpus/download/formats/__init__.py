"""The formats of published parallel text: each reader turns binary streams into sentence pairs.

Streams are read once, from start to end, in bounded memory except by `documents`, whose texts are
aligned in memory. A malformed file, or files that are not parallel, raise an error that names file
and line. Readers drop only complete pairs, and count them by a rule:

- `metadata`: a line about a talk, in both files of ted-tags;
- `one_language`: a unit of a TMX file that lacks one of the two languages, or a row of jsonl or
  parquet with a null;
- `1-0` and `0-1`: a sentence of `documents` without a translation.

Texts of the format moses, an archive, are read as plain: see download.py.

To add a format, write a reader and call it in `_read_by_format`.
"""

from collections.abc import Iterator, MutableSequence, Sequence
from typing import BinaryIO

from bleuprint.config.corpus_files import Text
from bleuprint.corpus.download.formats.documents import read_documents
from bleuprint.corpus.download.formats.lines import read_lines, read_plain, read_tsv
from bleuprint.corpus.download.formats.scores import score_limit
from bleuprint.corpus.download.formats.sgml import read_segments
from bleuprint.corpus.download.formats.tables import read_table
from bleuprint.corpus.download.formats.ted_tags import read_ted_tags
from bleuprint.corpus.download.formats.tmx import read_tmx
from bleuprint.corpus.download.formats.wmt_xml import read_wmt_xml
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair


def read_text(
    text: Text,
    streams: Sequence[BinaryIO],
    languages: tuple[str, str],
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    r"""Read the sentence pairs of a published text, whatever its format, and check it is not empty.

    Args:
        text: The settings of the text, among them its format, such as `tmx`.
        streams: The unpacked bytes of its files, in the order of `text.files`.
        languages: The codes of the source and the target language.
        counts: Statistics to which unusable pairs, such as untranslated ones, are added as dropped.
        documents: A list to which the id of each pair's document is appended, if the format marks
            documents.

    Yields:
        The sentence pairs. No sentence contains a \n.

    Raises:
        UserError: The files are not of the format, not parallel, or contain no pairs.
    """
    pairs = _read_by_format(text, streams, languages, counts, documents)
    first = next(pairs, None)  # None if there is no pair.
    if first is None:
        raise _no_pairs(text, languages, counts)
    yield first
    yield from pairs


def _no_pairs(text: Text, languages: tuple[str, str], counts: SetCounts) -> UserError:
    """Return the error for a text without usable sentence pairs; it says why pairs were dropped."""
    names = " and ".join(file.name for file in text.files)
    reasons = []
    for rule, count in sorted(counts.dropped.items()):
        reasons.append(f"{count} by {rule}")
    if not reasons:
        return UserError(f"{names}: no pairs were found")
    return UserError(
        f"{names}: no pairs of {' and '.join(languages)} were found (dropped: {', '.join(reasons)})"
    )


def _read_by_format(
    text: Text,
    streams: Sequence[BinaryIO],
    languages: tuple[str, str],
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """Read the sentence pairs of a text by the reader of its format.

    Args:
        text: The settings of the text, among them its format, such as `tmx`.
        streams: The unpacked bytes of its files, in the order of `text.files`.
        languages: The codes of the source and the target language.
        counts: Statistics to which unusable pairs, such as untranslated ones, are added as dropped.
        documents: A list to which the id of each pair's document is appended, if the format marks
            documents.
    """
    names = [file.name for file in text.files]
    match text.format:
        case "plain" if len(streams) == 1:
            pairs = _read_one_side(streams[0], names[0], is_source=text.source is not None)
        case "plain":
            pairs = read_plain(streams, names)
        case "documents":
            pairs = read_documents(streams, names, counts)
        case "tsv":
            assert text.columns is not None
            pairs = read_tsv(streams[0], names[0], text.columns, score_limit(text, counts))
        case "csv" | "jsonl" | "parquet":
            pairs = read_table(text, streams[0], languages, counts)
        case "tmx":
            pairs = read_tmx(streams[0], names[0], text.languages or languages, counts)
        case "ted-tags":
            pairs = read_ted_tags(streams, names, counts)
        case "sgml" | "ted-xml":
            has_entities = text.format == "ted-xml"
            pairs = read_segments(streams, names, documents, has_entities=has_entities)
        case "wmt-xml":
            pairs = read_wmt_xml(streams[0], names[0], text.reference, documents)
    return pairs


def _read_one_side(stream: BinaryIO, name: str, is_source: bool) -> Iterator[Pair]:
    """Read a text in one language, which a system of the experiment will translate.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        is_source: Whether the text is in the source language, not in the target language.

    Yields:
        The sentence pairs, whose other side is empty.
    """
    for line in read_lines(stream, name):
        if is_source:
            yield Pair(source=line, target="")
        else:
            yield Pair(source="", target=line)
