"""The stage filter drops the training pairs that fail a check, such as a limit of length."""

import json
import random
from dataclasses import dataclass, replace

import pytest

from bleuprint.corpus.alignment import word_translation
from bleuprint.corpus.filter import Filtering
from bleuprint.rules import CHECKS
from bleuprint.rules.rule import Check
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, TORTURE, write_set
from steps import run_sharded

LENGTH_CHECKS = (CHECKS["length"](min=2, max=6), CHECKS["length_ratio"](max=2.0))


def filter_pairs(
    tmp_path,
    pairs,
    checks=LENGTH_CHECKS,
    shards=1,
    workers=1,
    tokenize=TOKENIZE,
    languages=("de", "en"),
):
    """Run the stage filter on training pairs, and on a validation set with the pair "a", "b c".

    Args:
        tmp_path: The folder for input and output.
        pairs: The training pairs.
        checks: The checks; as default 2 to 6 tokens, and at most twice as many as the other side.
        shards: The number of shards that the training text is divided into.
        workers: The number of processes.
        tokenize: The settings of the tokenizer, whose tokens the checks count.
        languages: The source and the target language.

    Returns:
        The text after the stage, and the filtering statistics by set.
    """
    before = TextFolder(tmp_path / "before", *languages)
    write_set(before, "train", pairs)
    write_set(before, "valid", [("a", "b c")])
    stats_file = tmp_path / "filter_stats.json"
    step = Filtering("m", before, tmp_path / "after", stats_file, checks, tokenize)
    run_sharded(step, tmp_path / "shards", shards, workers)
    return TextFolder(tmp_path / "after", *languages), json.loads(stats_file.read_text())["sets"]


def assert_same_output(result, other_result):
    """Check that two results of `filter_pairs` have the same training files and statistics."""
    text, sets = result
    other_text, other_sets = other_result
    for path, other_path in zip(text.files("train"), other_text.files("train"), strict=True):
        assert path.read_bytes() == other_path.read_bytes()
    assert sets == other_sets


@pytest.mark.parametrize("shards", [1, 3])
def test_training_pairs_that_fail_a_check_are_dropped_and_counted(tmp_path, shards):
    """The checks ask for 2 to 6 tokens, and for at most twice as many tokens as the other side."""
    checks = (CHECKS["length"](min=2, max=6), CHECKS["length_ratio"](max=2.0))
    good = Pair("a b", "c d")
    too_short = Pair("a", "b c")
    too_long = Pair("w " * 9, "a b c d e f")
    unequal = Pair("a b", "a b c d e")

    after, sets = filter_pairs(
        tmp_path, [too_short, good, too_long, good, unequal], checks, shards=shards
    )

    assert list(after.pairs("train")) == [good, good]
    assert sets["train"]["pairs_in"] == 5
    assert sets["train"]["pairs_out"] == 2
    assert sets["train"]["dropped"] == {"length": 2, "length_ratio": 1}
    dropped_by_length = [sample["pair"] for sample in sets["train"]["samples"]["length"]]
    assert dropped_by_length == [1, 3]  # Counted from 1: too_short and too_long.


@pytest.mark.parametrize("shards", [1, 3])
def test_a_validation_pair_that_fails_a_check_stays(tmp_path, shards):
    """Held-out sets must stay complete, or scores would not be comparable.

    `filter_pairs` adds a validation set with one pair: "a", which has one token, and "b c".
    """
    at_least_two_tokens = CHECKS["length"](min=2, max=6)

    after, _ = filter_pairs(tmp_path, [Pair("a b", "c d")], (at_least_two_tokens,), shards=shards)

    assert list(after.pairs("valid")) == [("a", "b c")]


def test_each_side_is_checked_in_its_language(tmp_path):
    """The pair passes all checks, and fails them if its sides are swapped."""
    # Both sides have seven tokens, but only if l' and d' are split off by the French tokenizer.
    russian = "вода из колодца холодная и вкусная сегодня"
    french = "l'eau d'un puits est bonne"
    pair = Pair(russian, french)
    swapped_pair = Pair(french, russian)
    checks = (
        CHECKS["length"](min=7, max=7),
        CHECKS["character_score"](min=0.9),
        CHECKS["language_id"](min_odds=10.0),
    )

    after, sets = filter_pairs(tmp_path, [pair, swapped_pair], checks, languages=("ru", "fr"))

    assert list(after.pairs("train")) == [pair]
    # The first check drops the swapped pair: the Russian tokenizer splits l'eau differently.
    assert sets["train"]["dropped"] == {"length": 1, "character_score": 0, "language_id": 0}


def test_language_id_drops_a_pair_whose_languages_are_swapped(tmp_path):
    """The settings say that the source is Russian and the target French."""
    russian = "вода из колодца холодная и вкусная сегодня"
    french = "l'eau d'un puits est bonne"
    pair = Pair(russian, french)
    swapped_pair = Pair(french, russian)
    checks = (CHECKS["language_id"](min_odds=10.0),)

    after, _ = filter_pairs(tmp_path, [pair, swapped_pair], checks, languages=("ru", "fr"))

    assert list(after.pairs("train")) == [pair]


