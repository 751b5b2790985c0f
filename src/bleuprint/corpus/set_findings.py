"""Find problems of whole sets of a corpus: lines that do not fit, test sentences in another set.

The stage test_stats calls `find_problems` and writes its result, `SetFindings`, which the report
shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.misalignment import Misfit, PairClues
from bleuprint.corpus.stage_text import text_of_stage
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import TextFolder
from bleuprint.text.unicode import comparison_key

# The file of findings. It is in the folder that describes the test sets. Names of test sets contain
# no dot, so that it cannot be mistaken for a description.
FINDINGS_FILE = "set.findings.json"
# An overlap is reported from this share of the test set on. Published sets have some short
# sentences in common: 3 of 500 in Tanaka, 16 of 8,208 in ukuxhumana.
_MIN_OVERLAP = 0.01


@dataclass(frozen=True)
class Overlap:
    """The source sentences of a test set that are in another held-out set, too.

    Attributes:
        test: The name of the test set.
        other: The name of the other test set, or "valid".
        shared: The number of sentences of the test set that are in the other set.
        lines: The number of sentences of the test set.
    """

    test: str
    other: str
    shared: int
    lines: int

    def __str__(self) -> str:
        """Return a sentence such as `3 of 500 sentences of test set news are in test set web`."""
        other_set = f"test set {self.other}"
        if self.other == "valid":
            other_set = "the validation set"
        share = f"{self.shared:,} of {self.lines:,} sentences"
        return f"{share} of test set {self.test} are in {other_set}"


@dataclass(frozen=True)
class SetFindings:
    """The problems of the sets of one corpus.

    Attributes:
        misfits: The ranges of lines that do not fit, by set (train, valid, test.NAME). In a corpus
            with several language pairs, the key is the pair, a space and the set.
        overlaps: The sentences that held-out sets share.
    """

    misfits: dict[str, tuple[Misfit, ...]] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> "SetFindings":
        """Read the problems that were found in the sets of a corpus.

        Args:
            folder: The folder that describes the test sets of the corpus. It contains no file of
                problems if none were found.
        """
        path = folder / FINDINGS_FILE
        if not path.exists():
            return cls()
        return read_record(cls, path)

    def write(self, folder: Path) -> None:
        """Write the problems that were found to a folder, as JSON; no file if there are none."""
        if self.misfits or self.overlaps:
            write_json(folder / FINDINGS_FILE, asdict(self))


def find_problems(name: str, corpus: Corpus, root: Path = Path()) -> SetFindings:
    """Find problems in the training, validation and test sets of a corpus.

    Problems are lines that are not translations of each other, and sentences that a test set shares
    with the validation set or with another test set.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        root: The project folder; by default the current folder.

    Returns:
        The problems. Line numbers refer to the published files, before cleaning.
    """
    misfits = {}
    for pair_name, pair in corpus.language_pairs(name).items():
        downloaded = TextFolder(paths.download_folder(pair_name, root), pair.source, pair.target)
        # The downloaded text may be missing on this machine.
        if not downloaded.path.is_dir():
            continue
        for set_name in downloaded.set_names():
            set_misfits = _misfits_of_set(downloaded, set_name)
            if set_misfits:
                misfits[corpus.set_label(pair_name, set_name)] = set_misfits
    overlaps = _overlaps_of_held_out(name, corpus, root)
    return SetFindings(misfits, overlaps)


def _misfits_of_set(folder: TextFolder, set_name: str) -> tuple[Misfit, ...]:
    """Find the ranges of lines of a data set that are not translations of each other.

    Args:
        folder: The folder of the data set.
        set_name: Data set, such as `train`.
    """
    clues = PairClues()
    for pair in folder.pairs(set_name):
        clues.add(pair)
    return tuple(clues.misfits())


def _overlaps_of_held_out(name: str, corpus: Corpus, root: Path) -> tuple[Overlap, ...]:
    """Find sentences that a test set of a corpus shares with another one or the validation set.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        root: The project folder.
    """
    split = text_of_stage("split", name, corpus, root)
    sources = {}
    for set_name in split.held_out():
        sources[set_name] = [pair.source for pair in split.pairs(set_name)]
    return tuple(find_overlaps(sources))


def find_overlaps(sources: Mapping[str, Sequence[str]]) -> Iterator[Overlap]:
    """Find test sets that share source sentences with another test set or the validation set.

    Each test set is compared with the validation set and with the test sets before it. Sentences
    are compared without case and punctuation.

    Args:
        sources: The source sentences of each set by its name: `valid` or, for example, `test.news`.

    Yields:
        Each case in which at least 1% of a test set is also in the other set.
    """
    normalized_sources = {}
    for set_name, sentences in sources.items():
        normalized_sources[set_name] = frozenset(comparison_key(sentence) for sentence in sentences)
    # The sets with which the next test set is compared. Each pair of sets is compared once.
    earlier_sets = []
    if "valid" in sources:
        earlier_sets.append("valid")
    for set_name, sentences in sources.items():
        if set_name == "valid":
            continue
        for earlier_set in earlier_sets:
            shared = _shared_count(sentences, normalized_sources[earlier_set])
            # An empty test set would share 0 of 0 sentences.
            if shared > 0 and shared >= _MIN_OVERLAP * len(sentences):
                yield Overlap(
                    test=set_name.removeprefix("test."),
                    other=earlier_set.removeprefix("test."),
                    shared=shared,
                    lines=len(sentences),
                )
        earlier_sets.append(set_name)


def _shared_count(sentences: Iterable[str], normalized_sentences: frozenset[str]) -> int:
    """Count the sentences that another set contains as well, compared without case and punctuation.

    Args:
        sentences: The sentences of one set.
        normalized_sentences: The sentences of the other set, in the form in which they are
            compared.
    """
    shared_count = 0
    for sentence in sentences:
        if comparison_key(sentence) in normalized_sentences:
            shared_count += 1
    return shared_count
