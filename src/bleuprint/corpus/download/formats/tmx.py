"""The format tmx (TMX 1.4): translation memories, units of a sentence in several languages."""

import re
from collections import Counter
from typing import BinaryIO

from bleuprint.corpus.download.formats.xml_reader import XmlReader
from bleuprint.text.parallel import Pair

# Elements of a seg that contain codes of the original document; they and the elements inside them
# (sub) are not text. The content of hi is text.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# XML's white space; other spaces (U+00A0, U+3000) are part of the text.
_SPACE = re.compile("[ \t\r\n]+")


class TmxReader(XmlReader[Pair]):
    """The units with both languages, the first variant of each.

    Languages are compared by their primary subtag: `en-US` is en. Runs of white space, line breaks
    included, become one space. Units without one of the languages count as `one_language`.
    """

    def __init__(
        self, stream: BinaryIO, name: str, languages: tuple[str, str], dropped: Counter[str]
    ) -> None:
        super().__init__(stream, name)
        self._languages, self._dropped = languages, dropped
        self._unit: dict[str, str] = {}
        self._language = ""
        self._in_text = False  # in a seg of one of the languages
        self._codes = 0  # depth of elements inside a code

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._in_text:
            if self._codes or tag in _CODES:
                self._codes += 1
                self.pause()
        elif tag == "tu":
            self._unit = {}
        elif tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang")
            if code is None:
                self.fail("<tuv> without xml:lang")
            self._language = primary(code)
        elif tag == "seg" and self._language in self._languages:
            self._in_text = True
            self.collect()

    def end(self, tag: str) -> None:
        if self._codes:
            self._codes -= 1
            if not self._codes:
                self.collect()
        elif tag == "seg" and self._in_text:
            self._in_text = False
            text = _SPACE.sub(" ", self.take_text()).strip(" ")
            self._unit.setdefault(self._language, text)
        elif tag == "tu":
            source, target = (self._unit.get(language) for language in self._languages)
            if source is None or target is None:
                self._dropped["one_language"] += 1
            else:
                self.items.append(Pair(source, target))


def primary(code: str) -> str:
    """The primary subtag of a language code: `en` of `en-US`, `EN` and `en_GB`."""
    return code.replace("_", "-").partition("-")[0].lower()
