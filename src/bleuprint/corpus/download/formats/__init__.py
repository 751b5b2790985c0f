"""The formats of published parallel text: binary streams in, pairs out.

Streams are read once, from start to end, in bounded memory except by documents, which are aligned
in memory. A malformed file, or files that are not parallel, raise an error that names file and
line. Only whole pairs are dropped, and counted:

- `metadata`: a line about a talk in both files of ted-tags;
- `one_language`: a unit of a TMX file that lacks one of the two languages;
- `1-0` and `0-1`: a sentence of one side of documents without a translation in the other.
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
from bleuprint.runtime.wording import join_with_and
from bleuprint.text.parallel import Pair


def read_text(
    text: Text,
    streams: Sequence[BinaryIO],
    languages: tuple[str, str],
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """The pairs of a text, source first; `streams` are those of `text.files`, in that order.

    A side that is in no file is empty.

    `counts` counts the dropped pairs by the names above, and not those returned; it is complete
    after the last pair, and so is `documents`: the id of each pair's document if the format is
    sgml or ted-xml, otherwise nothing. No sentence contains a \\n. Raises UserError if the
    files are not of `text.format`, not parallel or without pairs.
    """
    names = [file.name for file in text.files]
    pairs: Iterator[Pair]
    match text.format:
        case "plain" if len(streams) == 1:
            lines = read_lines(streams[0], names[0])
            pairs = (Pair(line, "") if text.source else Pair("", line) for line in lines)
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
        case "sgml" | "ted-xml":
            pairs = read_segments(streams, names, text.format == "ted-xml", documents)
    first = next(pairs, None)
    if first is None:
        drops = ", ".join(f"{count} by {rule}" for rule, count in sorted(counts.dropped.items()))
        lost = f" of {join_with_and(languages)} (dropped: {drops})" if drops else ""
        raise UserError(f"{join_with_and(names)}: no pairs{lost}")
    yield first
    yield from pairs
