"""The formats of published parallel text: each reader turns binary streams into sentence pairs.

Streams are read once, from start to end, in bounded memory except by `documents`, whose texts are
aligned in memory. A malformed file, or files that are not parallel, raise an error that names file
and line. Readers drop only complete pairs, and count them by a rule:

- `metadata`: a line about a talk, in both files of ted-tags;
- `one_language`: a unit of a TMX file that lacks one of the two languages;
- `1-0` and `0-1`: a sentence of `documents` without a translation.

To add a format, write a reader and call it in `_pairs`.
"""

from collections.abc import Iterator, MutableSequence, Sequence
from typing import BinaryIO

from bleuprint.config.corpus_files import Text
from bleuprint.corpus.download.formats.documents import read_documents
from bleuprint.corpus.download.formats.lines import read_lines, read_plain, read_tsv
from bleuprint.corpus.download.formats.sgml import read_segments
from bleuprint.corpus.download.formats.ted_tags import read_ted_tags
from bleuprint.corpus.download.formats.tmx import read_tmx
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
    r"""Yield the sentence pairs of a text, source first. No sentence contains a \n.

    Args:
        text: The settings of the text.
        streams: The unpacked bytes of `text.files`, in that order.
        languages: The codes of the source and the target language.
        counts: Counts the dropped pairs by the rules above; it is complete after the last pair.
        documents: With sgml and ted-xml, the id of each pair's document is appended; it is complete
            after the last pair.

    Raises:
        UserError: The files are not of the format, not parallel, or contain no pairs.
    """
    pairs = _pairs(text, streams, languages, counts, documents)
    first = next(pairs, None)
    if first is None:
        names = " and ".join(file.name for file in text.files)
        drops = []
        for rule, count in sorted(counts.dropped.items()):
            drops.append(f"{count} by {rule}")
        if not drops:
            raise UserError(f"{names}: no pairs")
        raise UserError(
            f"{names}: no pairs of {' and '.join(languages)} (dropped: {', '.join(drops)})"
        )
    yield first
    yield from pairs


def _pairs(
    text: Text,
    streams: Sequence[BinaryIO],
    languages: tuple[str, str],
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """Return the pairs that the reader of the text's format yields; see `read_text`."""
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
            pairs = read_tsv(streams[0], names[0], text.columns)
        case "tmx":
            pairs = read_tmx(streams[0], names[0], text.languages or languages, counts)
        case "ted-tags":
            pairs = read_ted_tags(streams, names, counts)
        case "sgml":
            pairs = read_segments(streams, names, documents, has_entities=False)
        case "ted-xml":
            pairs = read_segments(streams, names, documents, has_entities=True)
    return pairs


def _read_one_side(stream: BinaryIO, name: str, is_source: bool) -> Iterator[Pair]:
    """Yield the pairs of a text with one side, whose other side is empty."""
    for line in read_lines(stream, name):
        if is_source:
            yield Pair(source=line, target="")
        else:
            yield Pair(source="", target=line)
