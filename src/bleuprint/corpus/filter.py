"""The stage filter: drop the training pairs that fail a check. Held-out sets are copied.

`Filtering` is the stage. The checks are the rules that `filter` in params.yaml names; their code is
in the package rules.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import getfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.dedup import FILTERED_COUNT_FILE
from bleuprint.corpus.steps.filtering import FilteredBlock, FilterStep, kept_pairs
from bleuprint.corpus.steps.shard import Shard
from bleuprint.corpus.steps.sharded import step_files
from bleuprint.rules.rule import Candidate, Check, Tokens, rule_error
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.wording import counted
from bleuprint.text.language_codes import language_code
from bleuprint.text.parallel import Block, Pair
from bleuprint.text.tokenizers import Tokenize, token_bounds, tokenizer_for

if TYPE_CHECKING:
    from bleuprint.corpus.alignment.word_translation import WordTranslations

# The name of the set of sentence pairs from which word translations are learned, in an index.
_SAMPLE = "sample"


@dataclass(frozen=True)
class Filtering(FilterStep):
    """The stage filter on one corpus.

    Attributes:
        checks: The checks, in the order in which they run.
        tokenize: The settings of the tokenizer. Checks of lengths count its tokens.
        sample: A folder with the sentence pairs from which word translations are learned; None if
            they are taken from the training text.
    """

    stage = "filter"
    checks: tuple[Check, ...]
    tokenize: Tokenize
    sample: Path | None = None

    @classmethod
    def for_corpus(cls, name: str, corpus: Corpus, root: Path = Path()) -> Self:
        """Set up the filtering of one corpus: what it reads and writes, and the checks to run.

        Args:
            name: Corpus name, such as `multi30k`.
            corpus: The settings of the corpus; `corpus.filter` are the checks.
            root: The project folder; by default the current folder.
        """
        # Reads data/dedup/NAME, and writes data/filter/NAME and a file of statistics.
        files = step_files(
            name,
            corpus,
            root,
            stage=cls.stage,
            input_folder="dedup",
            output_folder="filter",
        )
        return cls(
            corpus=name,
            input_text=files.input_text,
            output=files.output,
            filter_stats_path=files.filter_stats_path,
            checks=corpus.filter,
            tokenize=corpus.tokenize,
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the checks, which may drop a pair."""
        return tuple(check.name() for check in self.checks)

    @cached_property
    def filtered_count(self) -> int:
        """The number of training pairs, at the beginning of the text, that are filtered already.

        They are from parts of the corpus, each of which was filtered by its own rules. The stage
        dedup writes their number to a file, unless the corpus has no parts.
        """
        path = self.input_text.path / FILTERED_COUNT_FILE
        if not path.is_file():
            return 0
        return int(read_json_object(path, ("pairs",))["pairs"])

    @property
    def unfiltered_count(self) -> int:
        """The number of training pairs that this stage filters."""
        return self.input_text.count("train") - self.filtered_count

    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Filter a part of the training text, in several processes.

        Args:
            shard: Which part of the training text to read.
            part: The folder to write to: the kept pairs, and how many pairs each check dropped.
            workers: The number of processes.
        """
        # These are cached properties, computed when they are first read. Each worker process
        # receives a copy of this object, so compute them before the copies.
        _ = self.translations
        _ = self.filtered_count
        super().process_shard(shard, part, workers)

    def filter_block(self, name: str, block: Block) -> FilteredBlock:  # noqa: ARG002
        """Drop the sentence pairs of a block that fail a check, such as a limit of their length.

        Args:
            name: The data set of the block. It is always `train`, so it is not used.
            block: Consecutive sentence pairs.

        Returns:
            The pairs that are kept, and the number of pairs that each check dropped.
        """
        # The first pairs of the text, which are from parts, are filtered already and all kept.
        pairs_before_block = block.first - 1  # `first` counts from 1.
        filtered_in_block = max(0, self.filtered_count - pairs_before_block)
        if filtered_in_block >= len(block):
            return kept_pairs(block, [None] * len(block))
        failed_checks: list[str | None] = [None] * filtered_in_block
        unfiltered_pairs = block.pairs()[filtered_in_block:]
        failed_checks += self.first_failed_checks(unfiltered_pairs)
        return kept_pairs(block, failed_checks)

    def first_failed_checks(self, pairs: Sequence[Pair]) -> list[str | None]:
        """Return for each sentence pair the first check that it fails.

        Each check runs only on the pairs that passed the checks before it.

        Args:
            pairs: The sentence pairs.

        Returns:
            The name of the check, such as `length`; or None for a pair that passes all checks.

        Raises:
            UserError: A check raises an exception, or does not return one result for each pair.
        """
        candidates = [self._candidate(pair) for pair in pairs]
        failed_checks: list[str | None] = [None] * len(pairs)
        for check in self.checks:
            remaining = [index for index, failed in enumerate(failed_checks) if failed is None]
            if not remaining:
                break
            remaining_candidates = [candidates[index] for index in remaining]
            results = _run_check(check, remaining_candidates)
            for index, has_passed in zip(remaining, results, strict=True):
                if not has_passed:
                    failed_checks[index] = check.name()
        return failed_checks

    def write_index(self, folder: Path) -> None:
        """Read the training text once, and write what the processes of its shards need of it.

        If a check needs word translations, this includes the sentence pairs to learn them from.

        Args:
            folder: The folder to write to. `with_index` reads it.
        """
        super().write_index(folder)
        if self._needs_translations:
            with self.input_text.with_path(folder).writer(_SAMPLE) as writer:
                for pair in self.with_index(folder)._pairs_to_learn_from():
                    writer.write(pair)

    def with_index(self, folder: Path) -> Self:
        """Return this stage with an index, by which it finds a shard without reading the others.

        Args:
            folder: The folder that `write_index` has written, or is writing.
        """
        step = super().with_index(folder)
        source_file, _ = self.input_text.with_path(folder).files(_SAMPLE)
        return replace(step, sample=folder) if source_file.is_file() else step

    @property
    def _needs_translations(self) -> bool:
        """Whether a check scores how well two sentences match, by word translations."""
        return any(check.needs_translations for check in self.checks)

    @cached_property
    def translations(self) -> "WordTranslations | None":
        """The word translations by which some checks score how well two sentences match.

        They are learned from all training pairs that this stage filters, even if this process
        filters only a shard of them, so that a pair's score does not depend on the division.

        None if no check needs them, or if there are no such pairs, as in a zero-shot direction.
        """
        if not self._needs_translations or self.unfiltered_count == 0:
            return None
        # Imported here because SciPy, which this module needs, takes a fifth of a second to load.
        from bleuprint.corpus.alignment import word_translation

        try:
            return word_translation.learn_word_translations(self._words_to_learn_from())
        except UserError as error:
            raise UserError(f"corpus {self.corpus}: {error}") from None

    def _words_to_learn_from(self) -> Iterator[tuple[Tokens, Tokens]]:
        """Yield the source words and the target words of pairs, to learn word translations from."""
        if self.sample is None:
            pairs = self._pairs_to_learn_from()
        else:
            pairs = self.input_text.with_path(self.sample).pairs(_SAMPLE)
        for pair in pairs:
            yield self._words(self._candidate(pair))

    def _pairs_to_learn_from(self) -> Iterator[Pair]:
        """Yield the training pairs from which word translations are learned.

        Pairs of parts, which are filtered already, are not among them. If the training text is
        large, these are a sample of the other pairs, evenly spaced over the text.
        """
        from bleuprint.corpus.alignment.word_translation import MAX_TOKENS, is_sampled

        unfiltered_count = self.unfiltered_count
        unfiltered_pairs = islice(self.input_text.pairs("train"), self.filtered_count, None)
        for index, pair in enumerate(unfiltered_pairs):
            if not is_sampled(index, unfiltered_count):
                continue
            # Tokenizing a very long sentence may take minutes, and translations are not learned
            # from sentences of more than MAX_TOKENS tokens anyway. Spaces are quick to count.
            space_count = max(pair.source.count(" "), pair.target.count(" "))
            if space_count < MAX_TOKENS:
                yield pair

    @cached_property
    def _language_codes(self) -> tuple[str, str]:
        """The codes by which rules know the languages: `zh` if the source is `zh-Hant`."""
        source, target = self.input_text.languages
        return language_code(source), language_code(target)

    def _candidate(self, pair: Pair) -> Candidate:
        """Wrap a sentence pair for the checks, with functions to tokenize and score it.

        These functions are slow, so a check calls them only if it needs them. `bounds` are quick
        estimates of the number of tokens, a lower and an upper bound for each side: most pairs pass
        or fail a length check by them, without being tokenized.
        """
        return Candidate(
            pair=pair,
            languages=self._language_codes,
            tokenizers=self._tokenizers,
            score=self._score,
            bounds=(
                token_bounds(pair.source, self.tokenize),
                token_bounds(pair.target, self.tokenize),
            ),
        )

    @cached_property
    def _tokenizers(self) -> tuple[Callable[[str], Tokens], Callable[[str], Tokens]]:
        """The functions that split a sentence into tokens: one for sources, one for targets."""
        # Worker processes receive them by pickle, which supports `partial`, but no lambda.
        source_language, target_language = self.input_text.languages
        return (
            partial(_tokens, self.tokenize, source_language),
            partial(_tokens, self.tokenize, target_language),
        )

    def _score(self, candidate: Candidate) -> float:
        """Return how well the source and target words of a sentence pair translate each other."""
        assert self.translations is not None, "for a check that needs_translations"
        source_words, target_words = self._words(candidate)
        return self.translations.score(source_words, target_words)

    def _words(self, candidate: Candidate) -> tuple[Tokens, Tokens]:
        """Return the source words and the target words of a sentence pair, for word translations.

        These are the pair's tokens, unless the corpus is not tokenized, or tokenized into
        characters: then a simple rule splits the sentences into words.
        """
        if self.tokenize.name in ("none", "characters"):
            from bleuprint.corpus.alignment.words import split_words

            return split_words(candidate.pair.source), split_words(candidate.pair.target)
        return candidate.tokens


def _tokens(settings: Tokenize, language: str, sentence: str) -> Tokens:
    """Split a sentence into tokens. The first sentence of a process loads the tokenizer."""
    return tokenizer_for(language, settings).tokenize(sentence)


def _run_check(check: Check, candidates: Sequence[Candidate]) -> list[bool]:
    """Run a check on sentence pairs, and return for each pair whether it passes.

    Args:
        check: The check, which may be written by the user.
        candidates: The sentence pairs, wrapped for checks.

    Raises:
        UserError: The check raises an exception, returns None for a pair, or its number of results
            is not the number of candidates.
    """
    results = list[bool]()
    try:
        # One by one, so that the results before an exception are known.
        for passes in check.keeps_each(candidates):
            results.append(passes)
    except Exception as error:  # A check may be the user's own code, which may raise anything.
        # The check probably failed at the first pair without a result. The message shows this pair.
        failing_pair = None
        if len(results) < len(candidates):
            failing_candidate = candidates[len(results)]
            failing_pair = "\t".join(failing_candidate.pair)
        raise rule_error(error, failing_pair) from error
    if len(results) != len(candidates):
        raise UserError(
            f"{getfile(type(check))}: check {check.name()}: keeps_each gave "
            f"{counted(len(results), 'result')} for {counted(len(candidates), 'pair')}. "
            "It must give one for each pair, in order"
        )
    for candidate, passes in zip(candidates, results, strict=True):
        # A method without `return` returns None. It would drop all pairs.
        if passes is None:
            pair = "\t".join(candidate.pair)
            raise UserError(
                f"{getfile(type(check))}: check {check.name()} returns None for {pair!r}. It must "
                "return True to keep a pair, or False to drop it"
            )
    return results
