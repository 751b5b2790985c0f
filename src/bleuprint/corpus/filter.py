"""The stage filter: drop the training pairs that fail a check. Held-out sets are copied.

`Filtering` is the stage. The checks are the rules that `filter` in params.yaml names; their code is
in the package rules.
"""

from collections.abc import Callable, Iterator, Sequence
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
    """The stage filter on one corpus.

    Attributes:
        checks: The checks, in the order in which they run.
        tokenize: The settings of the tokenizer. Checks of lengths count its tokens.
    """

    stage = "filter"
    checks: tuple[Check, ...]
    tokenize: Tokenize

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Create the stage with the settings and paths of a corpus.

        Args:
            name: The name of the corpus.
            corpus: The settings of the corpus.
            root: The folder of the experiment.
        """
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
        """The names of the checks, which may drop a pair."""
        return tuple(check.name() for check in self.checks)

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Write the pairs of a shard of the training text that are kept, and their counts.

        Args:
            shard: The shard.
            part: The folder of the shard.
            workers: The number of processes.
        """
        # Worker processes receive a copy of this object. Reading the property here learns the
        # translations once, before the object is copied.
        _ = self.translations
        super().process_shard(shard, part, workers)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        """Drop the pairs of a block that fail a check.

        Args:
            name: The name of the set. Only the training text comes here, so it is not used.
            block: The pairs.

        Returns:
            The pairs that are kept, and the number of pairs that each check dropped.
        """
        return kept_pairs(block, self.dropping_rules(block.pairs()))

    def dropping_rules(self, pairs: Sequence[Pair]) -> list[str | None]:
        """Return for each pair the name of the first check that it fails; None if it passes all.

        Each check runs only on the pairs that passed the checks before it.

        Args:
            pairs: The pairs.

        Raises:
            UserError: A check raises an exception, or does not judge each pair.
        """
        candidates = [self._candidate(pair) for pair in pairs]
        dropping_rules: list[str | None] = [None] * len(pairs)
        for check in self.checks:
            kept_indices = [index for index, rule in enumerate(dropping_rules) if rule is None]
            if not kept_indices:
                break
            kept_candidates = [candidates[index] for index in kept_indices]
            passes_check = _run_check(check, kept_candidates)
            for index, passes in zip(kept_indices, passes_check, strict=True):
                if not passes:
                    dropping_rules[index] = check.name()
        return dropping_rules

    @cached_property
    def translations(self) -> "WordTranslations | None":
        """The word translations by which checks such as word_alignment score a pair.

        They are learned from the whole training text, so that they are the same for all shards.
        None if no check needs them, or if the training text is empty, as in a zero-shot direction.
        """
        pair_count = self.input_text.count("train")
        has_check_with_translations = any(check.needs_translations for check in self.checks)
        if pair_count == 0 or not has_check_with_translations:
            return None
        # Imported here because SciPy, which this module needs, takes a fifth of a second to load.
        from bleuprint.corpus.alignment import word_translation

        try:
            return word_translation.learn_word_translations(self._words_to_learn_from(pair_count))
        except UserError as error:
            raise UserError(f"corpus {self.corpus}: {error}") from None

    def _words_to_learn_from(self, pair_count: int) -> Iterator[tuple[Tokens, Tokens]]:
        """Yield the words of the training pairs from which translations are learned.

        Args:
            pair_count: The number of pairs of the training text. If it is large, only an evenly
                spaced sample of the pairs is used.
        """
        from bleuprint.corpus.alignment.word_translation import MAX_TOKENS, is_sampled

        for index, pair in enumerate(self.input_text.pairs("train")):
            if not is_sampled(index, pair_count):
                continue
            # Tokenizing a very long sentence may take minutes, and translations are not learned
            # from sentences of more than MAX_TOKENS tokens anyway.
            if max(pair.source.count(" "), pair.target.count(" ")) >= MAX_TOKENS:
                continue
            yield self._words(self._candidate(pair))

    def _candidate(self, pair: Pair) -> Candidate:
        """Wrap a pair for the checks, which tokenize and score it only when they need that."""
        return Candidate(
            pair=pair,
            languages=self.input_text.languages,
            tokenizers=self._tokenizers,
            score=self._score,
            bounds=(
                token_bounds(pair.source, self.tokenize),
                token_bounds(pair.target, self.tokenize),
            ),
        )

    @cached_property
    def _tokenizers(self) -> tuple[Callable[[str], Tokens], Callable[[str], Tokens]]:
        """The functions that split a source and a target sentence into tokens."""
        # Partial functions, because closures cannot be pickled for worker processes.
        source_language, target_language = self.input_text.languages
        return (
            partial(_tokens, self.tokenize, source_language),
            partial(_tokens, self.tokenize, target_language),
        )

    def _score(self, candidate: Candidate) -> float:
        """Return how well the words of both sides translate each other."""
        assert self.translations is not None, "for a check that needs_translations"
        source_words, target_words = self._words(candidate)
        return self.translations.score(source_words, target_words)

    def _words(self, candidate: Candidate) -> tuple[Tokens, Tokens]:
        """Return the words of both sides of a pair, for word translations.

        They are the tokens of the corpus, unless its tokenizer does not split text into words.
        """
        if self.tokenize.name in ("none", "characters"):
            from bleuprint.corpus.alignment.words import split_words

            return split_words(candidate.pair.source), split_words(candidate.pair.target)
        return candidate.tokens


def _tokens(settings: Tokenize, language: str, sentence: str) -> Tokens:
    """Split a sentence into tokens. The first sentence of a process loads the tokenizer."""
    return tokenizer_for(language, settings).tokenize(sentence)


def _run_check(check: Check, candidates: Sequence[Candidate]) -> list[bool]:
    """Return for each candidate whether it passes a check.

    Raises:
        UserError: The check raises an exception, or its number of results is not the number of
            candidates.
    """
    results = list[bool]()
    try:
        for passes in check.keeps_each(candidates):
            results.append(passes)
    except Exception as error:  # A check may be the user's own code, which may raise anything.
        # The check failed at the first candidate without a result, if there is one.
        failing_pair = None
        if len(results) < len(candidates):
            failing_pair = "\t".join(candidates[len(results)].pair)
        raise rule_error(error, failing_pair) from error
    if len(results) != len(candidates):
        raise UserError(
            f"{getfile(type(check))}: check {check.name()}: keeps_each gave "
            f"{counted(len(results), 'result')} for {counted(len(candidates), 'pair')}; "
            "it must give one for each pair, in order"
        )
    return results
