"""The stage filter: drops training pairs that fail a check; held-out sets are copied."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import PairFilter, copy_sets, filter_shard, gather_train
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import shard_blocks
from bleuprint.rules.rule import Candidate, Check
from bleuprint.runtime.files import whole_folder
from bleuprint.text.parallel import Pair, TextFolder
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

Checks = tuple[Check, ...]


@dataclass(frozen=True)
class Filtering:
    """The stage for one corpus; lengths are in tokens of `tokenize`."""

    corpus: str
    checks: Checks
    tokenize: Tokenize
    before: TextFolder
    filtered: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        return cls(
            name,
            corpus.filter,
            corpus.tokenize,
            TextFolder(paths.folder(name, "dedup", root), corpus.source, corpus.target),
            paths.folder(name, "filter", root),
            paths.ledger(name, "filter", root),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Filter a shard of train."""
        filter_shard(
            *shard_blocks(self.before, shard),
            partial(checking_filter, self.checks, self.tokenize, self.before.languages),
            self.before.at(part),
            self._new_ledger(),
            workers,
        )

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Join the shards of train, and copy the held-out sets."""
        ledger = self._new_ledger()
        with whole_folder(self.filtered) as unfinished:
            after = self.before.at(unfinished)
            gather_train(parts, after, ledger, self.before.count("train"))
            copy_sets(self.before, after, self.before.held_out(), ledger)
            ledger.write(self.ledger)

    def _new_ledger(self) -> Ledger:
        return Ledger("filter", self.corpus, tuple(check.name() for check in self.checks))


def checking_filter(checks: Checks, tokenize: Tokenize, languages: tuple[str, str]) -> PairFilter:
    """Drops a pair by the first check that it fails."""
    source, target = (tokenizer_for(language, tokenize).tokenize for language in languages)

    def keep_or_drop(number: int, pair: Pair, counts: SetCounts) -> Pair | None:
        candidate = Candidate(pair, languages, (source, target))
        for check in checks:
            if not check.keeps(candidate):
                counts.drop(check.name(), number, pair)
                return None
        return pair

    return PairFilter(keep_or_drop, partial(SetCounts.zero, [check.name() for check in checks]))
