"""The error for text that is not UTF-8, with what it looks like and how to convert it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.guess_encoding import LATIN, guess_encoding

# The first bytes of packed files, and what unpacks them.
_PACKED = {
    b"\x1f\x8b": "gzip -dc <",
    b"BZh": "bzip2 -dc <",
    b"\xfd7zXZ\0": "xz -dc <",
    b"\x28\xb5\x2f\xfd": "zstd -dc <",
    b"PK\3\4": "unzip -p",
}
# UTF-32 first: its mark begins with that of UTF-16.
_WIDE_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# Bytes of undecodable text by which its encoding is guessed.
_SAMPLE = 1 << 16
# In encodings with several bytes a letter, some fields are UTF-8 by chance; their share, at most.
_BY_CHANCE = 0.05
# Characters shown before and after the first undecodable byte.
_SHOWN = 20
# Python that converts what is not UTF-8 and nothing else: single bytes, or fields between tabs.
_BYTES = (
    "import codecs, sys; codecs.register_error('x', lambda e: (e.object[e.start:e.end].decode("
    "'{}'), e.end)); sys.stdout.buffer.writelines(line.decode('utf-8', 'x').encode() "
    "for line in sys.stdin.buffer)"
)
_FIELDS = (
    "import re, sys; sys.stdout.buffer.writelines(part if part.decode(errors='ignore').encode() "
    "== part else part.decode('{}').encode() for line in sys.stdin.buffer "
    "for part in re.split(b'([\\t\\n])', line))"
)


def not_text(line: bytes, number: int) -> str | None:
    """What a file is if line 1 or 2 shows that it is no text in UTF-8, and how to convert it.

    Without its mark, UTF-16 is often valid UTF-8 with NULs; its first line may be empty.
    """
    for start, command in _PACKED.items():
        if line.startswith(start):
            return f"the file is packed: {command} OLD > NEW, or give it the extension that says so"
    wide = next((name for mark, name in _WIDE_MARKS.items() if line.startswith(mark)), None)
    if wide is None and line.count(0) > len(line) // 4:
        if b"\0\0\0\0" in line:  # in UTF-32 only three of four bytes can be NULs
            return "the file has NULs in a row: it is no text, or damaged"
        order = "BE" if number == 1 and line.startswith(b"\0") else "LE"
        wide = f"UTF-{32 if line.count(0) > 0.7 * len(line) else 16}{order}"
    return wide and f"the file looks like {wide}: {_iconv(wide)}"


def not_utf8(file: object, lines: Iterable[bytes], first: int = 1, fields: int = 0) -> UserError:
    """The error for a file of which one of `lines` is not UTF-8, or one of the first two no text.

    Reads all of them, to count those that are undecodable. `first`: the number of the first;
    `fields`: how many lines before it are UTF-8 beyond ASCII.
    """
    survey = _Survey(fields)
    for number, line in enumerate(lines, first):
        if number <= 2 and (what := not_text(line, number)):
            return UserError(f"{file}: not UTF-8: {what}")
        survey.add(number, line)
    return UserError(f"{file}:{survey.message()}")


@dataclass
class _Survey:
    """Of lines that are not all UTF-8.

    `fields`, `bad_fields`: those between tabs that are UTF-8 beyond ASCII, and those that are not
    UTF-8; `both`: of the latter those with characters of UTF-8; `sample`: some of the latter.
    """

    fields: int
    bad_fields: int = 0
    bad_lines: int = 0
    both: int = 0
    sample: list[bytes] = field(default_factory=list)
    is_cut: bool = False
    _place: str = ""
    _first: tuple[bytes, int] = b"", 0
    _room: int = _SAMPLE

    def add(self, number: int, line: bytes) -> None:
        self.is_cut = False
        try:
            self.fields += not line.decode().isascii()
            return
        except UnicodeDecodeError as error:
            byte, reason = error.start, error.reason
        self.bad_lines += 1
        if not self._place:
            self._first = line, byte
            self._place = f"{number}: byte {byte + 1} of the line is {line[byte]:#04x}: not UTF-8"
        # only the last line of a file may lack its end
        self.is_cut = reason == "unexpected end of data" and not line.endswith(b"\n")
        for part in line.rstrip(b"\r\n").split(b"\t"):
            rest = part.decode(errors="ignore")
            if rest.encode() == part:
                self.fields += not part.isascii()
                continue
            self.bad_fields += 1
            self.both += not rest.isascii()
            if self._room > 0:
                self.sample.append(part[: self._room])
                self._room -= len(part)

    def message(self) -> str:
        if self.is_cut and self.bad_lines == 1:
            return f"{self._place}; the file ends within a character: is it cut short?"
        encoding = guess_encoding(self.sample)
        if encoding is None:
            others = f", as {self.bad_lines - 1} other lines are not" if self.bad_lines > 1 else ""
            return f"{self._place}{others}"
        latin = encoding in LATIN
        by_chance = 0 if latin else _BY_CHANCE * self.bad_fields
        if self.fields + (self.both if latin else 0) <= by_chance:
            what = f"the file looks like {encoding} ({self._shown(encoding)})"
            return f"{self._place}; {what}: {_iconv(encoding)}"
        count = "1 line looks" if self.bad_lines == 1 else f"{self.bad_lines:,} lines look"
        code = (_BYTES if latin else _FIELDS).format(encoding)
        return (
            f"{self._place}; {count} like {encoding} ({self._shown(encoding)}) among lines in "
            f'UTF-8, so convert nothing else: python3 -c "{code}" < OLD > NEW'
        )

    def _shown(self, encoding: str) -> str:
        """Words at the first undecodable byte as they read in an encoding."""
        line, byte = self._first
        start, end = line.rfind(b"\t", 0, byte) + 1, (line + b"\t").index(b"\t", byte)
        if encoding in LATIN:
            before, after = line[start:byte].decode(), line[byte:end].decode(encoding, "replace")
            return repr(f"{before[-_SHOWN:]}{after[:_SHOWN]}".strip())
        return repr(line[start:end].decode(encoding, "replace")[: 2 * _SHOWN].strip())


def _iconv(encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 OLD > NEW"
