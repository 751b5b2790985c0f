"""The stage filter: drops training pairs that fail a check; held-out sets are copied."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep, kept_pairs
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Candidate, Check, Tokens, rule_error
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import Block, Pair
from bleuprint.text.tokenizers import Tokenize, token_bounds, tokenizer_for

if TYPE_CHECKING:
    from bleuprint.corpus.alignment.word_translation import WordTranslations


@dataclass(frozen=True)
class Filtering(FilterStep):
    """The stage for one corpus; lengths are in tokens of `tokenize`."""

    stage = "filter"
    checks: tuple[Check, ...]
    tokenize: Tokenize

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """The stage with the settings and paths of a corpus."""
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="dedup",
            output_folder="filter",
        )
        return cls(*files, checks=corpus.filter, tokenize=corpus.tokenize)

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(check.name() for check in self.checks)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Write the pairs kept of a shard of train, and its counts."""
        _ = self.translations  # learned once here, since workers receive a copy of this object
        super().process_shard(shard, part, workers)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        return kept_pairs(block, self.dropping_rules(block.pairs()))

    def dropping_rules(self, pairs: Sequence[Pair]) -> list[str | None]:
        """The first check that each pair fails; None if it passes all.

        Raises UserError if a check fails with an exception, naming the pair.
        """
        candidates = [self._candidate(pair) for pair in pairs]
        rules: list[str | None] = [None] * len(pairs)
        for check in self.checks:
            left = [index for index, rule in enumerate(rules) if rule is None]
            keeps_each = _run(check, [candidates[index] for index in left]) if left else ()
            for index, keeps in zip(left, keeps_each, strict=True):
                if not keeps:
                    rules[index] = check.name()
        return rules

    @cached_property
    def translations(self) -> "WordTranslations | None":
        """Those learned from all of train, so that every shard has the same, if a check needs any.

        There are none of a zero-shot direction.
        """
        count = self.input_text.count("train")
        if not count or not any(check.needs_translations for check in self.checks):
            return None
        # imported here, as below: SciPy takes a fifth of a second
        from bleuprint.corpus.alignment import word_translation
        from bleuprint.corpus.alignment.word_translation import MAX_TOKENS, is_sampled

        pairs = enumerate(self.input_text.pairs("train"))
        drawn = (pair for number, pair in pairs if is_sampled(number, count))
        # long ones may take minutes
        short = (pair for pair in drawn if all(side.count(" ") < MAX_TOKENS for side in pair))
        try:
            return word_translation.learn_word_translations(
                self._words(self._candidate(pair)) for pair in short
            )
        except UserError as error:
            raise UserError(f"corpus {self.corpus}: {error}") from None

    def _candidate(self, pair: Pair) -> Candidate:
        bounds = token_bounds(pair.source, self.tokenize), token_bounds(pair.target, self.tokenize)
        return Candidate(pair, self.input_text.languages, self._tokenizers, self._score, bounds)

    @cached_property
    def _tokenizers(self) -> tuple[Callable[[str], Tokens], Callable[[str], Tokens]]:
        source, target = (
            partial(_tokens, self.tokenize, each) for each in self.input_text.languages
        )
        return source, target

    def _score(self, candidate: Candidate) -> float:
        assert self.translations is not None, "for a check that needs_translations"
        return self.translations.score(*self._words(candidate))

    def _words(self, candidate: Candidate) -> tuple[Tokens, Tokens]:
        """The tokens of a pair; its words if the corpus's tokens are none."""
        if self.tokenize.name in ("none", "characters"):
            from bleuprint.corpus.alignment.words import split_words

            return split_words(candidate.pair.source), split_words(candidate.pair.target)
        return candidate.tokens


def _tokens(settings: Tokenize, language: str, sentence: str) -> Tokens:
    """The tokens of a sentence; the tokenizer is loaded for the first that needs it."""
    return tokenizer_for(language, settings).tokenize(sentence)


def _run(check: Check, candidates: Sequence[Candidate]) -> list[bool]:
    """`check.keeps_each`; an exception becomes a UserError that names the pair."""
    kept = list[bool]()
    try:
        for keeps in check.keeps_each(candidates):
            kept.append(keeps)
    except Exception as error:  # of any kind: the code of a rule is the user's
        at = "\t".join(candidates[len(kept)].pair) if len(kept) < len(candidates) else None
        raise rule_error(error, at) from error
    if len(kept) != len(candidates):
        given = (
            f"keeps_each gave {counted(len(kept), 'result')} for {counted(len(candidates), 'pair')}"
        )
        place = f"{getfile(type(check))}: check {check.name()}"
        raise UserError(f"{place}: {given}; it must give one for each pair, in order")
    return kept
