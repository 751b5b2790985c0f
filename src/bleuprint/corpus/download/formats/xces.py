"""The format xces: archives of XML documents, and an alignment that links their sentences.

OPUS's (https://opus.nlpl.eu): an alignment has a <linkGrp fromDoc="de/1.xml.gz"
toDoc="en/1.xml.gz"> for each pair of documents, with a <link xtargets="1 2;3"/> for each pair of
segments. The document is CORPUS/raw/de/1.xml in the archive, its sentences <s id="1">, as in
OpusTools (Helsinki-NLP/OpusTools, opustools_pkg/opustools/opus_file_handler.py).
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import BinaryIO
from xml.etree import ElementTree
from zipfile import ZipFile

from bleuprint.corpus.download.archive import named_errors
from bleuprint.corpus.download.formats.lines import LONGEST_LINE
from bleuprint.corpus.download.formats.tmx import folded
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

_Element = ElementTree.Element


def read_xces(
    streams: Sequence[BinaryIO], names: Sequence[str], counts: SetCounts
) -> Iterator[Pair]:
    """The linked segments; streams and names are those of source, target and alignment.

    Sentences of a segment are joined by a space, and runs of white space become one space. Either
    language may be the `fromDoc`. Links with sentences on one side only count as `one_sided`.
    Raises UserError at a document or sentence that is not there. Memory: a pair of documents.
    """
    archives = [_Archive(*archive) for archive in zip(streams[:2], names[:2], strict=True)]
    documents: list[_Document] = []  # of fromDoc and toDoc
    swapped = False
    for event, element in _elements(streams[2], names[2]):
        if event == "start":
            files = [element.get(key, "") for key in ("fromDoc", "toDoc")]
            swapped = _is_swapped(files, archives, names[2])
            order = archives[::-1] if swapped else archives
            documents.clear()  # before the next ones are read
            documents += [archive.read(file) for archive, file in zip(order, files, strict=True)]
            continue
        place = f"{names[2]}: link {element.get('id', '')!r}"
        sides = [side.split() for side in element.get("xtargets", "").split(";")]
        if len(sides) != 2 or not documents:
            found = f"xtargets {element.get('xtargets')!r}" if documents else "not in a linkGrp"
            raise UserError(f"{place}: {found}: expected <linkGrp>s of <link xtargets='1 2;3'/>")
        if not all(sides):
            counts.leave_out("one_sided")
            continue
        texts = [side.segment(ids, place) for side, ids in zip(documents, sides, strict=True)]
        yield Pair._make(reversed(texts) if swapped else texts)


class _Document:
    """The sentences of a document by id; of several with one id the last, as in OpusTools."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name, self._sentences = name, dict[str, str]()
        try:
            for _, element in ElementTree.iterparse(BytesIO(content)):
                if element.tag == "s":
                    self._sentences[element.get("id", "")] = folded("".join(element.itertext()))
                    element.clear()
        except (ElementTree.ParseError, LookupError, ValueError) as error:
            raise UserError(f"{name}: not sound XML: {error}") from None

    def segment(self, ids: Sequence[str], place: str) -> str:
        for sentence in ids:
            if sentence not in self._sentences:
                raise UserError(f"{place}: {self._name} has no sentence {sentence!r}")
        return " ".join(self._sentences[sentence] for sentence in ids)


class _Archive:
    """A zip archive of documents."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        with named_errors(name):
            self._zip = ZipFile(stream)
        self._entries = {entry.filename: entry for entry in self._zip.infolist()}
        for entry in self._zip.infolist():  # without CORPUS/raw/
            self._entries.setdefault(entry.filename.split("/", 2)[-1], entry)

    def __contains__(self, file: str) -> bool:
        return file.removesuffix(".gz") in self._entries

    def read(self, file: str) -> _Document:
        entry = self._entries[file.removesuffix(".gz")]
        name = f"{self.name}!{entry.filename}"
        if entry.file_size > LONGEST_LINE:
            raise UserError(f"{name}: a document of {entry.file_size:,} bytes")
        with named_errors(name):
            content = self._zip.read(entry)  # whole: its checksum is compared before it is parsed
        return _Document(name, content)


def _is_swapped(files: Sequence[str], archives: Sequence[_Archive], name: str) -> bool:
    """Whether fromDoc is of the target; raises UserError unless one order alone is possible."""
    swapped = [
        is_swapped
        for is_swapped, order in ((False, archives), (True, archives[::-1]))
        if all(file in archive for file, archive in zip(files, order, strict=True))
    ]
    if len(swapped) != 1:
        place = f"{name}: linkGrp of {files[0]!r} and {files[1]!r}"
        where = " and ".join(archive.name for archive in archives)
        if swapped:
            raise UserError(f"{place}: both archives have both documents: {where}")
        lacking = [file for file in files if not any(file in archive for archive in archives)]
        raise UserError(f"{place}: no document {' and '.join(lacking or files)} in {where}")
    return swapped[0]


def _elements(stream: BinaryIO, name: str) -> Iterator[tuple[str, _Element]]:
    """The starts of <linkGrp> and the <link>s, with one element in memory at a time."""
    parents: list[_Element] = []
    try:
        for event, element in ElementTree.iterparse(stream, ("start", "end")):
            if event == "start":
                parents.append(element)
                if element.tag == "linkGrp":
                    yield event, element
                continue
            parents.pop()
            if element.tag == "link":
                yield event, element
            if parents:
                parents[-1].clear()
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UserError(f"{name}: not sound XML: {error}") from None
