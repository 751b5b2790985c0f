"""The format wmt-xml: WMT's test sets since 2021, one file with source and references."""

from collections import Counter
from typing import BinaryIO

from bleuprint.corpus.download.formats.segments import fold
from bleuprint.corpus.download.formats.tmx import primary
from bleuprint.corpus.download.formats.xml_reader import XmlReader
from bleuprint.text.parallel import Pair


class WmtXmlReader(XmlReader[Pair]):
    """The sentences of each document's src with those of its first ref in the target language.

    Sentences are matched by id, in the order of src. Documents of test suites are dropped, as in
    sacreBLEU, and their sentences count as `testsuite`.
    """

    def __init__(
        self, stream: BinaryIO, name: str, languages: tuple[str, str], dropped: Counter[str]
    ) -> None:
        super().__init__(stream, name)
        self._languages, self._dropped = languages, dropped
        self._begin({})

    def _begin(self, attributes: dict[str, str]) -> None:
        self._document, self._suite = attributes.get("id", ""), "testsuite" in attributes
        self._source: dict[str, str] | None = None
        self._target: dict[str, str] | None = None
        # The side being read, if any.
        self._side: dict[str, str] | None = None
        self._id = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        language = primary(attributes.get("lang", ""))
        if tag == "doc":
            self._begin(attributes)
        elif tag == "src" and self._source is None and language == self._languages[0]:
            self._side = self._source = {}
        elif tag == "ref" and self._target is None and language == self._languages[1]:
            self._side = self._target = {}
        elif tag == "seg" and self._side is not None:
            self._id = attributes.get("id", "")
            if not self._id or self._id in self._side:
                self.fail(f"doc {self._document!r}: <seg> with id {self._id!r}: none, or twice")
            self.collect()

    def end(self, tag: str) -> None:
        if tag == "seg" and self._side is not None:
            self._side[self._id] = fold(self.take_text())
        elif tag in ("src", "ref"):
            self._side = None
        elif tag == "doc" and self._suite:
            self._dropped["testsuite"] += len(self._source or {})
        elif tag == "doc":
            self._match()

    def _match(self) -> None:
        """Pair the sentences of the document that ended."""
        sides = ("src", self._source, self._languages[0]), ("ref", self._target, self._languages[1])
        for side, sentences, language in sides:
            if sentences is None:
                self.fail(f"doc {self._document!r} has no {side} in {language}")
        source, target = self._source or {}, self._target or {}
        for side, alone in ("src", source.keys() - target), ("ref", target.keys() - source):
            if alone:
                first = min(alone, key=lambda id: (len(id), id))
                self.fail(f"doc {self._document!r}: seg {first!r} is only in {side}")
        self.items.extend(Pair(source[id], target[id]) for id in source)
