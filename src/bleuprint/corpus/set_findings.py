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
from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import TextFolder
from bleuprint.text.unicode import comparison_key

# The file of findings. It is in the folder that describes the test sets. Names of test sets contain
# no dot, so that it cannot be mistaken for a description.
FINDINGS = "set.findings.json"
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
        """Return the overlap as a sentence for messages and the report."""
        is_valid = self.other == "valid"
        other_set = "the validation set" if is_valid else f"test set {self.other}"
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
        """Read the findings in the folder that describes the test sets of a corpus.

        Args:
            folder: The folder. If it contains no file of findings, there are none.
        """
        path = folder / FINDINGS
        if not path.exists():
            return cls()
        return read_record(cls, path)

    def write(self, folder: Path) -> None:
        """Write the findings to a folder as JSON. Empty findings are not written."""
        if self.misfits or self.overlaps:
            write_json(folder / FINDINGS, asdict(self))


def find_problems(name: str, corpus: Corpus, root: Path = Path()) -> SetFindings:
    """Find lines of published sets that do not fit, and sentences that held-out sets share.

    Args:
        name: The name of the corpus.
        corpus: The settings of the corpus.
        root: The folder of the experiment.

    Returns:
        The findings. Their line numbers are those of the published files.
    """
    misfits = {}
    for pair_name, pair in corpus.language_pairs(name).items():
        downloaded = TextFolder(paths.download_folder(pair_name, root), pair.source, pair.target)
        if not downloaded.path.is_dir():
            continue
        for set_name in downloaded.set_names():
            set_misfits = _misfits_of_set(downloaded, set_name)
            if set_misfits:
                misfits[corpus.set_label(pair_name, set_name)] = set_misfits
    overlaps = _overlaps_of_held_out(name, corpus, root)
    return SetFindings(misfits, overlaps)


def _misfits_of_set(folder: TextFolder, set_name: str) -> tuple[Misfit, ...]:
    """Return the ranges of lines of one set that do not fit."""
    clues = PairClues()
    for pair in folder.pairs(set_name):
        clues.add(pair)
    return tuple(clues.misfits())


def _overlaps_of_held_out(name: str, corpus: Corpus, root: Path) -> tuple[Overlap, ...]:
    """Return the overlaps of the validation and test sets of a corpus."""
    split = TextFolder(paths.corpus_folder(name, "split", root), *corpus.languages)
    sources = {}
    for set_name in split.held_out():
        sources[set_name] = [pair.source for pair in split.pairs(set_name)]
    return tuple(find_overlaps(sources))


def find_overlaps(sources: Mapping[str, Sequence[str]]) -> Iterator[Overlap]:
    """Find the held-out sets that share source sentences, compared without case and punctuation.

    Args:
        sources: The source sentences of each held-out set, by its name: valid or test.NAME.

    Yields:
        The overlaps of at least 1% of a test set. Each test set is compared with the validation
        set and with the test sets before it.
    """
    normalized_sources = {}
    for set_name, sentences in sources.items():
        normalized_sources[set_name] = frozenset(comparison_key(sentence) for sentence in sentences)
    earlier_sets = []
    if "valid" in sources:
        earlier_sets.append("valid")
    for set_name, sentences in sources.items():
        if set_name == "valid":
            continue
        for earlier_set in earlier_sets:
            shared = _shared_count(sentences, normalized_sources[earlier_set])
            if shared > 0 and shared >= _MIN_OVERLAP * len(sentences):
                yield Overlap(
                    test=set_name.removeprefix("test."),
                    other=earlier_set.removeprefix("test."),
                    shared=shared,
                    lines=len(sentences),
                )
        earlier_sets.append(set_name)


def _shared_count(sentences: Iterable[str], normalized_sentences: frozenset[str]) -> int:
    """Count the sentences whose normalized form is in the other set."""
    shared_count = 0
    for sentence in sentences:
        if comparison_key(sentence) in normalized_sentences:
            shared_count += 1
    return shared_count
