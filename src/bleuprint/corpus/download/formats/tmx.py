"""TMX 1.4, in which translation memories are exchanged: units of one sentence in any languages."""

import re
from collections import Counter
from typing import BinaryIO

from bleuprint.corpus.download.formats.xml_reader import XmlReader
from bleuprint.text.parallel import Pair

# Elements of a seg that hold codes of the document it was taken from, not text. What they hold in
# turn (sub) is no part of the sentence either. That of hi is.
_CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
# As XML has it; other spaces (U+00A0, U+3000) are the text's own.
_SPACE = re.compile("[ \t\r\n]+")


class TmxReader(XmlReader[Pair]):
    """The units that have both languages, in their first variant of each.

    A language is found by its primary subtag: `en-US` is en. Runs of white space, line breaks
    included, become one space. Units without one of the languages count as `one_language`.
    """

    def __init__(
        self, stream: BinaryIO, name: str, languages: tuple[str, str], dropped: Counter[str]
    ) -> None:
        super().__init__(stream, name)
        self._languages, self._dropped = languages, dropped
        self._unit: dict[str, str] = {}
        self._language = ""
        self._wanted = False  # in a seg of one of the languages
        self._codes = 0  # how many elements deep in a code there

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._wanted:
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
            self._wanted = True
            self.listen()

    def end(self, tag: str) -> None:
        if self._codes:
            self._codes -= 1
            if not self._codes:
                self.listen()
        elif tag == "seg" and self._wanted:
            self._wanted = False
            text = _SPACE.sub(" ", self.take_text()).strip(" ")
            self._unit.setdefault(self._language, text)
        elif tag == "tu":
            source, target = (self._unit.get(language) for language in self._languages)
            if source is None or target is None:
                self._dropped["one_language"] += 1
            else:
                self.found.append(Pair(source, target))


def primary(code: str) -> str:
    """The language of a code: `en` of `en-US`, of `EN` and of `en_GB`."""
    return code.replace("_", "-").partition("-")[0].lower()
