"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages."""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree

from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Elements of a seg that contain codes of the original document; they and the elements inside them
# (sub) are not text. The content of hi is text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# Codes that break a line, by their type or as HTML and others.
_BREAK_TYPES = frozenset({"lb", "pb", "cb", "br", "cr", "tab", "newline", "linebreak", "break"})
_BREAK = re.compile(
    r"\s+\Z|\s*(</?(br|hr|p|h[1-6]|div|li|tr|td|(text:)?(line-break|tab))\b|\\([nrt]|par|line)\s*\Z)",
    re.IGNORECASE,
)
_DEEPEST = 100
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
                texts.setdefault(language, _SPACE.sub(" ", _text(seg)).strip(" "))
        if all(language in texts for language in languages):
            yield Pair._make(texts[language] for language in languages)
        else:
            counts.leave_out("one_language")


def _units(stream: BinaryIO, name: str) -> Iterator[ElementTree.Element]:
    """The <tu> elements, with one in memory at a time.

    Neither a DTD nor an external entity is read, and expat limits what others expand to.
    """
    parents: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            if event == "start":
                element.tag = element.tag.rpartition("}")[2]  # of whatever namespace
                parents.append(element)
                if len(parents) > _DEEPEST:
                    raise UserError(f"{name}: <{element.tag}> is {len(parents)} elements deep")
                continue
            parents.pop()
            if element.tag == "tu":
                yield element
            if parents and (len(parents) <= 2 or element.tag == "tu"):
                parents[-1].clear()
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # also of its encoding
        raise UserError(f"{name}: not sound XML: {error}") from None


def _text(element: ElementTree.Element) -> str:
    """The text of an element without codes; those that break a line separate words."""
    parts = [element.text or ""]
    for child in element:
        kind = child.get("type", "").lower().removeprefix("x-")
        if child.tag not in _CODES:
            parts.append(_text(child))
        elif kind in _BREAK_TYPES or _BREAK.match(child.text or ""):
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)
