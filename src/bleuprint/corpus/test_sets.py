"""The stage test_stats: describe the test sets of a corpus by lengths, word counts and documents.

`describe_test_sets` is the stage. It also looks for problems of whole sets (set_findings.py). Other
stages find the names of test sets here, and read the descriptions.

Memory grows with the test sets. The training text is read twice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.corpus.set_findings import find_problems
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder, read_lines


@dataclass(frozen=True)
class SetDescription:
    """The description of a test set, one entry per line except for the word counts.

    Attributes:
        source_tokens: The number of tokens of each source.
        reference_tokens: The tokens of each reference, separated by spaces.
        training_counts: How often each word of the references occurs in the target side of the
            training text. None if the tokens are characters.
        documents: The id of the document that contains each line. None if documents are unknown.
    """

    source_tokens: Sequence[int]
    reference_tokens: Sequence[str]
    training_counts: dict[str, int] | None
    documents: Sequence[str] | None

    def __post_init__(self) -> None:
        """Check that each line of the test set, and each word of its references, is described.

        Raises:
            ValueError: An entry is missing, for example in a file that was edited by hand.
        """
        line_count = len(self.source_tokens)
        reference_count = len(self.reference_tokens)
        if reference_count != line_count:
            raise ValueError(f"{line_count} source_tokens, {reference_count} reference_tokens")
        if self.documents is not None and len(self.documents) != line_count:
            raise ValueError(f"{line_count} source_tokens, {len(self.documents)} documents")
        if self.training_counts is not None:
            uncounted_words = _words_of(self.reference_tokens) - self.training_counts.keys()
            if uncounted_words:
                raise ValueError(
                    f"training_counts lacks {min(uncounted_words)!r}, which is in reference_tokens"
                )


def names_of_test_sets(corpus: Corpus, texts: TextFolder) -> list[str]:
    """Return the names of all test sets of a corpus, such as `flickr2016`.

    Args:
        corpus: The settings of the corpus.
        texts: The folder with the corpus's training, validation and test sets.

    Returns:
        The test sets that params.yaml lists, in its order; then the test set that was drawn from
        the training text, if any.

    Raises:
        UserError: A test set that params.yaml names does not exist.
    """
    existing = []
    for set_name in texts.set_names():
        if set_name.startswith("test."):
            existing.append(set_name.removeprefix("test."))
    names = list(corpus.files.tests)
    for name in names:
        if name not in existing:
            source_path, _ = texts.files(f"test.{name}")
            raise UserError(f"{source_path}: no such file")
    drawn_names = [name for name in existing if name not in names]
    return names + drawn_names


def translated_test_sets(
    settings: Settings, system: str, corpus: str, texts: TextFolder
) -> list[str]:
    """Return the names of the test sets that a system translates.

    These are all test sets of a corpus, except for an external system, whose translations of some
    test sets come in files.

    Args:
        settings: The settings of the experiment.
        system: System name, such as `transformer`.
        corpus: The name of the corpus with the test sets.
        texts: The folder with the corpus's training, validation and test sets.

    Raises:
        UserError: A test set that params.yaml names does not exist.
    """
    # The test sets that the settings of an external system list; None for other systems.
    named_sets = settings.selected_tests(system, corpus)
    if named_sets is not None:
        return named_sets
    return names_of_test_sets(settings.corpus(corpus), texts)


def describe_test_sets(name: str, corpus: Corpus, root: Path = Path()) -> None:
    """Describe the test sets of a corpus in files, for scores by length, rare words and document.

    TEST.json contains the lengths of the sentences, how often the words of the references occur in
    the training text, and the documents. Another file lists problems, such as a test sentence that
    is also in the validation set.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        root: The project folder; by default the current folder.
    """
    split = text_of_stage("split", name, corpus, root)
    tokenized = split.with_path(paths.corpus_folder(name, "tokens", root))
    has_words = corpus.tokenize.name != "characters"
    descriptions = dict[str, SetDescription]()
    for test_set in names_of_test_sets(corpus, split):
        pairs = list(tokenized.pairs(f"test.{test_set}"))
        descriptions[test_set] = SetDescription(
            source_tokens=[len(corpus.words_without_tag(pair.source)) for pair in pairs],
            reference_tokens=[pair.target for pair in pairs],
            training_counts=None,
            documents=_read_document_ids(name, corpus, test_set, root),
        )
    if has_words:
        descriptions = _with_training_counts(name, tokenized, descriptions)
    with atomic_folder(paths.corpus_folder(name, "test_stats", root)) as unfinished:
        for test_set, description in descriptions.items():
            write_json(unfinished / f"{test_set}.json", asdict(description))
        find_problems(name, corpus, root).write(unfinished)


def _read_document_ids(name: str, corpus: Corpus, test_set: str, root: Path) -> list[str] | None:
    """Read which document each line of a test set belongs to.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        test_set: Test set, such as `flickr2016`.
        root: The project folder.

    Returns:
        The id of the document of each line; None if the published test set does not say it.
    """
    # In a corpus of several language pairs, test sets are renamed. The ids are in a file of the
    # downloaded test set, which has its original name.
    pair_name, original_name = corpus.origin_of_test(name, test_set)
    path = paths.document_ids_file(paths.download_folder(pair_name, root), f"test.{original_name}")
    if not path.exists():
        return None
    return list(read_lines(path))


def _with_training_counts(
    name: str, tokenized: TextFolder, descriptions: Mapping[str, SetDescription]
) -> dict[str, SetDescription]:
    """Add to the descriptions of test sets how often each reference word is in the training text.

    The training text is read once for all test sets.

    Args:
        name: The name of the corpus.
        tokenized: The folder of the tokenized corpus.
        descriptions: The descriptions by test set, still without these counts.

    Returns:
        The same descriptions with the counts.
    """
    all_words = set[str]()
    for description in descriptions.values():
        all_words |= _words_of(description.reference_tokens)
    counts = _count_words(name, tokenized, all_words)
    counted_descriptions = {}
    for test_set, description in descriptions.items():
        words = " ".join(description.reference_tokens).split()
        # A dictionary, because a set has no order: the same text must give the same file.
        training_counts = {word: counts[word] for word in words}
        counted_descriptions[test_set] = replace(description, training_counts=training_counts)
    return counted_descriptions


def _count_words(name: str, tokenized: TextFolder, words: Collection[str]) -> Counter[str]:
    """Count how often each of some words occurs in the target sentences of the training text.

    Args:
        name: The name of the corpus, for the progress bar.
        tokenized: The folder of the tokenized corpus.
        words: The words to count.
    """
    counts = Counter[str]()
    if not words:
        return counts
    _, target_path = tokenized.files("train")
    lines = read_lines(target_path)
    with Progress(f"describe tests {name}", tokenized.count("train"), "lines") as progress:
        # Joining many lines before they are split into words is faster than splitting each line.
        while block := list(islice(lines, BLOCK_PAIRS)):
            tokens = " ".join(block).split()
            counts.update([token for token in tokens if token in words])
            progress.advance(len(block))
    return counts


def _words_of(lines: Iterable[str]) -> set[str]:
    """Return the different words of tokenized lines."""
    return set(" ".join(lines).split())


def read_set_description(folder: Path, test_set: str) -> SetDescription:
    """Read the description of a test set: lengths, word counts and documents.

    Args:
        folder: The folder with the descriptions of a corpus's test sets.
        test_set: Test set, such as `flickr2016`.
    """
    return read_record(SetDescription, folder / f"{test_set}.json")
