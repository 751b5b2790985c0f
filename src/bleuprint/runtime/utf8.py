"""Lines of UTF-8, and what files in other encodings look like."""

from collections.abc import Iterable, Iterator
from io import BufferedReader, BytesIO
from itertools import islice

from bleuprint.runtime.errors import UserError

# The first bytes of packed files, and what unpacks them.
_PACKED = {
    b"\x1f\x8b": "gzip -dc < OLD > NEW, or rename it so that its name ends in .gz",
    b"BZh": "bzip2 -dc < OLD > NEW, or rename it so that its name ends in .bz2",
    b"\xfd7zXZ\0": "xz -dc < OLD > NEW, or rename it so that its name ends in .xz",
    b"\x28\xb5\x2f\xfd": "zstd -dc < OLD > NEW",
    b"PK\3\4": "python -m zipfile -e OLD FOLDER",
}
_ICONV = "iconv -f {0} -t UTF-8 OLD > NEW"
# As much as is read at once, such as a test set.
_BLOCK = 1 << 22


def decode_line(
    line: bytes, file: object, number: int, rest: Iterable[bytes] = (), good: int = 0
) -> str:
    """The text of a line; raises UserError, naming file, line and byte, if it is not UTF-8.

    Of lines 1 and 2 also at NULs: without a mark, UTF-16 is often valid UTF-8 with NULs, and its
    first line may be empty; of a single line without \\n also at \\r, with which old Macs end
    lines.
    `rest`: the lines after it; `good`: how many before it are UTF-8 beyond ASCII: to convert the
    whole file would destroy such lines.
    """
    if number <= 2:
        for start, command in _PACKED.items():
            if line.startswith(start):
                raise UserError(f"{file}: not UTF-8: the file is packed: {command}")
        wide = "UTF-16" if line.startswith((b"\xff\xfe", b"\xfe\xff")) else None
        if wide is None and line.count(0) > len(line) // 4:
            wide = "UTF-16BE" if number == 1 and line.startswith(b"\0") else "UTF-16LE"
        if wide:
            raise UserError(f"{file}: not UTF-8: the file looks like {wide}: {_ICONV.format(wide)}")
    if number == 1 and b"\r" in line and not line.endswith(b"\n"):
        command = r"tr '\r' '\n' < OLD > NEW"
        raise UserError(f"{file}: its lines end in \\r alone, as on old Macs: {command}")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        place, near = error.start, line[max(0, error.start - 20) : error.start + 20].strip()
        shown = repr(near.decode("cp1252", "replace"))
        hint = f"as CP1252 it reads {shown}: if that is right: {_ICONV.format('CP1252')}"
        others = [o.decode(errors="ignore").encode() == o for o in rest if not o.isascii()]
        if good or any(others):
            bad = f"{others.count(False) + 1} of its lines are not UTF-8, and others are"
            hint = f"as CP1252 it reads {shown}: {bad}: convert those alone"
        if error.reason == "unexpected end of data":
            hint = "is the file cut short?"
        where = f"{file}:{number}: byte {place + 1} of the line is {line[place]:#04x}"
        raise UserError(f"{where}: not UTF-8; {hint}") from None


def utf8_error(file: object, lines: Iterable[bytes]) -> UserError:
    """The error for a file of which one of `lines` is not UTF-8."""
    rest, good = iter(lines), 0
    try:
        for number, line in enumerate(rest, 1):
            good += not decode_line(line, file, number, rest, good).isascii()
    except UserError as error:
        return error
    raise AssertionError(f"{file} is UTF-8")


def read_line_batches(
    stream: BufferedReader | BytesIO, name: str, most: int
) -> Iterator[list[tuple[int, str]]]:
    """Batches of 1 to `most` lines of a stream with their numbers, from 1.

    Yields whatever is available, so that interactive callers get a reply per line. A line ends at
    \\n alone. A byte order mark at the start and a \\r at the end of a line are removed, as in the
    files of a corpus. Raises UserError at bytes that are not UTF-8, after the lines before them.
    """
    number, good, rest, ended = 1, 0, b"", False
    while not ended:
        try:
            block = stream.read1(_BLOCK)
        except OSError as error:
            error.filename = name
            raise
        ended = not block
        lines = BytesIO(rest + block).readlines()
        rest = b"" if ended or not lines or lines[-1].endswith(b"\n") else lines.pop()
        for start in range(0, len(lines), most):
            batch: list[tuple[int, str]] = []
            try:
                for place, line in enumerate(lines[start : start + most], start + 1):
                    text = decode_line(line, name, number, islice(lines, place, None), good)
                    good += not text.isascii()
                    text = text.removesuffix("\n").removesuffix("\r")
                    batch.append((number, text.removeprefix("\ufeff") if number == 1 else text))
                    number += 1
            finally:
                if batch:
                    yield batch
