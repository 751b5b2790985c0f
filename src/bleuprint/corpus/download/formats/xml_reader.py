"""A streaming XML reader with bounded memory.

Entity declarations are refused: they may expand without bounds or include other files. A DTD named
in a DOCTYPE is not read.
"""

from collections.abc import Iterator
from typing import BinaryIO, NoReturn, cast
from xml.etree import ElementTree
from xml.parsers import expat

from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import LONGEST_LINE

# Small: the elements of a block take many times its size.
_BLOCK = 1 << 14


class Element(ElementTree.Element):
    """An element and the line of its start tag."""

    line = 0

    def find_all(self, tag: str) -> "Iterator[Element]":
        """The elements `tag` inside."""
        return cast(Iterator[Element], self.iter(tag))


class XmlReader:
    """Iterating yields the elements of one tag, each with its content, in the order of the file.

    Raises UserError, naming file and line, if the file is not well-formed.
    """

    def __init__(self, stream: BinaryIO, name: str, tag: str) -> None:
        self._stream, self._name, self._tag = stream, name, tag
        self._elements: list[Element] = []
        self._depth = self._size = 0
        self._parser = parser = expat.ParserCreate()
        self._builder = ElementTree.TreeBuilder(self._element)
        parser.buffer_text = True
        parser.buffer_size = _BLOCK
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_reference

    def __iter__(self) -> Iterator[Element]:
        final = False
        while not final:
            block = self._stream.read(_BLOCK)
            final = not block
            self._parse(block, final)
            yield from self._elements
            self._elements.clear()

    def fail(self, problem: str, line: int | None = None) -> NoReturn:
        """Raise UserError for a line; None: the current one."""
        raise UserError(f"{self._name}:{line or self._parser.CurrentLineNumber}: {problem}")

    def _parse(self, block: bytes, final: bool) -> None:
        try:
            self._parser.Parse(block, final)
        except expat.ExpatError as error:
            self.fail(f"not sound XML: {expat.ErrorString(error.code)}", error.lineno)
        except (LookupError, ValueError) as error:  # from the declared encoding
            self.fail(str(error))

    def _element(self, tag: str, attributes: dict[str, str]) -> Element:
        element = Element(tag, attributes)
        element.line = self._parser.CurrentLineNumber
        return element

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._depth and tag == self._tag:
            self._builder = ElementTree.TreeBuilder(self._element)
            self._parser.CharacterDataHandler = self._text
            self._size = 0
        if self._depth or tag == self._tag:
            self._depth += 1
            self._builder.start(tag, attributes)

    def _end(self, tag: str) -> None:
        if self._depth:
            self._depth -= 1
            self._builder.end(tag)
            if not self._depth:
                self._parser.CharacterDataHandler = None
                self._elements.append(cast(Element, self._builder.close()))

    def _text(self, text: str) -> None:
        self._builder.data(text)
        self._size += len(text)
        if self._size >= LONGEST_LINE:
            self.fail(f"<{self._tag}> has more than {LONGEST_LINE >> 20} MiB of text")

    def _refuse_entity(self, entity: str, *_: object) -> NoReturn:
        self.fail(f"declares the entity {entity!r}: files that declare entities are not read")

    def _refuse_reference(self, entity: str, *_: object) -> NoReturn:
        # expat reports an unknown entity itself only in a file without a DTD
        self.fail(f"&{entity}; is unknown: the DTD is not read")
