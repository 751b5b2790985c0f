"""The stage describe_tests: hashes, lengths and word frequencies of a corpus's test sets.

Memory grows with the test sets; the training text is read once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, whole_folder, write_json
from bleuprint.runtime.progress import track
from bleuprint.text.parallel import TextFolder, read_lines

SHORT = 12


@dataclass(frozen=True)
class Description:
    """A test set; `sources` and `references` are the SHA-256 of its files.

    `source_tokens`: the number of tokens of each source; `reference_tokens`: the tokens of each
    reference, separated by spaces; `training_counts`: their frequencies in the training text, None
    if tokens are characters; `documents`: the id of each line's document, None if not known.
    """

    lines: int
    sources: str
    references: str
    source_tokens: Sequence[int]
    reference_tokens: Sequence[str]
    training_counts: dict[str, int] | None
    documents: Sequence[str] | None = None

    def check(self, sources: Path, references: Path) -> None:
        """Raise UserError if the files are not those described."""
        for path, expected in ((sources, self.sources), (references, self.references)):
            found = sha256_of(path)
            if found != expected:
                raise UserError(
                    f"{path}: SHA-256 is {found[:SHORT]}..., not {expected[:SHORT]}... as when the "
                    "test set was described; run: dvc repro"
                )


def names_of_test_sets(corpus: Corpus, texts: TextFolder) -> list[str]:
    """The test sets of a corpus: those of params.yaml in its order, then those drawn by split."""
    names = [name.removeprefix("test.") for name in texts.names() if name.startswith("test.")]
    missing = [name for name in corpus.files.tests if name not in names]
    if missing:
        raise UserError(f"{texts.files(f'test.{missing[0]}')[0]}: no such file")
    if not names:
        raise UserError(f"{texts.path}: has no test set")
    return [*corpus.files.tests, *(name for name in names if name not in corpus.files.tests)]


def describe_test_sets(
    name: str, corpus: Corpus, given: Path, texts: Path, tokens: Path, folder: Path
) -> None:
    """Write TEST.json for each test set of a corpus.

    `given` is the folder of its downloaded text, `texts` that of the split text, `tokens` that of
    its tokens.
    """
    split, tokenized = (TextFolder(path, corpus.source, corpus.target) for path in (texts, tokens))
    names = names_of_test_sets(corpus, split)
    tests = {test: _described(given, split, tokenized, test) for test in names}
    in_words = corpus.tokenize.name != "characters"
    counts = _training_counts(name, tokenized, tests.values()) if in_words else {}
    with whole_folder(folder) as unfinished:
        for test, described in tests.items():
            words = {word: counts[word] for word in _words(described)} if in_words else None
            content = {**vars(described), "training_counts": words}
            if described.documents is None:
                del content["documents"]
            write_json(unfinished / f"{test}.json", content)


def read_description(folder: Path, test: str) -> Description:
    """The description of a test set that `describe_test_sets` wrote."""
    path = folder / f"{test}.json"
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    names = [field.name for field in fields(Description)]
    content = read_object(path, [name for name in names if name != "documents"])
    return Description(**{name: content[name] for name in names if name in content})


def _described(given: Path, texts: TextFolder, tokens: TextFolder, test: str) -> Description:
    sources, references = texts.files(f"test.{test}")
    lines = sum(1 for _ in texts.pairs(f"test.{test}"))
    pairs, ids = list(tokens.pairs(f"test.{test}")), paths.document_ids(given, f"test.{test}")
    documents = list(read_lines(ids)) if ids.exists() else None
    for path, each in (tokens.files(f"test.{test}")[0], pairs), (ids, documents):
        if each is not None and len(each) != lines:
            counts = f"{path} has {len(each)} lines and {sources} has {lines}"
            raise UserError(f"{counts}; run: dvc repro")
    return Description(
        lines=lines,
        sources=sha256_of(sources),
        references=sha256_of(references),
        source_tokens=[len(pair.source.split()) for pair in pairs],
        reference_tokens=[pair.target for pair in pairs],
        training_counts=None,
        documents=documents,
    )


def _training_counts(name: str, tokens: TextFolder, tests: Iterable[Description]) -> dict[str, int]:
    """The frequencies of the words of references in the training text."""
    counts = dict.fromkeys(chain.from_iterable(map(_words, tests)), 0)
    train = tokens.files("train")[1]
    progress = track(read_lines(train), f"describe tests {name}", tokens.count("train"), "lines")
    for line in progress:
        for word in line.split():
            if word in counts:
                counts[word] += 1
    return counts


def _words(test: Description) -> list[str]:
    """The words of references."""
    return " ".join(test.reference_tokens).split()
