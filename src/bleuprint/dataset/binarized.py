"""A corpus as arrays of ids on disk, read through memory mapping.

A folder contains, for each SET and LANGUAGE, two one-dimensional arrays in numpy's format, version
1.0, little-endian and aligned to 64 bytes:

- SET.LANGUAGE.ids.npy: the ids of all sentences, each followed by EOS; 16 bits if the vocabulary
  is small enough, else 32
- SET.LANGUAGE.ends.npy: the index after the last id of each sentence; 64 bits

It also contains segmentation/, the output of `learn_segmentation`, and corpus.json, the header:
format and version, languages, whether they share a vocabulary, cleaning and tokenization settings,
sizes of the sets, size and SHA-256 of every file, and its own SHA-256; with several directions also
the target languages by tag, where source and target stand for the languages of both sides. Opening
a corpus reads the header; the files of a set or language are opened on first use. Files are only
read, so any number of processes can share them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from bleuprint.dataset.source_tags import SourceTags
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import (
    RERUN,
    DamagedFile,
    check_regular_file,
    read_json_object,
    sha256_of,
    write_json,
)
from bleuprint.runtime.schema import check_record, validate_document

# Imported where they are used: reading ids does not need them, and importing takes half a second.
if TYPE_CHECKING:
    from bleuprint.dataset.subwords.segmentation import Segmentation
    from bleuprint.text.tokenizers import Tokenizer

FORMAT, VERSION = "bleuprint binary corpus", 1
IDS, ENDS, CORPUS, SEGMENTATION = "ids.npy", "ends.npy", "corpus.json", "segmentation"

Ids = npt.NDArray[np.unsignedinteger[Any]]
Lengths = npt.NDArray[np.int64]

# The types that arrays may have.
ID_TYPES = tuple(map(np.dtype, ("<u2", "<u4")))
END_TYPE = np.dtype("<i8")


class Sentences:
    """One side of one set: item i is the ids of sentence i, EOS included, a view of the file."""

    def __init__(self, ids: Path, ends: Path) -> None:
        self._paths = ids, ends
        # Plain arrays over the mapping: slicing np.memmap takes several times as long.
        self._ids: Ids = _load_array(ids)
        self._ends: Lengths = _load_array(ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Ids:
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        start = self._ends[index - 1] if index else 0
        sentence: Ids = self._ids[start : self._ends[index]]
        return sentence

    @property
    def lengths(self) -> Lengths:
        """The number of ids of each sentence, EOS included."""
        lengths: Lengths = np.diff(self._ends, prepend=0)
        return lengths

    def __reduce__(self) -> tuple[type["Sentences"], tuple[Path, Path]]:
        # Another process maps the files again; pickling a mapping would copy its content.
        return Sentences, self._paths


@dataclass(frozen=True)
class SetSize:
    """The size of a set; tokens include EOS, `unknown` is the number of UNK on both sides."""

    pairs: int
    source_tokens: int
    target_tokens: int
    unknown: int


class _FileHeader(TypedDict):
    """What corpus.json records of a file."""

    size: int
    sha256: str


class _Header(TypedDict):
    """The content of corpus.json; `clean` and `tokenize` are checked where they are used."""

    format: str
    version: int
    source: str
    target: str
    joint: bool
    clean: dict[str, Any]
    tokenize: dict[str, Any]
    sets: dict[str, SetSize]
    tags: NotRequired[dict[str, str]]
    files: dict[str, _FileHeader]
    sha256: str


class BinaryCorpus:
    """A corpus written by the stage binarize.

    Raises UserError if corpus.json is missing, damaged or of another version of the format.
    """

    def __init__(self, folder: Path) -> None:
        header = _read_header(folder / CORPUS)
        self.folder, self._header = folder, header
        self.source: str = header["source"]
        self.target: str = header["target"]
        self.joint: bool = header["joint"]
        self.tags = SourceTags(header.get("tags", {}), lambda: self.segmentation(self.source))
        self.clean: dict[str, Any] = header["clean"]
        self.sets = {name: SetSize(**size) for name, size in header["sets"].items()}
        self._files = {folder / name: file for name, file in header["files"].items()}
        self._sides: dict[tuple[str, str], Sentences] = {}
        self._segmentations: dict[str, Segmentation] = {}
        self._tokenizers: dict[str, Tokenizer] = {}
        self._verified: set[Path] = set()

    def side(self, set_name: str, language: str) -> Sentences:
        """One side of train, valid or test.NAME."""
        if set_name not in self.sets:
            raise UserError(
                f"{self.folder}: no set {set_name!r}; there are: {', '.join(self.sets)}"
            )
        if (set_name, language) not in self._sides:
            base = self.folder / f"{set_name}.{language}"
            opened = Sentences(Path(f"{base}.{IDS}"), Path(f"{base}.{ENDS}"))
            self._sides[set_name, language] = opened
        return self._sides[set_name, language]

    def segmentation(self, language: str) -> "Segmentation":
        """The segmentation of a language, which maps words to ids and back."""
        from bleuprint.dataset.subwords.segmentation import Segmentation

        if language not in self._segmentations:
            folder = self.folder / SEGMENTATION
            self._verify(path for path in self._files if folder in path.parents)
            self._segmentations[language] = Segmentation.read(folder, language)
        return self._segmentations[language]

    def tokenizer(self, language: str) -> "Tokenizer":
        """The tokenizer of a language, with the settings that the corpus was tokenized with."""
        from bleuprint.text.tokenizers import Tokenize, tokenizer_for

        if language not in self._tokenizers:
            settings = validate_document(Tokenize, self._header["tokenize"], self.folder / CORPUS)
            self._tokenizers[language] = tokenizer_for(language, settings)
        return self._tokenizers[language]

    def text(self, language: str, ids: Iterable[int]) -> str:
        """The detokenized sentence of these ids."""
        words = self.segmentation(language).decode(ids)
        return self.tokenizer(language).detokenize(words)

    def translation(self, source: Iterable[int], ids: Iterable[int]) -> str:
        """The detokenized translation of a source, both as token ids."""
        return self.detokenizer(source)(self.segmentation(self.target).decode(ids))

    def detokenizer(self, source: Iterable[int]) -> Callable[[Sequence[str]], str]:
        """Joins the words of a source's translation, by the rules of its language."""
        return self.tokenizer(self.tags.target_of(source, self.target)).detokenize

    @property
    def target_languages(self) -> list[str]:
        """The languages of the translations; `target` names the files of their texts."""
        return self.tags.target_languages(self.target)

    def source_prefix(self, target: str) -> list[int]:
        """The token ids that precede each source to translate into a language, if any."""
        return self.tags.prefix(target)

    def sentence_start(self, source: Sequence[int]) -> int:
        """How many token ids of a source precede its sentence."""
        return self.tags.sentence_start(source)

    def search_lengths(self, sources: Sentences) -> Lengths:
        """The lengths of sources for a search, EOS included; 1 for an empty sentence."""
        ids = (sources[row].tolist() for row in range(len(sources)))
        return self.tags.search_lengths(ids, sources.lengths)

    def source_words(self, line: str) -> list[str]:
        """The words of a line of the tokenized sources, without what precedes its sentence."""
        return self.tags.words(line)

    def check_sentence(self, sentence: str, words: Iterable[str]) -> None:
        """Raise UserError if a sentence to translate contains a word that is kept for sources."""
        self.tags.check_sentence(sentence, words)

    def verify(self, set_name: str | None = None) -> None:
        """Compare the bytes of all files, or of one set, with the hashes in the header.

        A file is hashed once in the life of this object, at 1.9 GB/s on a processor that has
        instructions for SHA-256 (Zen 5; one core) and 0.5 GB/s on others: 3 s, or 10 s, for 40
        million pairs.

        Raises:
            UserError: A file is missing or has other bytes.
        """
        begin = "" if set_name is None else f"{set_name}."
        self._verify(path for path in self._files if path.name.startswith(begin))

    def _verify(self, paths: Iterable[Path]) -> None:
        for path in paths:
            if path in self._verified:
                continue
            if not path.is_file():
                raise UserError(f"{path}: no such file, although {CORPUS} lists it; {RERUN}")
            if sha256_of(path) != self._files[path]["sha256"]:
                raise DamagedFile(path, f"its SHA-256 is not the one in {CORPUS}")
            self._verified.add(path)

    @property
    def file_hashes(self) -> dict[str, str]:
        """The recorded SHA-256 of each file, by its name in the folder."""
        files: dict[str, dict[str, Any]] = self._header["files"]
        return {name: file["sha256"] for name, file in files.items()}

    @property
    def training_sha256(self) -> str:
        """That of the header without the test sets, which no training reads."""
        parts = {
            part: {n: it for n, it in self._header[part].items() if not n.startswith("test.")}
            for part in ("sets", "files")
        }
        return _digest({**self._header, **parts})

    def __reduce__(self) -> tuple[type["BinaryCorpus"], tuple[Path]]:
        # Another process opens the files again; pickling would copy what has been read.
        return BinaryCorpus, (self.folder,)


