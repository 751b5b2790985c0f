"""The stage clean: raw files to one training text of normalized sentences.

Validation and test sets are copied byte for byte, so that systems are scored on what was published;
the stage tokenize applies the same edits to them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import KeepOrDrop, PairwiseStep
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.sharded import settings_sha256, step_files
from bleuprint.rules.rule import Edits, apply
from bleuprint.text.parallel import Pair
from bleuprint.text.unicode import blank_white, single_spaces

EMPTY = "empty_side"


@dataclass(frozen=True)
class Cleaning(PairwiseStep):
    """The stage for one corpus."""

    stage = "clean"
    edits: Edits

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        return cls(*step_files(name, corpus, "raw", "clean", root), corpus.clean)

    def new_ledger(self) -> Ledger:
        return Ledger(
            self.stage,
            self.corpus,
            settings_sha256(self),
            (EMPTY,),
            tuple(edit.name() for edit in self.edits),
        )

    def filter_for(self, name: str) -> KeepOrDrop:  # noqa: ARG002
        return self._keep_or_drop

    def _keep_or_drop(self, number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        """Apply the edits to a pair, and drop it if a side is empty.

        Without edits it stays as it is, also its spaces.
        """
        source, target = self.before.languages
        for edit in self.edits:
            new = Pair(apply(edit, pair.source, source), apply(edit, pair.target, target))
            if new != pair:
                counts.change(edit.name(), number, pair, new)
                pair = new
        new = Pair(*map(single_spaces, pair)) if self.edits else pair
        if all(blank_white(side).strip(" ") for side in new):
            return new
        counts.drop(EMPTY, number, pair)
        return None
