"""Filtering statistics of a data stage: pairs in, pairs out, what each rule changed or dropped.

Each data stage writes them for each of its sets, as JSON. The report shows them, and `bleuprint
inspect` prints them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from bleuprint.config import paths
from bleuprint.config.parts import part_filter_stats_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.schema import read_record
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import Pair

# The stages that write filtering statistics, in order.
STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")
# The stages that each part of a corpus has, before the text of all parts is deduplicated.
PART_STAGES = ("download", "clean", "filter")

# So many sample pairs are kept for each rule, with so many characters of each side.
MAX_SAMPLES = 5
SAMPLE_CHARACTERS = 200
# The key in `SetCounts.changed` of the copies that split.temperature adds to the training text.
COPIES_KEY = "copies"


class PairSample(TypedDict):
    """A pair that a rule dropped or changed: its number in the set, and its sides, cut."""

    pair: int
    source: str
    target: str
    new_source: NotRequired[str]
    new_target: NotRequired[str]


@dataclass
class SetCounts:
    """The counts of one set (train, valid, test.NAME), or of a part of it, in one stage.

    Attributes:
        pairs_in: The number of pairs that the stage read.
        pairs_out: The number of pairs that it kept.
        changed: For each edit the number of pairs that it changed.
        dropped: For each rule the number of pairs that it dropped.
        samples: For each rule or edit the first few of its pairs.
    """

    pairs_in: int = 0
    pairs_out: int = 0
    changed: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[PairSample]] = field(default_factory=dict)

    def count_kept(self, pairs: int = 1) -> None:
        """Count sentence pairs that the stage reads and keeps."""
        self.pairs_in += pairs
        self.pairs_out += pairs

    def count_dropped(self, rule: str) -> None:
        """Count a sentence pair that a rule drops, without keeping it as an example."""
        self.pairs_in += 1
        self.dropped[rule] = self.dropped.get(rule, 0) + 1

    def record_dropped(self, rule: str, number: int, pair: Pair) -> None:
        """Count a sentence pair that a rule drops, and keep it as an example of the rule.

        Only the first few examples of each rule are kept.

        Args:
            rule: The name of the rule, such as `length`.
            number: The number of the pair in its data set, from 1.
            pair: The dropped pair.
        """
        self.count_dropped(rule)
        sample: PairSample = {
            "pair": number,
            "source": _cut(pair.source),
            "target": _cut(pair.target),
        }
        self._add_sample(rule, sample)

    def record_changed(
        self, edit: str, number: int, original_pair: Pair, edited_pair: Pair
    ) -> None:
        """Count a sentence pair that an edit changes, and keep it as an example of these changes.

        Only the first few examples of each edit are kept.

        Args:
            edit: The name of the edit, such as `normalize`.
            number: The number of the pair in its data set, from 1.
            original_pair: The pair before the edit.
            edited_pair: The pair after the edit.
        """
        self.changed[edit] = self.changed.get(edit, 0) + 1
        sample: PairSample = {
            "pair": number,
            "source": _cut(original_pair.source),
            "target": _cut(original_pair.target),
            "new_source": _cut(edited_pair.source),
            "new_target": _cut(edited_pair.target),
        }
        self._add_sample(edit, sample)

    def add(self, later: "SetCounts") -> None:
        """Add the counts and examples of a later part of the same data set to these counts.

        Args:
            later: The counts of pairs that follow in the set. Its examples are added only until
                each rule has the largest number of examples.
        """
        self.pairs_in += later.pairs_in
        self.pairs_out += later.pairs_out
        _add_counts(self.changed, later.changed)
        _add_counts(self.dropped, later.dropped)
        for rule, samples in later.samples.items():
            for sample in samples:
                self._add_sample(rule, sample)

    def _add_sample(self, rule: str, sample: PairSample) -> None:
        """Keep a pair as an example of what a rule or edit does, unless it has enough examples."""
        samples = self.samples.setdefault(rule, [])
        if len(samples) < MAX_SAMPLES:
            samples.append(sample)

    @property
    def summary(self) -> str:
        """One line for people: `9 pairs in, 7 out; changed by normalize 3; dropped by length 2`."""
        parts = [f"{counted(self.pairs_in, 'pair')} in, {self.pairs_out:,} out"]
        changed = _list_counts(self.changed)
        if changed:
            parts.append(f"changed by {changed}")
        dropped = _list_counts(self.dropped)
        if dropped:
            parts.append(f"dropped by {dropped}")
        return "; ".join(parts)


def _cut(text: str) -> str:
    """Return the first characters of a sentence."""
    return text[:SAMPLE_CHARACTERS]


def _add_counts(counts: dict[str, int], later: Mapping[str, int]) -> None:
    """Add the later counts of rules to `counts`, in place."""
    for rule, count in later.items():
        counts[rule] = counts.get(rule, 0) + count


def _list_counts(counts: Mapping[str, int]) -> str:
    """List the rules that dropped or changed any pair: `identical 3, length 1,200`."""
    items = []
    for rule, count in counts.items():
        if count:
            items.append(f"{rule} {count:,}")
    return ", ".join(items)


class NothingLeft(UserError):
    """All pairs of a set were dropped.

    Attributes:
        counts: The counts of the set, which say by which rules.
    """

    def __init__(self, message: str, counts: SetCounts) -> None:
        """Create the error.

        Args:
            message: The message for the user.
            counts: The counts of the set, which say by which rules its pairs were dropped.
        """
        super().__init__(message)
        self.counts = counts


@dataclass
class FilterStats:
    """The counts of all sets of a corpus in one stage, while the stage runs.

    Attributes:
        stage: The name of the stage.
        corpus: The name of the corpus.
        settings: The fingerprint of the settings that the stage ran with.
        rules: The names of the rules that may drop pairs.
        edits: The names of the edits that may change pairs.
        sets: The counts of each set by its name.
    """

    stage: str
    corpus: str
    settings: str
    rules: Sequence[str] = ()
    edits: Sequence[str] = ()
    sets: dict[str, SetCounts] = field(default_factory=dict)

    def add_set(self, name: str) -> SetCounts:
        """Start the counts of a data set, and return them to be increased while the stage runs.

        Every rule and edit starts with a zero, so that the file also lists rules without effect.
        """
        counts = SetCounts(
            changed=dict.fromkeys(self.edits, 0),
            dropped=dict.fromkeys(self.rules, 0),
        )
        self.sets[name] = counts
        return counts

    def write(self, path: Path) -> None:
        """Check that no sentence pair is unaccounted for, and write the statistics as JSON.

        Raises:
            NothingLeft: All pairs of a data set were dropped.
        """
        for name, counts in self.sets.items():
            self._check_counts(name, counts)
        content = {
            "stage": self.stage,
            "corpus": self.corpus,
            "settings": self.settings,
            "sets": {name: vars(counts) for name, counts in self.sets.items()},
        }
        write_json(path, content)

    def _check_counts(self, name: str, counts: SetCounts) -> None:
        """Check that the pairs which a stage keeps are those that it read and did not drop.

        Args:
            name: The data set, such as `train`.
            counts: The counts of the set.

        Raises:
            NothingLeft: All pairs of the set were dropped.
        """
        # A stage may write more pairs than it reads only by sampling, which adds copies of pairs.
        copies = counts.changed.get(COPIES_KEY, 0)
        remaining = counts.pairs_in + copies - sum(counts.dropped.values())
        assert counts.pairs_out == remaining, f"{self.stage} lost count of {name}: {counts}"
        if counts.pairs_in and not remaining:
            raise NothingLeft(
                f"corpus {self.corpus}: {self.stage} dropped all pairs of {name}: {counts.summary}",
                counts,
            )


@dataclass(frozen=True)
class FilterStatsRecord:
    """The content of a file of filtering statistics.

    Attributes:
        stage: The name of the stage.
        corpus: The name of the corpus.
        settings: The fingerprint of the settings that the stage ran with.
        sets: The counts of each set by its name.
    """

    stage: str
    corpus: str
    settings: str
    sets: dict[str, SetCounts]


def filter_stats_by_stage(corpus: str, root: Path = Path()) -> dict[str, dict[str, SetCounts]]:
    """Read how many pairs of a corpus each stage kept, changed and dropped.

    Args:
        corpus: Corpus name, such as `multi30k`.
        root: The project folder; by default the current folder.

    Returns:
        The counts by stage, such as `filter`, then by data set, such as `train`.

    Raises:
        UserError: The file of a stage is missing or damaged.
    """
    counts_by_stage = {}
    for stage in STAGES:
        counts_by_stage[stage] = read_filter_stats(paths.filter_stats_file(corpus, stage, root))
    return counts_by_stage


def filter_stats_of_parts(corpus: str, root: Path = Path()) -> dict[str, dict[str, SetCounts]]:
    """Read how many pairs of each part of a corpus the part's own stages kept and dropped.

    Args:
        corpus: Corpus name, such as `wmt14-en-de`.
        root: The project folder; by default the current folder.

    Returns:
        The counts by part, such as `europarl`, then by stage, such as `filter`. Empty for a corpus
        without parts.
    """
    counts_by_part = {}
    for folder in sorted(part_filter_stats_folder(corpus, root).glob("*")):
        counts_by_stage = {}
        for stage in PART_STAGES:
            path = folder / f"{stage}.json"
            # The stages of a part that the corpus does not have write an empty object.
            if path.is_file() and read_json_object(path):
                # A part has one set, the training text.
                for train_counts in read_filter_stats(path).values():
                    counts_by_stage[stage] = train_counts
        if counts_by_stage:
            counts_by_part[folder.name] = counts_by_stage
    return counts_by_part


def read_filter_stats(path: Path) -> dict[str, SetCounts]:
    """Read a file of filtering statistics, and return the counts of each set."""
    return read_record(FilterStatsRecord, path).sets
