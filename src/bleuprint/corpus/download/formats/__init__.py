"""The formats of published parallel text: binary streams in, pairs out.

Streams are read once, from start to end, in bounded memory. A malformed file, or files that are not
parallel, raise an error that names file and line. Only whole pairs are dropped, and counted:

- `metadata`: a line about a talk in both files of ted-tags;
- `one_language`: a unit of a TMX file that lacks one of the two languages.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.config.corpus_files import Text
from bleuprint.corpus.download.formats.lines import read_lines, read_plain, read_tsv
from bleuprint.corpus.download.formats.sgml import read_segments
from bleuprint.corpus.download.formats.ted_tags import read_ted_tags
from bleuprint.corpus.download.formats.tmx import read_tmx
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair


def read_text(
    text: Text, streams: Sequence[BinaryIO], languages: tuple[str, str], dropped: Counter[str]
) -> Iterator[Pair]:
    """The pairs of a text, source first; `streams` are those of `text.files`, in that order.

    A side that a system translates is empty.

    `dropped` counts the dropped pairs by the names above; it is complete after the last pair. No
    sentence contains a \\n. Raises UserError if the files are not of `text.format`, not parallel
    or without pairs.
    """
    names = [file.name for file in text.files]
    pairs: Iterator[Pair]
    match text.format:
        case "plain" if text.made:
            lines = read_lines(streams[0], names[0])
            pairs = (Pair("", line) if text.made == "source" else Pair(line, "") for line in lines)
        case "plain":
            pairs = read_plain(streams, names)
        case "tsv":
            assert text.columns is not None
            pairs = read_tsv(streams[0], names[0], text.columns)
        case "tmx":
            pairs = read_tmx(streams[0], names[0], languages, dropped)
        case "ted-tags":
            pairs = read_ted_tags(streams, names, dropped)
        case "sgml" | "ted-xml":
            pairs = read_segments(streams, names, entities=text.format == "ted-xml")
    first = next(pairs, None)
    if first is None:
        counts = ", ".join(f"{count} by {rule}" for rule, count in sorted(dropped.items()))
        lost = f" of {' and '.join(languages)} (dropped: {counts})" if counts else ""
        raise UserError(f"{' and '.join(names)}: no pairs{lost}")
    yield first
    yield from pairs
