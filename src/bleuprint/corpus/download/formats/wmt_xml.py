"""The format wmt-xml: WMT's test sets since 2021, both languages in one file.

A `<doc id="...">` has a `<src lang="...">`, a `<ref lang="..." translator="...">` for each
translator, and a `<hyp>` for each system, which is not read; their sentences are `<seg id="...">`.
"""

from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import BinaryIO, NoReturn
from xml.parsers import expat

from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

_CHUNK = 1 << 16
_SIDES = ("src", "ref")


@dataclass(frozen=True)
class _Segment:
    """A sentence: its id in the document, its line in the file, and its text in pieces."""

    id: str
    line: int
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """White space is folded as in sacreBLEU."""
        return " ".join("".join(self.pieces).split())


@dataclass(frozen=True)
class _Side:
    """A <src> or <ref>."""

    tag: str
    language: str
    translator: str
    line: int
    segments: list[_Segment] = field(default_factory=list)


@dataclass(frozen=True)
class _Document:
    id: str
    line: int
    in_testsuite: bool
    sides: list[_Side] = field(default_factory=list)


def read_wmt_xml(
    stream: BinaryIO,
    name: str,
    languages: tuple[str, str],
    translator: str | None,
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """The pairs of source and the references of `translator`, None if there is one alone.

    `documents` gets the document of each pair. Documents of test suites, which are not part of the
    test set, count as dropped by `testsuite`, those without a reference of the translator by
    `no_reference`. Raises UserError if the sides of a document have other ids or languages than
    they should, or if there are several translators and none is named. Memory: a document.
    """
    named = translator is not None
    for document in _documents(stream, name):
        source = next((side for side in document.sides if side.tag == "src"), None)
        if source is None:
            raise UserError(f"{name}:{document.line}: doc {document.id!r} has no <src>")
        references = [side for side in document.sides if side.tag == "ref"]
        for side in () if named else references:
            translator = side.translator if translator is None else translator
            if side.translator != translator:
                raise UserError(
                    f"{name}:{side.line}: a reference by {side.translator!r}, and those before "
                    f"are by {translator!r}: the key translator says which are taken"
                )
        chosen = [side for side in references if side.translator == translator]
        if document.in_testsuite or not chosen:
            for _ in source.segments:
                counts.leave_out("testsuite" if document.in_testsuite else "no_reference")
            continue
        for side, language in zip((source, chosen[0]), languages, strict=True):
            if side.language.replace("_", "-").partition("-")[0].lower() != language:
                raise UserError(
                    f"{name}:{side.line}: <{side.tag}> of doc {document.id!r} is in "
                    f"{side.language!r}, not in {language!r}"
                )
        yield from _pairs(name, document.id, source, chosen[0])
        documents.extend([document.id] * len(source.segments))


def _pairs(name: str, document: str, source: _Side, reference: _Side) -> list[Pair]:
    pairs = []
    for sides in zip_longest(source.segments, reference.segments):
        first, second = sides
        if first is None or second is None or first.id != second.id:
            places = ", but ".join(
                f"{name}:{segment.line}: seg {segment.id!r} in <{tag}>"
                if segment
                else f"<{tag}> has ended"
                for tag, segment in zip(_SIDES, sides, strict=True)
            )
            raise UserError(f"{places} (doc {document!r}): not parallel")
        pairs.append(Pair(first.text, second.text))
    return pairs


def _documents(stream: BinaryIO, name: str) -> Iterator[_Document]:
    """No DTD is read, an external or undefined entity is refused, expat limits what others give."""
    reader = _Reader()
    try:
        for chunk in iter(partial(stream.read, _CHUNK), b""):
            reader.parser.Parse(chunk, False)
            yield from reader.take()
        reader.parser.Parse(b"", True)
        yield from reader.take()
    except (expat.ExpatError, LookupError, ValueError) as error:  # also of its encoding
        raise UserError(f"{name}: not sound XML: {error}") from None


class _Reader:
    """Collects documents from expat's events."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.SkippedEntityHandler = self._entity
        self.parser.ExternalEntityRefHandler = lambda names, *_: self._entity(names, False)
        self._whole: list[_Document] = []
        self._document: _Document | None = None
        self._side: _Side | None = None
        self._segment: _Segment | None = None

    def take(self) -> list[_Document]:
        """The documents that have ended since the last call."""
        whole, self._whole = self._whole, []
        return whole

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if tag == "doc":
            self._document = _Document(attributes.get("id", ""), line, "testsuite" in attributes)
        elif tag in _SIDES and self._document:
            language, translator = (attributes.get(key, "") for key in ("lang", "translator"))
            self._side = _Side(tag, language, translator, line)
            self._document.sides.append(self._side)
        elif tag == "seg" and self._side:
            self._segment = _Segment(attributes.get("id", ""), line)
            self._side.segments.append(self._segment)

    def _entity(self, name: str, _: bool) -> NoReturn:
        line = self.parser.CurrentLineNumber
        raise ValueError(f"entity &{name}; is not defined in the file: line {line}")

    def _end(self, tag: str) -> None:
        if tag == "doc" and self._document:
            self._whole.append(self._document)
            self._document = None
        elif tag in _SIDES:
            self._side = None
        elif tag == "seg":
            self._segment = None

    def _characters(self, text: str) -> None:
        if self._segment:
            self._segment.pieces.append(text)
