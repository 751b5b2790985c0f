"""The format wmt-xml: WMT's test sets since 2021, one file with source and references."""

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from bleuprint.corpus.download.formats.segments import fold
from bleuprint.corpus.download.formats.tmx import primary
from bleuprint.corpus.download.formats.xml_reader import Element, XmlReader
from bleuprint.text.parallel import Pair


def read_wmt_xml(
    stream: BinaryIO, name: str, languages: tuple[str, str], dropped: Counter[str]
) -> Iterator[Pair]:
    """The sentences of each document's src with those of its first ref in the target language.

    Sentences are matched by id, in the order of src. Documents of test suites are dropped, as in
    sacreBLEU, and their sentences count as `testsuite`.
    """
    reader = XmlReader(stream, name, "doc")
    for document in reader:
        source = _sentences(reader, document, "src", languages[0])
        if "testsuite" in document.attrib:
            dropped["testsuite"] += len(source)
            continue
        target = _sentences(reader, document, "ref", languages[1])
        for side, ids in ("src", source.keys() - target), ("ref", target.keys() - source):
            if ids:
                first = min(ids, key=lambda id: (len(id), id))
                _fail(reader, document, f"seg {first!r} is only in {side}")
        yield from (Pair(source[id], target[id]) for id in source)


def _sentences(reader: XmlReader, document: Element, tag: str, language: str) -> dict[str, str]:
    """The sentences by id of the first element `tag` in a language."""
    sentences: dict[str, str] = {}
    for side in document.find_all(tag):
        if primary(side.get("lang", "")) == language:
            for seg in side.find_all("seg"):
                id = seg.get("id", "")
                if not id or id in sentences:
                    _fail(reader, document, f"<seg> with id {id!r}: none, or twice", seg.line)
                sentences[id] = fold("".join(seg.itertext()))
            return sentences
    if "testsuite" not in document.attrib:
        _fail(reader, document, f"no {tag} in {language}")
    return sentences


def _fail(reader: XmlReader, document: Element, problem: str, line: int = 0) -> NoReturn:
    reader.fail(f"doc {document.get('id', '')!r}: {problem}", line or document.line)
