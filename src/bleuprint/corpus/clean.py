"""Cleaning: raw files into one training text of normalised sentences.

Only training text is changed. Validation and test sets go on byte for byte, nothing dropped: what
a system is scored on is what was published. The tokeniser reads them through the same edits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import Sieve, count, gather_train, join_files, sift_shard
from bleuprint.corpus.steps.ledger import Account, Ledger
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
        """The stage as its settings and the layout have it."""
        return cls(
            name,
            corpus.clean,
            {kind: list(parts) for kind, parts in corpus.files.sets().items()},
            TextFolder(paths.folder(name, "raw", root), corpus.source, corpus.target),
            paths.folder(name, "clean", root),
            paths.ledger(name, "clean", root),
        )

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Clean a shard of the parts of train, joined in their order."""
        counts = {name: self.raw.count(name) for name in self._parts("train")}
        total = sum(counts.values())
        span = shard.span(total)
        after = TextFolder(part, self.raw.source, self.raw.target)
        sift_shard(
            _joined_blocks(self.raw, counts, span),
            span.length(total),
            partial(sieve, self.edits, (self.raw.source, self.raw.target)),
            after,
            self._account,
            workers,
        )

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Join the shards, and the parts of each set held out."""
        ledger = self._account
        with whole_folder(self.clean) as unfinished:
            after = TextFolder(unfinished, self.raw.source, self.raw.target)
            pairs = sum(self.raw.count(part) for part in self._parts("train"))
            gather_train(parts, after, ledger, pairs)
            for name in self.sets:
                if name != "train" and self.sets[name]:
                    befores = [self.raw.files(part) for part in self._parts(name)]
                    for sides, joined in zip(
                        zip(*befores, strict=True), after.files(name), strict=True
                    ):
                        join_files(sides, joined)
                    count(after, name, ledger)
            ledger.write(self.ledger)

    @property
    def _account(self) -> Ledger:
        return Ledger("clean", self.corpus, (EMPTY,), tuple(edit.name() for edit in self.edits))

    def _parts(self, name: str) -> list[str]:
        return [f"{name}.{part}" for part in self.sets[name]]


def sieve(edits: Edits, languages: tuple[str, str]) -> Sieve:
    """Puts pairs through the edits, and drops those of which nothing is left on a side."""
    source, target = languages

    def judge(number: int, pair: Pair, account: Account) -> Pair | None:
        for edit in edits:
            new = Pair(apply(edit, pair.source, source), apply(edit, pair.target, target))
            if new != pair:
                account.change(edit.name(), number, pair, new)
                pair = new
        new = Pair(single_spaces(pair.source), single_spaces(pair.target))
        if all(blank_white(side).strip(" ") for side in new):
            return new
        account.drop(EMPTY, number, pair)
        return None

    return Sieve(judge, partial(Account.of, (EMPTY,), [edit.name() for edit in edits]))


def _joined_blocks(raw: TextFolder, counts: Mapping[str, int], span: Span) -> Iterator[Block]:
    """Those pairs of sets joined one after the other that lie in a span, numbered throughout."""
    before = 0
    for name, pairs in counts.items():
        start = max(span.start - before, 0)
        stop = None if span.stop is None else span.stop - before
        if start < pairs and (stop is None or stop > 0):
            inside = None if stop is None or stop >= pairs else stop
            blocks = raw.blocks(name, Span(start, inside))
            yield from (replace(block, before=before) for block in blocks)
        before += pairs
