"""The stage clean: raw files to one training text of normalized sentences.

Validation and test sets are copied byte for byte, so that systems are scored on what was published;
the stage tokenize applies the same edits to them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import (
    BlockFilter,
    FilterStep,
    count_set,
    filter_block,
    join_files,
)
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Edits, apply
from bleuprint.text.parallel import Block, Pair, Span, TextFolder
from bleuprint.text.unicode import blank_white, single_spaces

EMPTY = "empty_side"


@dataclass(frozen=True)
class Cleaning(FilterStep):
    """The stage for one corpus; `sets` names the parts of train, valid and test.NAME."""

    stage = "clean"
    edits: Edits
    sets: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        sets = {kind: list(parts) for kind, parts in corpus.files.sets().items()}
        return cls(*step_files(name, corpus, "raw", "clean", root), corpus.clean, sets)

    def new_ledger(self) -> Ledger:
        return Ledger(self.stage, self.corpus, (EMPTY,), tuple(edit.name() for edit in self.edits))

    def count_train(self) -> int:
        return sum(self.before.count(part) for part in self._parts("train"))

    def train_blocks(self, span: Span) -> Iterator[Block]:
        """The pairs of a span of the joined parts of train, numbered throughout."""
        joined = 0
        for name in self._parts("train"):
            pairs = self.before.count(name)
            start = max(span.start - joined, 0)
            stop = None if span.stop is None else span.stop - joined
            if start < pairs and (stop is None or stop > 0):
                inside = None if stop is None or stop >= pairs else stop
                for block in self.before.blocks(name, Span(start, inside)):
                    yield replace(block, before=joined)
            joined += pairs

    def block_filter(self, name: str) -> Callable[[], BlockFilter]:  # noqa: ARG002
        return partial(_block_filter, self.edits, self.before.languages)

    def write_held_out(self, after: TextFolder, ledger: Ledger, workers: int) -> None:  # noqa: ARG002
        """Join the parts of each held-out set."""
        for name in self.sets:
            if name != "train" and self.sets[name]:
                sides = zip(*map(self.before.files, self._parts(name)), strict=True)
                for parts, joined in zip(sides, after.files(name), strict=True):
                    join_files(parts, joined)
                count_set(after, name, ledger)

    def _parts(self, name: str) -> list[str]:
        return [f"{name}.{part}" for part in self.sets[name]]


def _block_filter(edits: Edits, languages: tuple[str, str]) -> BlockFilter:
    """Applies the edits to pairs, and drops pairs with an empty side."""
    source, target = languages

    def keep_or_drop(number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        for edit in edits:
            new = Pair(apply(edit, pair.source, source), apply(edit, pair.target, target))
            if new != pair:
                counts.change(edit.name(), number, pair, new)
                pair = new
        new = Pair(single_spaces(pair.source), single_spaces(pair.target))
        if all(blank_white(side).strip(" ") for side in new):
            return new
        counts.drop(EMPTY, number, pair)
        return None

    return partial(filter_block, keep_or_drop)