def write_header(folder: Path, content: Mapping[str, Any]) -> None:
    """Write corpus.json; all other files of the corpus must have been written."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = ({"size": path.stat().st_size, "sha256": sha256_of(path)} for path in paths)
    names = (path.relative_to(folder).as_posix() for path in paths)
    files = dict(zip(names, sizes, strict=True))
    header = {"format": FORMAT, "version": VERSION, **content, "files": files}
    write_json(folder / CORPUS, {**header, "sha256": _digest(header)})


def _load_array(path: Path) -> Any:
    """Map the array in a .npy file; raises UserError if it is missing or damaged."""
    try:
        check_regular_file(path)
        array = np.asarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {RERUN}") from None
    except (ValueError, EOFError, OverflowError, MemoryError) as error:
        raise DamagedFile(path, str(error) or type(error).__name__) from None
    if array.ndim != 1 or array.dtype not in (*ID_TYPES, END_TYPE):
        raise DamagedFile(path, f"it is no list of ids or lengths, but {array.shape} {array.dtype}")
    return array


def _read_header(path: Path) -> dict[str, Any]:
    header = read_json_object(path)
    if (version := header.get("version")) != VERSION:
        raise UserError(
            f"{path}: version {version} of the format; this bleuprint reads {VERSION}; {RERUN}"
        )
    check_record(_Header, header, path)
    if header.pop("sha256") != _digest(header):
        raise DamagedFile(path, "its SHA-256 is not the recorded one")
    return header


def _digest(header: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(header).encode()).hexdigest()
