"""The formats sgml and ted-xml: test sets for the scorer mteval, in documents and segments.

The format sgml, WMT's until 2020, is almost XML, but sentences contain bare & and <; entities are
not decoded, as in sacreBLEU. The format ted-xml, IWSLT's (IWSLT14.TED.tst2010.de-en.de.xml), is
XML. In both, only the tags of documents (<doc>) and segments (<seg>) are read.

Additional references for a test set of WMT are plain text: `wmt19-ende-ar.ref` for the source
`newstest2019-ende-src.en.sgm`. If the name of only one file says that it is SGML, the other one has
a segment per line.
"""

import html
import re
from collections.abc import Iterator, MutableSequence, Sequence
from itertools import zip_longest
from typing import BinaryIO, NamedTuple

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# The start tag of a document, or a segment up to its end tag. The text of a segment goes up to the
# next tag of a document or segment, so that other tags and a bare < belong to it.
_ELEMENT = re.compile(
    r"""
      <doc (?![\w-]) (?P<document_attributes> [^<>]*) >
    | <seg (?![\w-]) (?P<segment_attributes> [^<>]*) >
      (?P<text> [^<]* (?: < (?! /? (?:seg|doc) (?![\w-]) ) [^<]* )* )
      (?P<end_tag> </seg )?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
# How the names of SGML files end.
_SGML_NAME = re.compile(r"\.(sgm|sgml|xml)(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
# The end tag of the whole file; without it the file was cut short.
_END_OF_FILE = re.compile(r"</(srcset|refset|tstset|mteval)\s*>\s*\Z", re.IGNORECASE)


class _Segment(NamedTuple):
    """A sentence of a test set.

    Attributes:
        document_id: The id of its document; empty if the document has none.
        segment_id: Its id in the document.
        text: The sentence, with markup.
        location: The segment's file, line and ids, for messages.
    """

    document_id: str
    segment_id: str
    text: str
    location: str


def read_segments(
    streams: Sequence[BinaryIO],
    names: Sequence[str],
    documents: MutableSequence[str],
    *,
    has_entities: bool,
) -> Iterator[Pair]:
    """Read the sentence pairs of a test set in SGML, as WMT and IWSLT published them.

    A sentence is a segment (<seg>) of a document (<doc>). Both files contain the same segments, in
    the same order; one of them may be plain text. As in sacreBLEU, several spaces or line breaks in
    a row become one space. Both files are in memory.

    Args:
        streams: The bytes of the source and the target file.
        names: The names of both files in messages.
        documents: A list to which the id of each pair's document is appended; empty if it has none.
        has_entities: Whether the files contain entities such as `&amp;`, which are decoded.

    Raises:
        UserError: A file seems truncated, or the order of documents or segments differs.
    """
    sgml_names = [name for name in names if _SGML_NAME.search(name)]
    has_plain_text = len(sgml_names) == 1
    segments_of_files = []
    for stream, name in zip(streams, names, strict=True):
        is_plain_text = has_plain_text and name not in sgml_names
        read = _read_lines_as_segments if is_plain_text else _read_file
        segments_of_files.append(read(stream, name))
    for source, target in zip_longest(*segments_of_files):
        # The lines of plain text have no ids, so only the numbers of segments can be compared.
        has_pair = source is not None and target is not None
        if not has_pair or not (has_plain_text or _have_equal_ids(source, target)):
            source_location = source.location if source else f"{names[0]} has ended"
            target_location = target.location if target else f"{names[1]} has ended"
            raise UserError(
                f"{source_location}, but {target_location}, so the files are not parallel"
            )
        # The segments of plain text belong to no document.
        documents.append(source.document_id or target.document_id)
        yield Pair(
            source=_sentence(source, has_entities),
            target=_sentence(target, has_entities),
        )


def _have_equal_ids(source: _Segment, target: _Segment) -> bool:
    """Return whether two segments have the same id in the same document."""
    return (source.document_id, source.segment_id) == (target.document_id, target.segment_id)


def _sentence(segment: _Segment, has_entities: bool) -> str:
    """Return the sentence of a segment; several spaces or line breaks in a row become one space.

    Args:
        segment: The segment.
        has_entities: Whether to decode entities such as `&amp;`.
    """
    text = segment.text
    if has_entities:
        text = html.unescape(text)
    return " ".join(text.split())


def _read_lines_as_segments(stream: BinaryIO, name: str) -> Iterator[_Segment]:
    """Read the lines of a plain text file as segments without ids.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
    """
    for number, line in enumerate(read_lines(stream, name), 1):
        yield _Segment(document_id="", segment_id="", text=line, location=f"{name}:{number}")


def _read_file(stream: BinaryIO, name: str) -> Iterator[_Segment]:
    """Read the segments (sentences) of a test set from the SGML file of one language.

    Each segment is returned with the id of its document, and with its line for error messages.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: A segment has no id or no end, or the file does not end with its end tag.
    """
    content = "\n".join(read_lines(stream, name))
    document_id = ""
    # The line of the current element. Only the line breaks since the previous element are counted:
    # counting from the start of the file each time would take too long.
    line_number = 1
    previous_start = 0
    for element in _ELEMENT.finditer(content):
        line_number += content.count("\n", previous_start, element.start())
        previous_start = element.start()
        document_attributes = element["document_attributes"]
        if document_attributes is not None:
            # The start tag of a document: the segments that follow belong to it.
            document_id = _attributes(document_attributes).get("docid", "")
            continue
        segment_id = _attributes(element["segment_attributes"]).get("id")
        if segment_id is None:
            raise UserError(f"{name}:{line_number}: a <seg> has no id")
        if element["end_tag"] is None:
            raise UserError(
                f"{name}:{line_number}: a <seg> has no end tag </seg>. Is the file cut short?"
            )
        location = f"{name}:{line_number}: seg {segment_id!r} of doc {document_id!r}"
        yield _Segment(document_id, segment_id, element["text"], location)
    if not _END_OF_FILE.search(content):
        raise UserError(
            f"{name}: the end tag (</srcset>, </refset>, ...) is missing. Is the file cut short?"
        )


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of an SGML tag: `{"id": "3"}` for the text `ID="3"`.

    Names are in lower case, since SGML does not distinguish case; values are without quotes.
    """
    attributes = {}
    for name, value in _ATTRIBUTE.findall(text):
        attributes[name.lower()] = value.strip("\"'")
    return attributes
