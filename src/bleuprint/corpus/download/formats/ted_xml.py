"""The format ted-xml: IWSLT's test sets (IWSLT14.TED.tst2010.de-en.de.xml), well-formed XML."""

from typing import BinaryIO

from bleuprint.corpus.download.formats.segments import Segment, fold
from bleuprint.corpus.download.formats.xml_reader import XmlReader


class TedXmlReader(XmlReader[Segment]):
    """The sentences of one file, in seg elements of documents."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        self._document = self._id = ""
        self._begun = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "doc":
            self._document = attributes.get("docid", "")
        elif tag == "seg":
            if "id" not in attributes:
                self.fail("<seg> without id")
            self._id, self._begun = attributes["id"], self.line
            self.collect()

    def end(self, tag: str) -> None:
        if tag == "seg":
            text = fold(self.take_text())
            self.items.append(Segment(self._document, self._id, text, self._begun))
