"""The stage filter: drops training pairs that fail a check; held-out sets are copied."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.alignment.word_translation import (
    MAX_PAIRS,
    MAX_TOKENS,
    WordTranslations,
    is_drawn,
    learn,
)
from bleuprint.corpus.steps.filtering import FilterStep, KeepOrDrop
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import settings_sha256, step_files
from bleuprint.rules.rule import Candidate, Check, Tokens, rule_error
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenize, tokenizer_for


@dataclass(frozen=True)
class Filtering(FilterStep):
    """The stage for one corpus; lengths are in tokens of `tokenize`."""

    stage = "filter"
    checks: tuple[Check, ...]
    tokenize: Tokenize

    @classmethod
    def of(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        files = step_files(name, corpus, "dedup", "filter", root)
        return cls(*files, corpus.filter, corpus.tokenize)

    def new_ledger(self) -> Ledger:
        return Ledger(
            self.stage,
            self.corpus,
            settings_sha256(self),
            tuple(check.name() for check in self.checks),
        )

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Write the pairs kept of a shard of train, and its counts."""
        _ = self.translations  # learned once here, since workers receive a copy of this object
        super().process_shard(shard, part, workers)

    def filter_for(self, name: str) -> KeepOrDrop:  # noqa: ARG002
        return self.keep_or_drop(self.translations)

    def keep_or_drop(self, translations: WordTranslations | None) -> KeepOrDrop:
        """Drops a pair by the first check that it fails."""
        languages, tokenizers = self.before.languages, self._tokenizers
        score = translations.score if translations else None

        def keep_or_drop(number: int, pair: Pair, counts: SetCounts) -> Pair | None:
            candidate = Candidate(pair, languages, tokenizers, score)
            for check in self.checks:
                try:
                    keeps = check.keeps(candidate)
                except Exception as error:  # of any kind: the code of a rule is the user's
                    raise rule_error(error, "\t".join(pair)) from error
                if not keeps:
                    counts.drop(check.name(), number, pair)
                    return None
            return pair

        return keep_or_drop

    @cached_property
    def translations(self) -> WordTranslations | None:
        """What `learn` returns for all of train, so that every shard has the same."""
        return self.learn(self.before.pairs("train"), self.before.count("train"))

    def learn(self, pairs: Iterable[Pair], count: int) -> WordTranslations | None:
        """The word translations of `count` pairs, if a check needs them."""
        if not any(check.needs_translations for check in self.checks):
            return None
        try:
            return learn(self._drawn(pairs, count))
        except UserError as error:
            raise UserError(f"corpus {self.corpus}: {error}") from None

    def _drawn(self, pairs: Iterable[Pair], count: int) -> Iterator[tuple[Tokens, Tokens]]:
        """The tokens of pairs drawn evenly, but for long ones, which may take minutes."""
        source, target = self._tokenizers
        for number, pair in enumerate(pairs):
            short = all(side.count(" ") < MAX_TOKENS for side in pair)
            if short and is_drawn(number, count, MAX_PAIRS):
                yield source(pair.source), target(pair.target)

    @property
    def _tokenizers(self) -> tuple[Callable[[str], Tokens], Callable[[str], Tokens]]:
        source, target = self.before.languages
        return (
            tokenizer_for(source, self.tokenize).tokenize,
            tokenizer_for(target, self.tokenize).tokenize,
        )
