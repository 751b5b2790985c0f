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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from bleuprint.dataset.source_tags import SourceTags
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import RERUN, DamagedFile
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.regular_files import check_regular_file, sha256_of
from bleuprint.runtime.schema import check_record, validate_document

# Imported where they are used: reading ids does not need them, and importing takes half a second.
if TYPE_CHECKING:
    from bleuprint.dataset.subwords.segmentation import Segmentation
    from bleuprint.text.tokenizers import Tokenizer

# The name and the version of the format, as the header records them.
FORMAT = "bleuprint binary corpus"
VERSION = 1
# The endings of the arrays, the header, and the folder of vocabularies.
IDS = "ids.npy"
ENDS = "ends.npy"
CORPUS = "corpus.json"
SEGMENTATION = "segmentation"

Ids = npt.NDArray[np.unsignedinteger[Any]]
Lengths = npt.NDArray[np.int64]

# The types of arrays: of token ids, the smallest type first, and of the ends of sentences.
ID_TYPES = (np.dtype("<u2"), np.dtype("<u4"))
END_TYPE = np.dtype("<i8")
# The number of sentences whose lengths are computed at once.
_SENTENCES_AT_ONCE = 1_000_000


class Sentences:
    """The sentences of a set in one language: item i is the token ids of sentence i, with EOS.

    An item is a view of the mapped file, so that the operating system reads only what is used.
    """

    def __init__(self, ids: Path, ends: Path) -> None:
        """Map two files into memory.

        Args:
            ids: The token ids of all sentences, one after the other.
            ends: For each sentence the index after its last id.
        """
        self._paths = (ids, ends)
        # Plain arrays over the mapping: slicing np.memmap takes several times as long.
        self._ids: Ids = _load_array(ids)
        self._ends: Lengths = _load_array(ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> Ids:
        """Return the token ids of a sentence, EOS included.

        They are a view of the mapped file, so nothing is copied.

        Args:
            index: The number of the sentence, from 0.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        # A sentence begins where the one before it ends.
        start = self._ends[index - 1] if index > 0 else 0
        end = self._ends[index]
        sentence: Ids = self._ids[start:end]
        return sentence

    @property
    def lengths(self) -> Lengths:
        """Return the number of token ids of each sentence, EOS included."""
        lengths: Lengths = np.diff(self._ends, prepend=0)
        return lengths

    def length_parts(self) -> Iterator[Lengths]:
        """Yield the lengths of a million sentences at a time, so that little memory is needed."""
        previous_end = 0
        for start in range(0, len(self), _SENTENCES_AT_ONCE):
            ends = self._ends[start : start + _SENTENCES_AT_ONCE]
            yield np.diff(ends, prepend=previous_end)
            previous_end = ends[-1]

    @property
    def longest(self) -> int:
        """Return the number of token ids of the longest sentence, EOS included; 0 if none."""
        longest = 0
        for lengths in self.length_parts():
            longest = max(longest, int(lengths.max()))
        return longest

    @property
    def token_count(self) -> int:
        """Return the number of token ids of all sentences, EOS included."""
        return int(self._ends[-1]) if len(self) > 0 else 0

    def __reduce__(self) -> tuple[type["Sentences"], tuple[Path, Path]]:
        # Another process maps the files again; pickling a mapping would copy its content.
        return Sentences, self._paths


@dataclass(frozen=True)
class SetSize:
    """The size of a set.

    Attributes:
        pairs: The number of sentence pairs.
        source_tokens: The number of source tokens, EOS included.
        target_tokens: The number of target tokens, EOS included.
        unknown: How many tokens of both sides are UNK.
    """

    pairs: int
    source_tokens: int
    target_tokens: int
    unknown: int


class _FileHeader(TypedDict):
    """What corpus.json records about a file: its size in bytes and its SHA-256."""

    size: int
    sha256: str


class _Header(TypedDict):
    """The content of corpus.json; `clean` and `tokenize` are checked where they are used.

    `tags` are the target languages by tag, in a corpus of several translation directions.
    """

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

    Attributes:
        folder: Its folder.
        source: The source language.
        target: The target language.
        joint: Whether both languages share one vocabulary.
        tags: The tags of the source sentences, in a corpus of several directions.
        clean: The settings of the edits that cleaned the text, by name.
        sets: The sizes of the sets, by name.
    """

    def __init__(self, folder: Path) -> None:
        """Open the folder of a corpus, and read its header corpus.json.

        The files of sets and languages are read when they are used for the first time.

        Raises:
            UserError: corpus.json is missing, damaged, or of another version of the format.
        """
        header = _read_header(folder / CORPUS)
        self.folder = folder
        self._header = header
        self.source: str = header["source"]
        self.target: str = header["target"]
        self.joint: bool = header["joint"]
        self.tags = SourceTags(header.get("tags", {}), lambda: self.segmentation(self.source))
        self.clean: dict[str, Any] = header["clean"]
        self.sets = {name: SetSize(**size) for name, size in header["sets"].items()}
        self._file_headers = {folder / name: file for name, file in header["files"].items()}
        # What has been read so far: sentences by set and language, the rest by language; and the
        # files whose hashes have been compared.
        self._sentences: dict[tuple[str, str], Sentences] = {}
        self._segmentations: dict[str, Segmentation] = {}
        self._tokenizers: dict[str, Tokenizer] = {}
        self._verified: set[Path] = set()

    def side(self, set_name: str, language: str) -> Sentences:
        """Return the sentences of a set in one language.

        Args:
            set_name: The set: train, valid or test.NAME.
            language: The source or the target language.

        Raises:
            UserError: There is no such set, or one of its files is damaged.
        """
        if set_name not in self.sets:
            raise UserError(
                f"{self.folder}: no set {set_name!r}; there are: {', '.join(self.sets)}"
            )
        # Opening the files takes time, so they are opened only once.
        key = (set_name, language)
        if key not in self._sentences:
            ids = self.folder / f"{set_name}.{language}.{IDS}"
            ends = self.folder / f"{set_name}.{language}.{ENDS}"
            self._sentences[key] = Sentences(ids, ends)
        return self._sentences[key]

    def segmentation(self, language: str) -> "Segmentation":
        """Return the object that splits words of a language into token ids, and joins them again.

        It is read on the first call, after its files were compared with their recorded hashes.
        """
        from bleuprint.dataset.subwords.segmentation import Segmentation

        if language not in self._segmentations:
            folder = self.folder / SEGMENTATION
            self._verify(path for path in self._file_headers if folder in path.parents)
            self._segmentations[language] = Segmentation.read(folder, language)
        return self._segmentations[language]

    def tokenizer(self, language: str) -> "Tokenizer":
        """Return the tokenizer of a language, with the settings that tokenized the corpus.

        The header of the corpus records the settings. The tokenizer is created on the first call.
        """
        from bleuprint.text.tokenizers import Tokenize, tokenizer_for

        if language not in self._tokenizers:
            settings = validate_document(Tokenize, self._header["tokenize"], self.folder / CORPUS)
            self._tokenizers[language] = tokenizer_for(language, settings)
        return self._tokenizers[language]

    def text(self, language: str, ids: Iterable[int]) -> str:
        """Return the detokenized sentence with these token ids.

        Args:
            language: The language of the sentence.
            ids: The token ids of the sentence.
        """
        words = self.segmentation(language).decode(ids)
        return self.tokenizer(language).detokenize(words)

    def translation(self, source: Iterable[int], ids: Iterable[int]) -> str:
        """Return the text of a translation: join its tokens to words, and the words to a sentence.

        Args:
            source: The token ids of the source, which may begin with the tag of a target language.
            ids: The token ids of the translation.
        """
        words = self.segmentation(self.target).decode(ids)
        detokenize = self.detokenizer(source)
        return detokenize(words)

    def detokenizer(self, source: Iterable[int]) -> Callable[[Sequence[str]], str]:
        """Return the function that joins the words of a translation to a sentence.

        The function follows the rules of the target language, for example for spaces before
        punctuation marks.

        Args:
            source: The token ids of the source sentence. In a corpus of several translation
                directions, it begins with a tag that names the target language.
        """
        language = self.tags.target_of(source, self.target)
        return self.tokenizer(language).detokenize

    @property
    def target_languages(self) -> list[str]:
        """Return the languages into which the corpus is translated.

        A corpus of several translation directions may have several target languages. In this case,
        the attribute `target` is only the ending of the files with the translations.
        """
        return self.tags.target_languages(self.target)

    def source_prefix(self, target: str) -> list[int]:
        """Return the token ids to put before a source, to request a translation into a language.

        The list is empty in a corpus of one language pair.
        """
        return self.tags.prefix(target)

    def sentence_start(self, source: Sequence[int]) -> int:
        """Return the index of a source's first token after its tag; 0 without tags."""
        return self.tags.sentence_start(source)

    def search_lengths(self, sources: Sentences) -> Lengths:
        """Return the lengths of source sentences, EOS included, with 1 for all that are empty.

        The search skips sentences of length 1, which consist of EOS alone. A sentence that consists
        of a tag and EOS is empty, too.
        """
        ids = (sources[row].tolist() for row in range(len(sources)))
        return self.tags.search_lengths(ids, sources.lengths)

    def words_without_tag(self, line: str) -> list[str]:
        """Return the words of a line of the tokenized sources, without the tag."""
        return self.tags.words_without_tag(line)

    def check_sentence(self, sentence: str, words: Iterable[str]) -> None:
        """Raise UserError if a sentence to translate contains a tag as one of its words.

        Args:
            sentence: The sentence, for the message.
            words: The words of the tokenized sentence.
        """
        self.tags.check_sentence(sentence, words)

    def verify(self, set_name: str | None = None) -> None:
        """Check that files have not changed since the corpus was written, by their SHA-256.

        Each file is hashed only once. One core hashes 1.9 GB/s with instructions for SHA-256
        (Zen 5) and 0.5 GB/s without: 3 s or 10 s for 40 million pairs.

        Args:
            set_name: The set whose files are checked, such as `train`; None for all files.

        Raises:
            UserError: A file is missing, or its bytes have changed.
        """
        prefix = "" if set_name is None else f"{set_name}."
        self._verify(path for path in self._file_headers if path.name.startswith(prefix))

    def _verify(self, paths: Iterable[Path]) -> None:
        """Compare files with the hashes in the header, unless this has been done before.

        Raises:
            UserError: A file is missing, or its bytes have changed.
        """
        for path in paths:
            if path in self._verified:
                continue
            if not path.is_file():
                raise UserError(f"{path}: no such file, although {CORPUS} lists it. {RERUN}")
            if sha256_of(path) != self._file_headers[path]["sha256"]:
                raise DamagedFile(path, f"its SHA-256 differs from the one in {CORPUS}")
            self._verified.add(path)

    @property
    def file_hashes(self) -> dict[str, str]:
        """Return the recorded SHA-256 of each file, by its path in the folder."""
        files: dict[str, dict[str, Any]] = self._header["files"]
        return {name: file["sha256"] for name, file in files.items()}

    @property
    def training_sha256(self) -> str:
        """Return a hash of everything that a training run reads from the corpus.

        The header contains the hashes of all files. Hashed is the header without its test sets,
        which training does not read: adding a test set does not make a trained model outdated.
        """
        header = dict(self._header)
        header["sets"] = _without_test_sets(header["sets"])
        header["files"] = _without_test_sets(header["files"])
        return _header_sha256(header)

    def __reduce__(self) -> tuple[type["BinaryCorpus"], tuple[Path]]:
        # Another process opens the files again; pickling would copy what has been read.
        return BinaryCorpus, (self.folder,)


def write_header(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the header of a corpus, corpus.json, by which a reader recognizes damaged files.

    The format, and the size and SHA-256 of each file in the folder, are added to the content; and
    at the end the SHA-256 of the header itself.

    Args:
        folder: The folder of the corpus; all its other files must have been written.
        content: Everything else that the header records, such as the languages.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            files[name] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    header.update(content)
    header["files"] = files
    header["sha256"] = _header_sha256(header)
    write_json(folder / CORPUS, header)


def _load_array(path: Path) -> Any:
    """Map a file of token ids, or of the ends of sentences, into memory, and check its shape.

    Args:
        path: The file, in numpy's format .npy.

    Raises:
        UserError: The file is missing or damaged.
    """
    try:
        check_regular_file(path)
        array = np.asarray(np.load(path, mmap_mode="r"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. {RERUN}") from None
    except (ValueError, EOFError, OverflowError, MemoryError) as error:
        # np.load raises each of these for a file whose header or length is wrong.
        raise DamagedFile(path, str(error) or type(error).__name__) from None
    if array.ndim != 1 or array.dtype not in (*ID_TYPES, END_TYPE):
        raise DamagedFile(
            path, f"expected a list of ids or lengths, but found {array.shape} {array.dtype}"
        )
    return array


def _read_header(path: Path) -> dict[str, Any]:
    """Read and check corpus.json, the header of a corpus.

    Its field `sha256` must be the SHA-256 of all its other fields.

    Returns:
        The header without its SHA-256.

    Raises:
        UserError: The file is missing, damaged, or of another version of the format.
    """
    header = read_json_object(path)
    version = header.get("version")
    if version != VERSION:
        raise UserError(
            f"{path}: the format has version {version}, but this bleuprint reads version "
            f"{VERSION}. {RERUN}"
        )
    check_record(_Header, header, path)
    recorded_sha256 = header.pop("sha256")
    if recorded_sha256 != _header_sha256(header):
        raise DamagedFile(path, "its SHA-256 differs from the recorded one")
    return header


def _without_test_sets(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a header that do not belong to a test set.

    Args:
        entries: The entries by the name of a set, such as `test.2016`; or by the name of a file,
            such as `test.2016.de.ids.npy`.
    """
    return {name: entry for name, entry in entries.items() if not name.startswith("test.")}


def _header_sha256(header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a header as JSON text; it depends on the order of the keys."""
    return hashlib.sha256(json.dumps(header).encode()).hexdigest()
