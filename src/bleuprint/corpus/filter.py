"""The stage filter: drops training pairs that fail a check; held-out sets are copied."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.experiment import Corpus
from bleuprint.corpus.steps.filtering import FilterStep, KeepOrDrop
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.corpus.steps.sharded import settings_sha256, step_files
from bleuprint.rules.rule import Candidate, Check, rule_error
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

    def filter_for(self, name: str) -> KeepOrDrop:  # noqa: ARG002
        """Drops a pair by the first check that it fails."""
        languages = self.before.languages
        source, target = (tokenizer_for(language, self.tokenize).tokenize for language in languages)

        def keep_or_drop(number: int, pair: Pair, counts: SetCounts) -> Pair | None:
            candidate = Candidate(pair, languages, (source, target))
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
