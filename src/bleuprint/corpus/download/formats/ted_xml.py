"""The format ted-xml: IWSLT's test sets (IWSLT14.TED.tst2010.de-en.de.xml), well-formed XML."""

from collections.abc import Iterator
from typing import BinaryIO

from bleuprint.corpus.download.formats.segments import Segment, fold
from bleuprint.corpus.download.formats.xml_reader import XmlReader


def read_ted_xml(stream: BinaryIO, name: str) -> Iterator[Segment]:
    """The sentences of one file: the seg elements of its documents."""
    reader = XmlReader(stream, name, "doc")
    for document in reader:
        for seg in document.find_all("seg"):
            if "id" not in seg.attrib:
                reader.fail("<seg> without id", seg.line)
            text = fold("".join(seg.itertext()))
            yield Segment(document.get("docid", ""), seg.attrib["id"], text, seg.line)
