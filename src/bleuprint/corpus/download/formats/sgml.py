"""Test sets for mteval, numbered sentences of documents; only the tags below are markup.

The format sgml, WMT's until 2020, is almost XML, with bare & and < in sentences; entities are not
decoded, as in sacreBLEU. The format ted-xml, IWSLT's (IWSLT14.TED.tst2010.de-en.de.xml), is XML.
"""

import html
import re
from collections.abc import Iterator, MutableSequence, Sequence
from itertools import zip_longest
from typing import BinaryIO, NamedTuple

from bleuprint.corpus.download.formats.lines import LONGEST_LINE, read_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

_TAG = re.compile(r"<(/?(?:seg|doc|srcset|refset|tstset|mteval))(?![\w-])([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
_LAST = ("/srcset", "/refset", "/tstset", "/mteval")


class _Segment(NamedTuple):
    """A sentence, its document, its id in the document, and its line in the file."""

    document: str
    id: str
    text: str
    line: int


def read_segments(
    streams: Sequence[BinaryIO],
    names: Sequence[str],
    entities: bool,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """The pairs of two files; white space is folded as in sacreBLEU, `entities` are decoded.

    `documents` gets the document of each pair, empty if it has no id.

    Raises UserError if a file seems truncated, or if the order of documents or ids differs.
    """
    for pair in zip_longest(*map(_segments, streams, names)):
        first, second = pair
        if first is None or second is None or first[:2] != second[:2]:
            places = ", but ".join(map(_place, names, pair))
            raise UserError(f"{places}: not parallel")
        documents.append(first.document)
        texts = (html.unescape(side.text) if entities else side.text for side in pair)
        yield Pair._make(" ".join(text.split()) for text in texts)


def _place(name: str, segment: _Segment | None) -> str:
    if segment is None:
        return f"{name} has ended"
    return f"{name}:{segment.line}: seg {segment.id!r} of doc {segment.document!r}"


def _segments(stream: BinaryIO, name: str) -> Iterator[_Segment]:
    """Raises UserError also if two tags are LONGEST_LINE characters or more apart."""
    document, tag, pending = "", "", ""
    opened: _Segment | None = None
    for number, line in enumerate(read_lines(stream, name), 1):
        pending += f"{line}\n"
        start = 0
        for match in _TAG.finditer(pending) if ">" in line else ():
            before, start = pending[start : match.start()], match.end()
            tag, attributes = match[1].lower(), _attributes(match[2])
            if opened is not None and tag != "/seg":
                raise UserError(f"{name}:{opened.line}: <seg> without </seg>")
            if tag == "doc":
                document = attributes.get("docid", "")
            elif tag == "seg":
                if "id" not in attributes:
                    raise UserError(f"{name}:{number}: <seg> without id")
                opened = _Segment(document, attributes["id"], "", number)
            elif tag == "/seg":
                if opened is None:
                    raise UserError(f"{name}:{number}: </seg> without <seg>")
                yield opened._replace(text=before)
                opened = None
        pending = pending[start:]
        if len(pending) > LONGEST_LINE:
            raise UserError(f"{name}:{number}: more than {LONGEST_LINE >> 20} MiB without a tag")
    if opened is not None:
        raise UserError(f"{name}:{opened.line}: <seg> without </seg>: is the file cut short?")
    if tag not in _LAST:
        ends = ", ".join(f"<{last}>" for last in _LAST)
        raise UserError(f"{name}: does not end with one of {ends}: is it cut short?")


def _attributes(text: str) -> dict[str, str]:
    return {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(text)}
