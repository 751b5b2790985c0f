"""The stage filter: drops training pairs that fail a check; held-out sets are copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.sharded import settings_sha256, step_files
from bleuprint.rules.rule import Candidate, Check, rule_error
from bleuprint.text.parallel import Block, Pair, packed
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

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        pairs, counts, kept = block.pairs(), SetCounts(), []
        for number, (pair, rule) in enumerate(
            zip(pairs, self.dropping_rules(pairs), strict=True), block.first
        ):
            if rule is None:
                counts.keep()
                kept.append(pair)
            else:
                counts.drop(rule, number, pair)
        return FilteredBlock(*packed(kept), counts)

    def dropping_rules(self, pairs: Sequence[Pair]) -> list[str | None]:
        """The first check that each pair fails; None if it passes all.

        Raises UserError if a check fails with an exception, naming the pair.
        """
        languages = self.before.languages
        source, target = (tokenizer_for(language, self.tokenize).tokenize for language in languages)
        candidates = [Candidate(pair, languages, (source, target)) for pair in pairs]
        rules: list[str | None] = [None] * len(pairs)
        for check in self.checks:
            left = [index for index, rule in enumerate(rules) if rule is None]
            keeps_each = _run(check, [candidates[index] for index in left]) if left else ()
            for index, keeps in zip(left, keeps_each, strict=True):
                if not keeps:
                    rules[index] = check.name()
        return rules


def _run(check: Check, candidates: Sequence[Candidate]) -> Iterator[bool]:
    """`check.keeps_each`; an exception becomes a UserError that names the pair."""
    done = 0
    try:
        for keeps in check.keeps_each(candidates):
            yield keeps
            done += 1
    except Exception as error:  # of any kind: the code of a rule is the user's
        raise rule_error(error, "\t".join(candidates[done].pair)) from error
