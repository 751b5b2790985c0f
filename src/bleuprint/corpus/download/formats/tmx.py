"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree

from bleuprint.corpus.download.formats.xml_reader import XmlReader
from bleuprint.text.parallel import Pair

# Elements of a seg that contain codes of the original document; they and the elements inside them
# (sub) are not text. The content of hi is text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# XML's white space; other spaces (U+00A0, U+3000) are part of the text.
_SPACE = re.compile("[ \t\r\n]+")


def read_tmx(
    stream: BinaryIO, name: str, languages: tuple[str, str], dropped: Counter[str]
) -> Iterator[Pair]:
    """The units with both languages, the first variant of each.

    Languages are compared by their primary subtag: `en-US` is en. Runs of white space, line breaks
    included, become one space. Units without one of the languages count as `one_language`.
    """
    reader = XmlReader(stream, name, "tu")
    for unit in reader:
        texts: dict[str, str] = {}
        for variant in unit.find_all("tuv"):
            code = variant.get("xml:lang") or variant.get("lang")
            if code is None:
                reader.fail("<tuv> without xml:lang", variant.line)
            for seg in variant.find_all("seg"):
                texts.setdefault(primary(code), _SPACE.sub(" ", _text(seg)).strip(" "))
        if all(language in texts for language in languages):
            yield Pair._make(texts[language] for language in languages)
        else:
            dropped["one_language"] += 1


def primary(code: str) -> str:
    """The primary subtag of a language code: `en` of `en-US`, `EN` and `en_GB`."""
    return code.replace("_", "-").partition("-")[0].lower()


def _text(element: ElementTree.Element) -> str:
    """The text of an element without codes."""
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)
