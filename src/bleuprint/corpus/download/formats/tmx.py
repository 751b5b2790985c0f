"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages."""

import re
from collections.abc import Iterator
from typing import BinaryIO, cast
from xml.etree import ElementTree

from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Elements of a seg that contain codes of the original document; they and the elements inside them
# (sub) are not text. The content of hi is text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# Types of codes that break a line, column or page, and codes of HTML and others that do.
_BREAKS = frozenset(
    {"lb", "pb", "cb", "br", "cr", "tab", "newline", "linefeed", "linebreak", "softbreak", "break"}
)
_BREAK = re.compile(
    r"\s*(</?(br|hr|p|h[1-6]|div|li|tr|td|w:br|w:tab|(text:)?(line-break|tab))\b"
    r"|\\([nrt]|par|line|tab)\s*$)",
    re.IGNORECASE,
)
# Of a unit, or of what is between two: bytes, elements, and elements inside each other, at most.
_LARGEST = 64 << 20
_MOST = 100_000
_DEEPEST = 100
_CHUNK = 1 << 14
_Events = Iterator[tuple[str, ElementTree.Element]]
# XML's white space; other spaces (U+00A0, U+3000) are part of the text.
_SPACE = re.compile("[ \t\r\n]+")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def read_tmx(
    stream: BinaryIO, name: str, languages: tuple[str, str], counts: SetCounts
) -> Iterator[Pair]:
    """The units with both languages, the first variant of each.

    Languages are compared by their primary subtag: `en-US` is en. Runs of white space, line breaks
    included, become one space. Units without one of the languages count as `one_language`.
    """
    for number, unit in enumerate(_units(stream, name), 1):
        texts: dict[str, str] = {}
        for variant in unit.iter("tuv"):
            code = variant.get(_LANGUAGE) or variant.get("lang")
            if code is None:
                raise UserError(f"{name}: <tu> {number}: <tuv> without xml:lang")
            language = code.replace("_", "-").partition("-")[0].lower()
            for seg in variant.iter("seg"):
                texts.setdefault(language, folded(_text(seg)))
        if all(language in texts for language in languages):
            yield Pair._make(texts[language] for language in languages)
        else:
            counts.leave_out("one_language")


def folded(text: str) -> str:
    """Text with runs of XML's white space as one space, and none at its ends."""
    return _SPACE.sub(" ", text).strip(" ")


def _units(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """The <tu> elements of tmx/body, with one in memory at a time.

    Neither a DTD nor an external entity is read, and expat limits what others expand to. Raises
    UserError at what is no unit of sentences: large, or deeply nested.
    """
    parser: ElementTree.XMLPullParser[ElementTree.Element]
    parser = ElementTree.XMLPullParser(("start", "end"))
    parents: list[ElementTree.Element] = []
    number, size, count, block = 0, 0, 0, _CHUNK
    try:
        while True:
            chunk = stream.read(block)
            parser.feed(chunk) if chunk else parser.close()
            block = min(
                2 * block, 1 << 20
            )  # without events: some versions of expat begin with a long tag again
            size += len(chunk)
            for event, element in cast(_Events, parser.read_events()):
                block = _CHUNK
                if event == "start":
                    parents.append(element)
                    count += 1
                    if len(parents) > _DEEPEST:
                        place = f"after <tu> {number}: <{element.tag}>"
                        raise UserError(f"{name}: {place} is {len(parents)} elements deep")
                    continue
                parents.pop()
                if element.tag == "tu":
                    yield element
                    number, size, count = number + 1, 0, 0
                if parents and (len(parents) <= 2 or element.tag == "tu"):
                    parents[-1].clear()
            if size > _LARGEST or count > _MOST:
                most = f"{_LARGEST >> 20} MiB or {_MOST:,} elements"
                raise UserError(f"{name}: after <tu> {number}: no <tu> in {most}")
            if not chunk:
                return
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # also of its encoding
        raise UserError(f"{name}: not sound XML: {error}") from None


def _text(element: ElementTree.Element) -> str:
    """The text of an element without codes."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODES:
            parts.append(_text(child))
        elif _breaks(child):
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)


def _breaks(code: ElementTree.Element) -> bool:
    """Whether a code separates the words beside it."""
    kind, text = code.get("type", "").lower().removeprefix("x-"), code.text or ""
    return kind in _BREAKS or text.isspace() or _BREAK.match(text) is not None