def test_a_pair_is_counted_for_the_first_check_that_drops_it(tmp_path):
    """Checks run in the order of the settings; later checks do not see a pair that is dropped."""

    class Even(Check):
        """Keeps pairs with an even number of tokens."""

        def keeps(self, candidate):
            source_tokens, target_tokens = candidate.tokens
            return (len(source_tokens) + len(target_tokens)) % 2 == 0

    odd_and_long = Pair("w " * 8 + "w", "a b c d e f")  # 9 + 6 tokens.
    even_and_long = Pair("w " * 8, "a b c d e f")  # 8 + 6 tokens.
    good = Pair("a b", "c d")
    checks = (Even(), CHECKS["length"](min=2, max=6), CHECKS["length_ratio"](max=2.0))

    _, sets = filter_pairs(tmp_path, [odd_and_long, even_and_long, good], checks)

    # The statistics list the checks in the order of the settings.
    assert list(sets["train"]["dropped"].items()) == [
        ("even", 1),
        ("length", 1),
        ("length_ratio", 0),
    ]


def test_word_translations_are_learned_only_if_a_check_needs_them(tmp_path, monkeypatch):
    """Learning them takes minutes on a large text; checks of length do not need them."""
    # Without this function, learning word translations would raise an AttributeError.
    monkeypatch.delattr(word_translation, "learn_word_translations")

    after, _ = filter_pairs(tmp_path, [Pair("a b", "c d")], checks=LENGTH_CHECKS)

    assert after.count("train") == 1


def test_an_error_message_quotes_the_pair_for_which_a_check_raised_an_exception(tmp_path):
    """The author of a check can then reproduce the error with this pair."""

    class DividesByZero(Check):
        """Raises an exception for the target "d d"."""

        def keeps(self, candidate):
            is_good = candidate.pair.target != "d d"
            return 1 / is_good > 0

    good = Pair("a a", "c c")
    # The check of lengths drops this pair before the broken check sees it.
    short_pair = Pair("a", "d d")
    failing_pair = Pair("b b", "d d")
    later_failing_pair = Pair("a a", "d d")
    pairs = [good, short_pair, failing_pair, later_failing_pair]
    checks = (CHECKS["length"](min=2, max=6), DividesByZero())

    with pytest.raises(UserError, match=r"ZeroDivisionError: .*, at 'b b\\td d'$"):
        filter_pairs(tmp_path, pairs, checks)


@pytest.mark.parametrize("result_count", [1, 3])
def test_a_check_with_too_few_or_too_many_results_is_named(tmp_path, result_count):
    """A result too few would shift all later ones, so that the wrong pairs would be dropped."""

    class Broken(Check):
        """Judges pairs in blocks, but returns a wrong number of results."""

        keeps = None

        def keeps_each(self, _):
            return [True] * result_count

    two_pairs = [Pair("a a", "c c"), Pair("b b", "d d")]

    message = (
        rf"test_filter\.py: check broken: keeps_each gave {result_count} results? for 2 pairs\. "
        "It must"
    )
    with pytest.raises(UserError, match=message):
        filter_pairs(tmp_path, two_pairs, checks=(Broken(),))


def test_a_check_that_forgets_to_return_its_result_is_refused(tmp_path):
    """Python then returns None, which would drop all pairs without a message."""

    @dataclass(frozen=True)
    class Forgetful(Check):
        def keeps(self, candidate):
            bool(candidate.pair.source)

    message = r"test_filter\.py: check forgetful returns None for 'a a\\tc c'\. It must return True"
    with pytest.raises(UserError, match=message):
        filter_pairs(tmp_path, [Pair("a a", "c c")], checks=(Forgetful(),))


def test_an_exception_that_a_check_raises_after_the_last_pair_is_reported(tmp_path):
    """The results are a generator, which may fail after all expected results were read."""

    class FailsAtTheEnd(Check):
        """Judges all pairs before it raises an exception."""

        keeps = None

        def keeps_each(self, candidates):
            yield from [True] * len(candidates)
            raise ZeroDivisionError

    with pytest.raises(UserError, match="ZeroDivisionError"):
        filter_pairs(tmp_path, [Pair("a a", "c c")], checks=(FailsAtTheEnd(),))


@pytest.mark.parametrize(("shards", "workers"), [(1, 2), (1, 5), (7, 2)])
def test_shards_and_workers_do_not_change_the_output(tmp_path, shards, workers):
    """The default checks ask for 2 to 6 tokens, and for at most twice the other side's tokens."""
    # 0 to 8 source tokens and 0 to 6 target tokens, in all combinations.
    pairs = [Pair("w " * (i % 9), "v " * (i % 7)) for i in range(9000)]

    result = filter_pairs(tmp_path / "one", pairs, shards=1, workers=1)
    other_result = filter_pairs(tmp_path / "many", pairs, shards=shards, workers=workers)

    assert_same_output(result, other_result)


def is_misaligned(index):
    """Return whether a pair of `generated_translations` has the target of the next pair."""
    return index % 40 == 0


