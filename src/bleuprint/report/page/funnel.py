"""How many training pairs each stage of preparation dropped, from the filtering statistics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bleuprint.corpus.dedup import OVERLAP_RULES
from bleuprint.corpus.steps.filter_stats import (
    STAGES,
    SetCounts,
    filter_stats_by_stage,
    filter_stats_of_parts,
)
from bleuprint.report.table import DASH, Table, text_table

# Rules that move pairs to a validation or test set, and so out of the training text.
HELD_OUT_RULES = ("drawn_for_valid", "drawn_for_test")
_FIRST_STAGE = STAGES[0]


@dataclass(frozen=True)
class PairCounts:
    """How many sentence pairs of a corpus the preparation read, dropped, moved and kept.

    Preparation cleans and filters the downloaded text before a system is trained on it.

    Attributes:
        read: The pairs that were read from the downloaded files.
        kept: The pairs that are trained on.
        held_out: The pairs that were moved to validation and test sets.
        dropped: The pairs that each rule dropped, by the name of the rule.
    """

    read: int
    kept: int
    held_out: int
    dropped: Mapping[str, int]

    @property
    def candidates(self) -> int:
        """The pairs that could be trained on: all except those moved to other sets."""
        return self.read - self.held_out

    @property
    def overlap(self) -> int:
        """The pairs that were dropped because a validation or test set has one of its sentences."""
        return sum(self.dropped.get(rule, 0) for rule in OVERLAP_RULES)


class StageCounts(NamedTuple):
    """How many sentence pairs of the training text, or of a part of it, a stage changed or dropped.

    Attributes:
        stage: The name of the stage of preparation, such as `clean`.
        set_name: `train`, or `train.NAME` for a part of the text that has its own files.
        counts: The pairs into and out of the stage, and what its rules did.
    """

    stage: str
    set_name: str
    counts: SetCounts


def training_stage_counts(corpus: str, root: Path) -> Iterator[StageCounts]:
    """Yield how many training pairs each stage of preparation changed or dropped.

    The stages come in the order in which they run: first those of each part that is prepared by
    itself, then those of the whole corpus. They also count the pairs of validation and test sets,
    which are skipped here.

    Args:
        corpus: The name of the corpus.
        root: The project's folder.
    """
    for part, counts_by_stage in filter_stats_of_parts(corpus, root).items():
        for stage, counts in counts_by_stage.items():
            yield StageCounts(stage, f"train.{part}", counts)
    for stage, sets in filter_stats_by_stage(corpus, root).items():
        for set_name, counts in sets.items():
            if set_name == "train" or set_name.startswith("train."):
                yield StageCounts(stage, set_name, counts)


def training_pair_counts(corpus: str, root: Path) -> PairCounts:
    """Return how many training pairs of a corpus were read, dropped and kept, over all stages.

    Args:
        corpus: The name of the corpus.
        root: The project's folder.
    """
    read = 0
    kept = 0
    dropped = Counter[str]()
    for stage, _, counts in training_stage_counts(corpus, root):
        if stage == _FIRST_STAGE:
            # A text may consist of several parts, and the first stage counts each of them.
            read += counts.pairs_in
        # Each stage replaces this number, so after the loop, it is what the last stage kept.
        kept = counts.pairs_out
        dropped.update(counts.dropped)
    # The statistics count pairs that become validation and test sets as dropped by a rule. These
    # pairs are moved and not lost, so they are counted apart.
    held_out = sum(dropped.pop(rule, 0) for rule in HELD_OUT_RULES)
    return PairCounts(read, kept, held_out, dropped)


def training_pairs_table(corpora: Iterable[str], root: Path) -> Table:
    """Return a table of how many training pairs each stage of preparation dropped and changed.

    Only stages that did something have a row, and the first one, which reads the texts.

    Args:
        corpora: The names of the corpora.
        root: The project's folder.
    """
    rows = []
    for corpus in corpora:
        for stage, set_name, counts in training_stage_counts(corpus, root):
            has_effect = any(counts.dropped.values()) or any(counts.changed.values())
            if stage == _FIRST_STAGE or has_effect:
                row = [
                    corpus,
                    stage,
                    set_name,
                    _rule_counts(counts.dropped),
                    _rule_counts(counts.changed),
                    f"{counts.pairs_in:,}",
                    f"{counts.pairs_out:,}",
                ]
                rows.append(row)
    text_heads = ["Corpus", "Stage", "Set", "Dropped", "Changed"]
    return text_table(text_heads, ["Sentence pairs in", "Sentence pairs out"], rows)


def _rule_counts(pairs_by_rule: Mapping[str, int]) -> str:
    """Return how many pairs each cleaning rule dropped or changed: `length 1,200, ratio 7`.

    Rules without a pair are not named. The text is a dash if no rule has one.
    """
    counts = [f"{rule} {pairs:,}" for rule, pairs in pairs_by_rule.items() if pairs > 0]
    return ", ".join(counts) or DASH
