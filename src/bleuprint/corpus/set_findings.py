"""Faults of whole sets of a corpus: lines that do not fit, test sentences in another set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.misalignment import Misfit, PairClues
from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.text.parallel import TextFolder
from bleuprint.text.unicode import comparable

# In the folder of a corpus's descriptions of test sets; no test set has a dot in its name.
FINDINGS = "set.findings.json"
# The share of a test set's sentences in another set from which it is reported. Published sets have
# some short sentences in common: 3 of 500 in Tanaka, 16 of 8,208 in ukuxhumana.
_REPORTED = 0.01


@dataclass(frozen=True)
class Overlap:
    """How many of the `lines` sources of a test set are sources of another held-out set, too."""

    test: str
    other: str
    shared: int
    lines: int

    def __str__(self) -> str:
        other = "the validation set" if self.other == "valid" else f"test set {self.other}"
        return f"{self.shared:,} of {self.lines:,} sentences of test set {self.test} are in {other}"


@dataclass(frozen=True)
class SetFindings:
    """The misfits of each set (train, valid, test.NAME), and the overlaps of held-out sets."""

    misfits: dict[str, tuple[Misfit, ...]] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> "SetFindings":
        """Read what `write` wrote; without a file nothing was found."""
        path = folder / FINDINGS
        return read_record(cls, path) if path.exists() else cls()

    def write(self, folder: Path) -> None:
        """Write the findings; nothing if there are none."""
        if self.misfits or self.overlaps:
            write_json(folder / FINDINGS, asdict(self))


def set_findings(name: str, corpus: Corpus, root: Path = Path()) -> SetFindings:
    """Compare the sides of each published set, and the held-out sets with each other.

    Lines are counted in the downloaded text, whose lines are those of the published files.
    """
    misfits = {}
    for pair_name, pair in corpus.pairs(name).items():
        given = TextFolder(paths.given(pair_name, root), pair.source, pair.target)
        if not given.path.is_dir():
            continue
        direction = pair_name.removeprefix(name).removeprefix("/")
        for set_name in given.names():
            clues = PairClues()
            for each in given.pairs(set_name):
                clues.add(each)
            if found := clues.misfits():
                misfits[f"{direction} {set_name}".strip()] = tuple(found)
    split = TextFolder(paths.folder(name, "split", root), *corpus.languages)
    sources = {each: [pair.source for pair in split.pairs(each)] for each in split.held_out()}
    return SetFindings(misfits, tuple(overlaps(sources)))


def overlaps(sources: Mapping[str, Sequence[str]]) -> Iterator[Overlap]:
    """The overlaps from a hundredth of a test set's lines on.

    `sources`: the sentences of valid and of each test.NAME. Of two test sets that overlap, the
    later one is named first.
    """
    known = {name: frozenset(map(comparable, lines)) for name, lines in sources.items()}
    earlier: list[str] = ["valid"] if "valid" in sources else []
    for name, lines in sources.items():
        if name == "valid":
            continue
        for other in earlier:
            shared = _count(lines, known[other])
            if shared and shared >= _REPORTED * len(lines):
                yield Overlap(
                    test=name.removeprefix("test."),
                    other=other.removeprefix("test."),
                    shared=shared,
                    lines=len(lines),
                )
        earlier.append(name)


def _count(lines: Iterable[str], known: frozenset[str]) -> int:
    return sum(comparable(line) in known for line in lines)
