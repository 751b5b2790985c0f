"""The training pairs that each stage dropped, from the filtering statistics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bleuprint.corpus.steps.filter_stats import STAGES, SetCounts, filter_stats_by_stage
from bleuprint.report.table import NONE, Table, table_of

# Reasons why a pair is not trained on although no rule dropped it.
DRAWN = ("drawn_for_valid", "drawn_for_test")
_OVERLAP = ("source_held_out", "target_held_out")


@dataclass(frozen=True)
class Kept:
    """Training pairs: the number read, left, and drawn for validation and test sets, and the number
    that each rule dropped.
    """

    read: int
    left: int
    drawn: int
    dropped: Mapping[str, int]

    @property
    def candidates(self) -> int:
        """The pairs that were not drawn for other sets."""
        return self.read - self.drawn

    @property
    def overlap(self) -> int:
        """The pairs with a sentence of validation or test sets."""
        return sum(self.dropped.get(rule, 0) for rule in _OVERLAP)


def training_counts(corpus: str, root: Path) -> Iterator[tuple[str, str, SetCounts]]:
    """Stage, set and counts of the training text in the stages' order.

    It is downloaded in parts, the sets train.NAME.
    """
    for stage, sets in filter_stats_by_stage(corpus, root).items():
        for name, counts in sets.items():
            if name == "train" or name.startswith("train."):
                yield stage, name, counts


def kept(corpus: str, root: Path) -> Kept:
    """The pairs from the download to the training."""
    read, left, dropped = 0, 0, Counter[str]()
    for stage, _, counts in training_counts(corpus, root):
        read += counts.pairs_in if stage == STAGES[0] else 0
        left = counts.pairs_out
        dropped.update(counts.dropped)
    drawn = sum(dropped.pop(rule, 0) for rule in DRAWN)
    return Kept(read, left, drawn, dropped)


def funnel(corpora: Iterable[str], root: Path) -> Table:
    """The training pairs of each corpus stage by stage; stages that dropped none are left out."""
    rows = [
        (
            *(corpus, stage, name, _counts(counts.dropped), _counts(counts.changed)),
            *(f"{counts.pairs_in:,}", f"{counts.pairs_out:,}"),
        )
        for corpus in corpora
        for stage, name, counts in training_counts(corpus, root)
        if stage == STAGES[0] or any((*counts.dropped.values(), *counts.changed.values()))
    ]
    heads = "Corpus", "Stage", "Set", "Dropped", "Changed"
    return table_of(heads, ("Sentence pairs in", "Sentence pairs out"), rows)


def _counts(by_rule: Mapping[str, int]) -> str:
    counts = ", ".join(f"{rule} {count:,}" for rule, count in by_rule.items() if count)
    return counts or NONE
