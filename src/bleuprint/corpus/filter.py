"""Filtering: training pairs that a check refuses are dropped; held-out sets stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bleuprint.config import paths
from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import Sieve, carry_over, gather_train, sift_shard
from bleuprint.corpus.steps.ledger import Account, Ledger
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import shard_blocks
from bleuprint.rules.rule import Candidate, Check
from bleuprint.runtime.files import whole_folder
from bleuprint.text.parallel import Pair, TextFolder
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

Checks = tuple[Check, ...]


@dataclass(frozen=True)
class Filtering:
    """The stage for one corpus; lengths are counted in the tokens that `tokenize` will make."""

    corpus: str
    checks: Checks
    tokenize: Tokenize
    before: TextFolder
    filtered: Path
    ledger: Path

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage as its settings and the layout have it."""
        return cls(
            name,
            corpus.filter,
            corpus.tokenize,
            TextFolder(paths.folder(name, "dedup", root), corpus.source, corpus.target),
            paths.folder(name, "filter", root),
            paths.ledger(name, "filter", root),
        )

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Check a shard of train."""
        sift_shard(
            *shard_blocks(self.before, shard),
            partial(sieve, self.checks, self.tokenize, (self.before.source, self.before.target)),
            TextFolder(part, self.before.source, self.before.target),
            self._account,
            workers,
        )

    def gather(self, parts: Sequence[Path], workers: int) -> None:  # noqa: ARG002
        """Join the shards; the other sets go on."""
        ledger = self._account
        with whole_folder(self.filtered) as unfinished:
            after = TextFolder(unfinished, self.before.source, self.before.target)
            gather_train(parts, after, ledger, self.before.count("train"))
            carry_over(self.before, after, self.before.held_out(), ledger)
            ledger.write(self.ledger)

    @property
    def _account(self) -> Ledger:
        return Ledger("filter", self.corpus, tuple(check.name() for check in self.checks))


def sieve(checks: Checks, tokenize: Tokenize, languages: tuple[str, str]) -> Sieve:
    """Drops a pair by the first check that does not keep it."""
    source, target = (tokenizer_for(language, tokenize).tokenize for language in languages)

    def judge(number: int, pair: Pair, account: Account) -> Pair | None:
        candidate = Candidate(pair, languages, (source, target))
        for check in checks:
            if not check.keeps(candidate):
                account.drop(check.name(), number, pair)
                return None
        return pair

    return Sieve(judge, partial(Account.of, [check.name() for check in checks]))
