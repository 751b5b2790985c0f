"""Downloading: the files of a corpus, unpacked, under the names the pipeline uses.

Texts keep the bytes they were published with, but for gzip.
"""

import gzip
import shutil
import zlib
from pathlib import Path

from bleuprint.errors import UserError
from bleuprint.fetch import Source, check, fetch
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import TextFolder
from bleuprint.settings import File, FilePair, Files
from bleuprint.sieve import count

_PHRASEBOOK = "phrasebook:"


def download_corpus(
    corpus: str, files: Files, raw: TextFolder, ledger_path: Path, source: Source
) -> None:
    """Write train.PART, valid.PART and test.NAME, each in two languages, and count their pairs."""
    ledger = Ledger("download", corpus, ())
    with whole_folder(raw.path) as partial:
        after = TextFolder(partial, raw.source, raw.target)
        for name, pair in _sets(files).items():
            for file, path in zip((pair.source, pair.target), after.files(name), strict=True):
                _write(file, path, source)
            _count(pair, name, after, ledger)
            if not ledger.accounts[name].pairs_out:
                raise UserError(f"corpus {corpus}: {name}: {_name(pair.source)} holds no lines")
        ledger.write(ledger_path)


def _count(pair: FilePair, name: str, text: TextFolder, ledger: Ledger) -> None:
    """Count the pairs of a set; what is wrong with its text is told by the name users gave it."""
    try:
        count(text, name, ledger)
    except UserError as error:
        message = str(error)
        for file, path in zip((pair.source, pair.target), text.files(name), strict=True):
            message = message.replace(str(path), _name(file))
        raise UserError(message) from None


def _sets(files: Files) -> dict[str, FilePair]:
    parts = {"train": files.train, "valid": files.valid, "test": files.tests}
    return {f"{kind}.{part}": pair for kind, pairs in parts.items() for part, pair in pairs.items()}


def _name(file: File) -> str:
    return file.url or file.path or ""


def _write(file: File, path: Path, source: Source) -> None:
    if _name(file).startswith(_PHRASEBOOK):
        _write_phrasebook(_name(file).removeprefix(_PHRASEBOOK), path)
        check(path, _name(file), file)
        return
    found = fetch(file, source)
    if _name(file).endswith(".gz"):
        try:
            _unpack(found, path, _name(file))
        except UserError:
            if found.is_relative_to(source.store):
                found.unlink()  # another run is to fetch it anew
            raise
    else:
        shutil.copyfile(found, path)


def _write_phrasebook(which: str, path: Path) -> None:
    # Imported here, since other corpora have no use for its grammar.
    from bleuprint.phrasebook import sentences

    split, _, language = which.partition(".")
    with path.open("wb") as out:
        for sentence in sentences(split, language):
            out.write(f"{sentence}\n".encode())


def _unpack(packed: Path, path: Path, name: str) -> None:
    try:
        if not packed.stat().st_size:
            raise EOFError("it is empty")  # which gzip takes for a packed file of nothing
        with gzip.open(packed) as body, path.open("wb") as out:
            shutil.copyfileobj(body, out)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{name}: truncated or damaged gzip file ({packed}): {error}") from None
