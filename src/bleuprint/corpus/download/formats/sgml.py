"""Test sets for mteval, numbered sentences of documents; only the tags below are markup.

The format sgml, WMT's until 2020, is almost XML, with bare & and < in sentences; entities are not
decoded, as in sacreBLEU. The format ted-xml, IWSLT's (IWSLT14.TED.tst2010.de-en.de.xml), is XML.
"""

import html
import re
from collections.abc import Iterator, MutableSequence, Sequence
from itertools import zip_longest
from typing import BinaryIO, NamedTuple

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# The attributes of a document, or those of a sentence with its text and its end.
_ELEMENT = re.compile(
    r"<doc(?![\w-])([^<>]*)>|<seg(?![\w-])([^<>]*)>([^<]*(?:<(?!/?(?:seg|doc)(?![\w-]))[^<]*)*)(</seg)?",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
_END = re.compile(r"</(srcset|refset|tstset|mteval)\s*>\s*\Z", re.IGNORECASE)


class _Segment(NamedTuple):
    """A sentence, its document, its id in the document, and its place in messages."""

    document: str
    id: str
    text: str
    place: str


def read_segments(
    streams: Sequence[BinaryIO],
    names: Sequence[str],
    entities: bool,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """The pairs of two files; white space is folded as in sacreBLEU, `entities` are decoded.

    `documents` gets the document of each pair, empty if it has no id. The files are in memory.

    Raises UserError if a file seems truncated, or if the order of documents or ids differs.
    """
    ended = [_Segment("", "", "", f"{name} has ended") for name in names]
    for pair in zip_longest(*map(_segments, streams, names)):
        first, second = (segment or end for segment, end in zip(pair, ended, strict=True))
        if None in pair or first[:2] != second[:2]:
            raise UserError(f"{first.place}, but {second.place}: not parallel")
        documents.append(first.document)
        texts = (html.unescape(side.text) if entities else side.text for side in (first, second))
        yield Pair._make(" ".join(text.split()) for text in texts)


def _segments(stream: BinaryIO, name: str) -> Iterator[_Segment]:
    content = "\n".join(read_lines(stream, name))
    document, line, counted = "", 1, 0
    for element in _ELEMENT.finditer(content):
        line, counted = line + content.count("\n", counted, element.start()), element.start()
        of_document, of_segment, text, end = element.groups()
        if of_document is not None:
            document = _attributes(of_document).get("docid", "")
            continue
        if (id := _attributes(of_segment).get("id")) is None or end is None:
            lacks = "id" if id is None else "</seg>: is the file cut short?"
            raise UserError(f"{name}:{line}: <seg> without {lacks}")
        yield _Segment(document, id, text, f"{name}:{line}: seg {id!r} of doc {document!r}")
    if not _END.search(content):
        raise UserError(f"{name}: does not end with </srcset>, </refset>, ...: is it cut short?")


def _attributes(text: str) -> dict[str, str]:
    return {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(text)}
