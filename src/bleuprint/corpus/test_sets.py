"""The stage test_stats: lengths, word frequencies and documents of a corpus's test sets.

Also what is wrong with whole sets (set_findings.py). Memory grows with the test sets; the training
text is read twice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.corpus.set_findings import set_findings
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, write_json
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder, read_lines


@dataclass(frozen=True)
class SetDescription:
    """A test set.

    `source_tokens`: the number of tokens of each source; `reference_tokens`: the tokens of each
    reference, separated by spaces; `training_counts`: their frequencies in the training text, None
    if tokens are characters; `documents`: the id of each line's document, None if not known.
    """

    source_tokens: Sequence[int]
    reference_tokens: Sequence[str]
    training_counts: dict[str, int] | None
    documents: Sequence[str] | None

    def __post_init__(self) -> None:
        lines = len(self.source_tokens)
        if len(self.reference_tokens) != lines:
            raise ValueError(
                f"{lines} source_tokens, {len(self.reference_tokens)} reference_tokens"
            )
        if self.documents is not None and len(self.documents) != lines:
            raise ValueError(f"{lines} source_tokens, {len(self.documents)} documents")
        words = set(" ".join(self.reference_tokens).split())
        if self.training_counts is not None and words - self.training_counts.keys():
            missing = min(words - self.training_counts.keys())
            raise ValueError(f"training_counts lacks {missing!r}, which is in reference_tokens")


def names_of_test_sets(corpus: Corpus, texts: TextFolder) -> list[str]:
    """The test sets of a corpus: those of params.yaml in its order, then those drawn by split."""
    there = [name.removeprefix("test.") for name in texts.names() if name.startswith("test.")]
    names = [*dict.fromkeys((*corpus.files.tests, *there))]
    if missing := [name for name in names if name not in there]:
        raise UserError(f"{texts.files(f'test.{missing[0]}')[0]}: no such file")
    return names


def translated_test_sets(
    settings: Settings, system: str, corpus: str, texts: TextFolder
) -> list[str]:
    """Return the names of the test sets that a system translates.

    Args:
        settings: The settings of the experiment.
        system: The system.
        corpus: The corpus of the test sets.
        texts: The split corpus.

    Raises:
        UserError: A test set that params.yaml names does not exist.
    """
    named = settings.tests_of(system, corpus)
    return names_of_test_sets(settings.corpus(corpus), texts) if named is None else named


def describe_test_sets(name: str, corpus: Corpus, root: Path = Path()) -> None:
    """Write TEST.json for each test set of a corpus, and the faults of its sets, if any."""
    split, tokenized = (
        TextFolder(paths.folder(name, stage, root), *corpus.languages)
        for stage in ("split", "tokens")
    )
    described = dict[str, SetDescription]()
    for test in names_of_test_sets(corpus, split):
        pair_name, own_name = corpus.origin_of_test(name, test)
        ids = paths.document_ids(paths.given(pair_name, root), f"test.{own_name}")
        documents = [*read_lines(ids)] if ids.exists() else None
        pairs = list(tokenized.pairs(f"test.{test}"))
        lengths = [len(corpus.source_words(p.source)) for p in pairs]
        references = [p.target for p in pairs]
        words = dict.fromkeys(" ".join(references).split(), 0)
        in_words = corpus.tokenize.name != "characters"
        described[test] = SetDescription(
            lengths, references, words if in_words else None, documents
        )
    _count(name, tokenized, [d.training_counts for d in described.values() if d.training_counts])
    with atomic_folder(paths.folder(name, "test_stats", root)) as unfinished:
        for test, description in described.items():
            write_json(unfinished / f"{test}.json", asdict(description))
        set_findings(name, corpus, root).write(unfinished)


def _count(name: str, tokens: TextFolder, tests: Sequence[dict[str, int]]) -> None:
    """Count the words of each test set in the training text."""
    wanted, found = set[str]().union(*tests), Counter[str]()
    lines = read_lines(tokens.files("train")[1]) if wanted else iter(())
    with Progress(f"describe tests {name}", tokens.count("train"), "lines") as progress:
        while block := [*islice(lines, BLOCK_PAIRS)]:
            found.update(filter(wanted.__contains__, " ".join(block).split()))
            progress.advance(len(block))
    for counts in tests:
        counts.update((word, found[word]) for word in counts)


def read_set_description(folder: Path, test: str) -> SetDescription:
    """The description of a test set that `describe_test_sets` wrote."""
    return read_record(SetDescription, folder / f"{test}.json")
