"""The stage clean: raw files to one training text of normalized sentences.

Validation and test sets are copied byte for byte, so that systems are scored on what was published;
the stage tokenize applies the same edits to them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import (
    PairFilter,
    count_set,
    filter_shard,
    gather_train,
    join_files,
)
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.rules.rule import Edits, apply
from bleuprint.runtime.files import whole_folder
from bleuprint.text.parallel import Block, Pair, Span, TextFolder
from bleuprint.text.unicode import blank_white, single_spaces

EMPTY = "empty_side"


@dataclass(frozen=True)
class Cleaning:
    """The stage for one corpus; `sets` names the parts of train, valid and test.NAME in `raw`."""

    corpus: str
    edits: Edits
    sets: Mapping[str, Sequence[str]]
    raw: TextFolder
    clean: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        return cls(
            name,
            corpus.clean,
            {kind: list(parts) for kind, parts in corpus.files.sets().items()},
            TextFolder(paths.folder(name, "raw", root), corpus.source, corpus.target),
            paths.folder(name, "clean", root),
            paths.ledger(name, "clean", root),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Clean a shard of the joined parts of train."""
        counts = {name: self.raw.count(name) for name in self._parts("train")}
        total = sum(counts.values())
        span = shard.span(total)
        filter_shard(
            _joined_blocks(self.raw, counts, span),
            span.length(total),
            partial(cleaning_filter, self.edits, self.raw.languages),
            self.raw.at(part),
            self._new_ledger(),
            workers,
        )

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Join the shards of train, and the parts of each held-out set."""
        ledger = self._new_ledger()
        with whole_folder(self.clean) as unfinished:
            after = self.raw.at(unfinished)
            pairs = sum(self.raw.count(part) for part in self._parts("train"))
            gather_train(parts, after, ledger, pairs)
            for name in self.sets:
                if name != "train" and self.sets[name]:
                    raw = [self.raw.files(part) for part in self._parts(name)]
                    for sides, joined in zip(
                        zip(*raw, strict=True), after.files(name), strict=True
                    ):
                        join_files(sides, joined)
                    count_set(after, name, ledger)
            ledger.write(self.ledger)

    def _new_ledger(self) -> Ledger:
        return Ledger("clean", self.corpus, (EMPTY,), tuple(edit.name() for edit in self.edits))

    def _parts(self, name: str) -> list[str]:
        return [f"{name}.{part}" for part in self.sets[name]]


def cleaning_filter(edits: Edits, languages: tuple[str, str]) -> PairFilter:
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

    return PairFilter(
        keep_or_drop, partial(SetCounts.zero, (EMPTY,), [edit.name() for edit in edits])
    )


def _joined_blocks(raw: TextFolder, counts: Mapping[str, int], span: Span) -> Iterator[Block]:
    """The pairs of a span of the sets in `counts` joined, numbered throughout."""
    before = 0
    for name, pairs in counts.items():
        start = max(span.start - before, 0)
        stop = None if span.stop is None else span.stop - before
        if start < pairs and (stop is None or stop > 0):
            inside = None if stop is None or stop >= pairs else stop
            blocks = raw.blocks(name, Span(start, inside))
            yield from (replace(block, before=before) for block in blocks)
        before += pairs
