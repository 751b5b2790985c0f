"""A streaming XML reader with bounded memory.

Entity declarations are refused: they may expand without bounds or include other files. A DTD named
in a DOCTYPE is not read.
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
    """Iterating reads the file and yields the items that `start` and `end` append to `items`.

    Raises UserError, naming file and line, if the file is not well-formed.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._texts: list[str] = []
        self._size = 0
        self.items: list[T] = []
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_reference

    @abstractmethod
    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    @abstractmethod
    def end(self, tag: str) -> None:
        """Handle the end of an element."""

    def __iter__(self) -> Iterator[T]:
        final = False
        while not final:
            block = self._stream.read(_BLOCK)
            final = not block
            self._parse(block, final)
            yield from self.items
            self.items.clear()

    def collect(self) -> None:
        """Start collecting text."""
        self._parser.CharacterDataHandler = self._on_text

    def pause(self) -> None:
        """Stop collecting text; the text so far is kept."""
        self._parser.CharacterDataHandler = None

    def take_text(self) -> str:
        """Return and clear the collected text, and stop collecting."""
        self.pause()
        text = "".join(self._texts)
        self._texts.clear()
        self._size = 0
        return text

    @property
    def line(self) -> int:
        """The line of the current tag."""
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
        except (LookupError, ValueError) as error:  # from the declared encoding
            raise UserError(f"{self._name}:{self.line}: {error}") from None

    def _on_text(self, text: str) -> None:
        self._texts.append(text)
        self._size += len(text)
        if self._size >= LONGEST_LINE:
            self.fail(f"the sentence is longer than {LONGEST_LINE >> 20} MiB")

    def _refuse_entity(self, entity: str, *_: object) -> NoReturn:
        self.fail(f"declares the entity {entity!r}: files that declare entities are not read")

    def _refuse_reference(self, entity: str, *_: object) -> NoReturn:
        # expat reports an unknown entity itself only in a file without a DTD
        self.fail(f"&{entity}; is unknown: the DTD is not read")