def generated_translations(pair_count):
    """Return pairs of 3 to 9 words; the word w7 is translated by v7, and each other word likewise.

    One pair of 40 is misaligned: its target translates the next pair's source.
    """
    generator = random.Random(1)
    sentences = []
    for _ in range(pair_count):
        length = generator.randint(3, 9)
        # Squares make small numbers more frequent, as words in natural text are.
        sentences.append([int(60 * generator.random() ** 2) for _ in range(length)])
    pairs = []
    for index, source_numbers in enumerate(sentences):
        target_numbers = source_numbers
        if is_misaligned(index):
            target_numbers = sentences[(index + 1) % pair_count]
        source = " ".join(f"w{number}" for number in source_numbers)
        target = " ".join(f"v{number}" for number in target_numbers)
        pairs.append(Pair(source, target))
    return pairs


def aligned_pairs(pairs):
    """Return those of the generated translations whose sides translate each other."""
    return [pair for index, pair in enumerate(pairs) if not is_misaligned(index)]


def test_word_alignment_drops_nine_of_ten_misaligned_pairs_and_no_other(tmp_path):
    """In the generated pairs, v0 translates w0; one pair of 40 has another pair's target."""
    pairs = generated_translations(1000)
    aligned = aligned_pairs(pairs)

    after, sets = filter_pairs(tmp_path, pairs, (CHECKS["word_alignment"](min=0.5),))

    kept_pairs = list(after.pairs("train"))
    assert set(aligned) <= set(kept_pairs)  # No aligned pair is dropped.
    kept_misaligned_count = len(kept_pairs) - len(aligned)
    misaligned_count = len(pairs) - len(aligned)
    assert kept_misaligned_count < 0.1 * misaligned_count
    assert sets["train"]["dropped"] == {"word_alignment": len(pairs) - len(kept_pairs)}


def test_all_shards_and_workers_use_the_same_word_translations(tmp_path, monkeypatch):
    """The check word_alignment learns from the text which words translate each other.

    If each shard learned from its own pairs, the result would depend on the number of shards.
    """
    pairs = generated_translations(9000)
    checks = (CHECKS["word_alignment"](min=0.5),)
    # Learn from an evenly spaced sample of 300 of the 9,000 pairs.
    monkeypatch.setattr(word_translation, "MAX_PAIRS", 300)

    result = filter_pairs(tmp_path / "one", pairs, checks)
    result_of_workers = filter_pairs(tmp_path / "workers", pairs, checks, workers=3)
    result_of_shards = filter_pairs(tmp_path / "shards", pairs, checks, shards=3)

    assert_same_output(result, result_of_workers)
    assert_same_output(result, result_of_shards)


def test_word_alignment_scores_unusual_sentences(tmp_path):
    """A check must not crash at control characters, at 30,000 words, or at an empty side.

    In the generated pairs, v1 translates w1. TORTURE contains characters at which programs end
    lines.
    """
    pairs = generated_translations(400)
    with_control_characters = [Pair(f"w1{char}w2 {char}", f"{char}v1 v2{char}") for char in TORTURE]
    long_pair = Pair("w1 " * 30_000, "v1 " * 30_000)
    empty_source = Pair("", "v1")
    blank_target = Pair("w1", " ")
    unusual_pairs = [*with_control_characters, long_pair, empty_source, blank_target]

    after, sets = filter_pairs(
        tmp_path, pairs + unusual_pairs, checks=(CHECKS["word_alignment"](min=0.5),)
    )

    kept_pairs = list(after.pairs("train"))
    assert sets["train"]["pairs_in"] == len(pairs) + len(unusual_pairs)
    assert long_pair in kept_pairs
    assert empty_source not in kept_pairs
    assert blank_target not in kept_pairs


def test_a_text_of_sentences_too_long_to_learn_translations_from_is_refused(tmp_path):
    """The check word_alignment learns from sentences of at most 100 tokens; the text has none."""
    pair_of_200_tokens = Pair("w " * 200, "v " * 200)

    with pytest.raises(UserError, match=r"^corpus m: no pair has 1 to 100 tokens on each side"):
        filter_pairs(tmp_path, [pair_of_200_tokens], checks=(CHECKS["word_alignment"](min=0.5),))

    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize("tokenizer", ["none", "characters"])
def test_word_alignment_scores_words_even_if_tokens_are_not_words(tmp_path, tokenizer):
    """The tokenizer `none` leaves the period at the last word; `characters` splits words.

    In the generated pairs, v0 translates w0, and so on. One pair of 40 has another pair's target.
    """
    pairs = []
    for source, target in generated_translations(1000):
        pairs.append(Pair(f"{source}.", f"{target}."))
    aligned = aligned_pairs(pairs)

    after, _ = filter_pairs(
        tmp_path,
        pairs,
        checks=(CHECKS["word_alignment"](min=0.5),),
        tokenize=replace(TOKENIZE, name=tokenizer),
    )

    kept_pairs = list(after.pairs("train"))
    assert set(aligned) <= set(kept_pairs)  # No aligned pair is dropped.
    # Of 1,000 / 40 = 25 misaligned pairs, at most two are kept.
    assert len(kept_pairs) - len(aligned) < 3
