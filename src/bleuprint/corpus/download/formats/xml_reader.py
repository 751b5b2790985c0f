"""XML as a stream: what elements are of interest goes by, and memory does not grow with the file.

Entities that a file declares are refused: they can be made to grow without bounds, or to pull in
other files. Nothing besides the stream is ever opened; a DOCTYPE may name a DTD, which is not read.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, Generic, NoReturn, TypeVar
from xml.parsers import expat

from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import LONGEST_LINE

T = TypeVar("T")

_BLOCK = 1 << 20


class XmlReader(ABC, Generic[T]):
    """Iterating over it reads the file and gives what `start` and `end` append to `found`.

    Raises UserError, naming file and line, where the file is not well-formed.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._texts: list[str] = []
        self._size = 0
        self.found: list[T] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_reference

    @abstractmethod
    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """What to do where an element begins."""

    @abstractmethod
    def end(self, tag: str) -> None:
        """What to do where an element ends."""

    def __iter__(self) -> Iterator[T]:
        final = False
        while not final:
            block = self._stream.read(_BLOCK)
            final = not block
            self._parse(block, final)
            yield from self.found
            self.found.clear()

    def listen(self) -> None:
        """Gather the text from here on."""
        self._parser.CharacterDataHandler = self._hear

    def pause(self) -> None:
        """Let the text from here on go by, but keep what has been gathered."""
        self._parser.CharacterDataHandler = None

    def take_text(self) -> str:
        """What has been gathered since this was last called; gathers no more."""
        self.pause()
        text = "".join(self._texts)
        self._texts.clear()
        self._size = 0
        return text

    @property
    def line(self) -> int:
        """The line of the tag that `start` or `end` is called for."""
        return self._parser.CurrentLineNumber

    def fail(self, problem: str) -> NoReturn:
        """Raise UserError for the current line."""
        raise UserError(f"{self._name}:{self.line}: {problem}")

    def _parse(self, block: bytes, final: bool) -> None:
        try:
            self._parser.Parse(block, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise UserError(f"{self._name}:{error.lineno}: not sound XML: {reason}") from None
        except (LookupError, ValueError) as error:  # of the encoding that the file declares
            raise UserError(f"{self._name}:{self.line}: {error}") from None

    def _hear(self, text: str) -> None:
        self._texts.append(text)
        self._size += len(text)
        if self._size >= LONGEST_LINE:
            self.fail(f"the sentence is longer than {LONGEST_LINE >> 20} MiB")

    def _refuse_entity(self, entity: str, *_: object) -> NoReturn:
        self.fail(f"declares the entity {entity!r}: files that declare entities are not read")

    def _refuse_reference(self, entity: str, *_: object) -> NoReturn:
        # Without a DTD that is no entity at all, and expat says so; with one it would skip it.
        self.fail(f"&{entity}; is not known: of a DTD, which is not read")
