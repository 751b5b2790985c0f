"""Filtering statistics of a data stage: pairs in, pairs out, what each rule changed or dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from bleuprint.config import paths
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import Pair

# The stages that write filtering statistics, in order.
STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")

SAMPLES = 5
SAMPLE_CHARACTERS = 200
# In `changed`: pairs that split.temperature repeats.
COPIES = "copies"


class PairSample(TypedDict):
    """A pair that a rule dropped or changed: its number in the set, and its sides, cut."""

    pair: int
    source: str
    target: str
    new_source: NotRequired[str]
    new_target: NotRequired[str]


@dataclass
class SetCounts:
    """The counts of one set (train, valid, test.NAME), or of a part of it.

    `changed`: pairs with a side that an edit changed; `samples`: the first few pairs by rule.
    """

    pairs_in: int = 0
    pairs_out: int = 0
    changed: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[PairSample]] = field(default_factory=dict)

    def count_kept(self, pairs: int = 1) -> None:
        """Count pairs that are kept."""
        self.pairs_in += pairs
        self.pairs_out += pairs

    def count_dropped(self, rule: str) -> None:
        """Count a pair as dropped by `rule`, without a sample."""
        self.pairs_in += 1
        self.dropped[rule] = self.dropped.get(rule, 0) + 1

    def record_dropped(self, rule: str, number: int, pair: Pair) -> None:
        """Count pair `number` of the set as dropped by `rule`."""
        self.count_dropped(rule)
        self._sample(
            rule, {"pair": number, "source": _cut(pair.source), "target": _cut(pair.target)}
        )

    def record_changed(self, rule: str, number: int, before: Pair, after: Pair) -> None:
        """Count pair `number` of the set as changed by `rule`."""
        self.changed[rule] = self.changed.get(rule, 0) + 1
        sample: PairSample = {
            "pair": number,
            "source": _cut(before.source),
            "target": _cut(before.target),
            "new_source": _cut(after.source),
            "new_target": _cut(after.target),
        }
        self._sample(rule, sample)

    def add(self, later: "SetCounts") -> None:
        """Add the counts of the pairs that follow."""
        self.pairs_in += later.pairs_in
        self.pairs_out += later.pairs_out
        for counts, more in ((self.changed, later.changed), (self.dropped, later.dropped)):
            for rule, count in more.items():
                counts[rule] = counts.get(rule, 0) + count
        for rule, samples in later.samples.items():
            kept = self.samples.setdefault(rule, [])
            kept += samples[: SAMPLES - len(kept)]

    def _sample(self, rule: str, sample: PairSample) -> None:
        """Keep a sample, if there are few of its rule."""
        samples = self.samples.setdefault(rule, [])
        if len(samples) < SAMPLES:
            samples.append(sample)

    @property
    def summary(self) -> str:
        """Pairs in and out, and what each rule changed and dropped, in one line."""
        parts = [f"{counted(self.pairs_in, 'pair')} in, {self.pairs_out:,} out"]
        for action, counts in ("changed by", self.changed), ("dropped by", self.dropped):
            if listed := ", ".join(f"{rule} {n:,}" for rule, n in counts.items() if n):
                parts.append(f"{action} {listed}")
        return "; ".join(parts)


def _cut(text: str) -> str:
    return text[:SAMPLE_CHARACTERS]


class NothingLeft(UserError):
    """No pair of a set is left; `counts` say why."""

    def __init__(self, message: str, counts: SetCounts) -> None:
        super().__init__(message)
        self.counts = counts


@dataclass
class FilterStats:
    """The counts of all sets of a corpus in one stage.

    `settings`: the fingerprint of those the stage ran with.
    """

    stage: str
    corpus: str
    settings: str
    rules: Sequence[str] = ()
    edits: Sequence[str] = ()
    sets: dict[str, SetCounts] = field(default_factory=dict)

    def add_set(self, name: str) -> SetCounts:
        """Add set `name`, with a zero for every rule and edit."""
        zeros = dict.fromkeys(self.edits, 0), dict.fromkeys(self.rules, 0)
        self.sets[name] = SetCounts(0, 0, *zeros)
        return self.sets[name]

    def write(self, path: Path) -> None:
        """Write the statistics as JSON; raises NothingLeft if all pairs of a set are dropped."""
        for name, counts in self.sets.items():
            added = counts.changed.get(COPIES, 0)
            left = counts.pairs_in + added - sum(counts.dropped.values())
            assert counts.pairs_out == left, f"{self.stage} lost count of {name}: {counts}"
            if counts.pairs_in and not left:
                what = f"nothing left of {name} after {self.stage}: {counts.summary}"
                raise NothingLeft(f"corpus {self.corpus}: {what}", counts)
        sets = {name: vars(counts) for name, counts in self.sets.items()}
        head = {"stage": self.stage, "corpus": self.corpus, "settings": self.settings}
        write_json(path, {**head, "sets": sets})


@dataclass(frozen=True)
class FilterStatsRecord:
    """The content of a file of filtering statistics."""

    stage: str
    corpus: str
    settings: str
    sets: dict[str, SetCounts]


def filter_stats_by_stage(corpus: str, root: Path = Path()) -> dict[str, dict[str, SetCounts]]:
    """The counts of a corpus by stage and set; raises UserError if a file is missing."""
    return {
        stage: read_filter_stats(paths.filter_stats_file(corpus, stage, root)) for stage in STAGES
    }


def read_filter_stats(path: Path) -> dict[str, SetCounts]:
    """The counts in a file of filtering statistics, by set."""
    return read_record(FilterStatsRecord, path).sets
