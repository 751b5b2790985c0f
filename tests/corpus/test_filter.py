import json
import random
from dataclasses import replace

import pytest

from bleuprint.corpus.alignment import word_translation
from bleuprint.corpus.filter import Filtering
from bleuprint.rules import CHECKS
from bleuprint.rules.rule import Check
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, TORTURE, write_set
from steps import run_sharded

LENGTHS = (CHECKS["length"](min=2, max=6), CHECKS["length_ratio"](max=2.0))


def run(
    tmp_path, pairs, checks=LENGTHS, shards=1, workers=1, tokenize=TOKENIZE, languages=("de", "en")
):
    before = TextFolder(tmp_path / "before", *languages)
    write_set(before, "train", pairs)
    write_set(before, "valid", [("a", "b c")])
    after, filter_stats = tmp_path / "after", tmp_path / "filter_stats.json"
    step = Filtering("m", before, after, filter_stats, checks, tokenize)
    run_sharded(step, tmp_path / "shards", shards, workers)
    return TextFolder(after, *languages), json.loads(filter_stats.read_text())["sets"]


@pytest.mark.parametrize("shards", [1, 3])
def test_only_train_is_filtered_and_accounted_for(tmp_path, shards):
    good, short, long = Pair("a b", "c d"), Pair("a", "b c"), Pair("w " * 9, "a b c d e f")
    after, sets = run(tmp_path, [short, good, long, good, Pair("a b", "a b c d e")], shards=shards)
    assert list(after.pairs("train")) == [good, good]
    assert list(after.pairs("valid")) == [("a", "b c")]
    assert (sets["train"]["pairs_in"], sets["train"]["pairs_out"]) == (5, 2)
    assert sets["train"]["dropped"] == {"length": 2, "length_ratio": 1}
    assert [sample["pair"] for sample in sets["train"]["samples"]["length"]] == [1, 3]


def test_each_side_is_checked_in_its_language(tmp_path):
    # seven tokens each, if elisions are separated as in French alone
    pair = Pair("вода из колодца холодная и вкусная сегодня", "l'eau d'un puits est bonne")
    checks = (
        CHECKS["length"](min=7, max=7),
        CHECKS["character_score"](min=0.9),
        CHECKS["language_id"](min_odds=10.0),
    )
    pairs = [pair, Pair(*pair[::-1])]
    after, sets = run(tmp_path, pairs, checks, languages=("ru", "fr"))
    assert list(after.pairs("train")) == [pair]
    assert sets["train"]["dropped"] == {"length": 1, "character_score": 0, "language_id": 0}
    after, sets = run(tmp_path / "text", pairs, checks[2:], languages=("ru", "fr"))
    assert list(after.pairs("train")) == [pair]


def test_checks_run_in_the_order_of_the_settings(tmp_path):
    """A pair is counted for the first check that drops it."""

    class Even(Check):
        def keeps(self, candidate):
            return sum(map(len, candidate.tokens)) % 2 == 0

    odd_and_long = Pair("w " * 8 + "w", "a b c d e f")
    even_and_long = Pair("w " * 8, "a b c d e f")
    kept = Pair("a b", "c d")
    _, sets = run(tmp_path, [odd_and_long, even_and_long, kept], checks=(Even(), *LENGTHS))
    assert list(sets["train"]["dropped"].items()) == [
        ("even", 1),
        ("length", 1),
        ("length_ratio", 0),
    ]


def test_translations_are_learned_only_if_a_check_needs_them(tmp_path, monkeypatch):
    monkeypatch.delattr(word_translation, "learn_word_translations")
    after, _ = run(tmp_path, [Pair("a b", "c d")])
    assert after.count("train") == 1


def test_an_exception_in_a_check_names_its_pair(tmp_path):
    class Broken(Check):
        def keeps(self, candidate):
            return 1 / (candidate.pair.target != "d d") > 0

    pairs = [Pair("a a", "c c"), Pair("a", "d d"), Pair("b b", "d d"), Pair("a a", "d d")]
    with pytest.raises(UserError, match=r"ZeroDivisionError: .*, at 'b b\\td d'$"):
        run(tmp_path, pairs, checks=(*LENGTHS[:1], Broken()))


@pytest.mark.parametrize("given", [1, 3])
def test_a_check_that_does_not_judge_each_pair_is_named(tmp_path, given):
    class Broken(Check):
        keeps = None

        def keeps_each(self, _):
            return [True] * given

    line = rf"test_filter\.py: check broken: keeps_each gave {given} results? for 2 pairs; it must"
    with pytest.raises(UserError, match=line):
        run(tmp_path, [Pair("a a", "c c"), Pair("b b", "d d")], checks=(Broken(),))


def test_an_exception_after_the_last_pair(tmp_path):
    class Broken(Check):
        keeps = None

        def keeps_each(self, candidates):
            yield from [True] * len(candidates)
            raise ZeroDivisionError

    with pytest.raises(UserError, match="ZeroDivisionError"):
        run(tmp_path, [Pair("a a", "c c")], checks=(Broken(),))


@pytest.mark.parametrize(("shards", "workers"), [(1, 2), (1, 5), (7, 2)])
def test_shards_and_workers_change_no_byte(tmp_path, shards, workers):
    pairs = [Pair("w " * (i % 9), "v " * (i % 7)) for i in range(9000)]
    results = []
    for place, of, by in (("a", 1, 1), ("b", shards, workers)):
        after, sets = run(tmp_path / place, pairs, shards=of, workers=by)
        results.append(([path.read_bytes() for path in after.files("train")], sets))
    assert results[0] == results[1]


def translations(pairs=400):
    """Pairs of 3 to 9 words that translate each other; each fortieth has the next one's target."""
    draw = random.Random(1)
    ids = [[int(60 * draw.random() ** 2) for _ in range(draw.randint(3, 9))] for _ in range(pairs)]
    for n, words in enumerate(ids):
        target = words if n % 40 else ids[(n + 1) % pairs]
        yield Pair(" ".join(f"w{i}" for i in words), " ".join(f"v{i}" for i in target))


ALIGNED = (CHECKS["word_alignment"](min=0.5),)


def test_misaligned_pairs_are_dropped(tmp_path):
    pairs = list(translations(1000))
    after, sets = run(tmp_path, pairs, ALIGNED)
    good = [pair for n, pair in enumerate(pairs) if n % 40]
    left = list(after.pairs("train"))
    assert len(set(good) - set(left)) == 0
    assert len(left) - len(good) < 0.1 * (len(pairs) - len(good))
    assert sets["train"]["dropped"] == {"word_alignment": len(pairs) - len(left)}


def test_all_shards_and_workers_have_the_same_translations(tmp_path, monkeypatch):
    monkeypatch.setattr(word_translation, "MAX_PAIRS", 300)
    pairs, results = list(translations(9000)), []
    for shards, workers in ((1, 1), (1, 3), (3, 1)):
        place = tmp_path / f"{shards}-{workers}"
        after, sets = run(place, pairs, ALIGNED, shards, workers)
        results.append(([path.read_bytes() for path in after.files("train")], sets))
    assert results[0] == results[1] == results[2]


def test_sentences_that_torture_readers_are_scored(tmp_path):
    pairs = list(translations())
    odd = [Pair(f"w1{c}w2 {c}", f"{c}v1 v2{c}") for c in TORTURE]
    long = [Pair("w1 " * 30_000, "v1 " * 30_000), Pair("", "v1"), Pair("w1", " ")]
    after, sets = run(tmp_path, [*pairs, *odd, *long], ALIGNED)
    assert sets["train"]["pairs_in"] == len(pairs) + len(odd) + len(long)
    left = list(after.pairs("train"))
    assert not {Pair("", "v1"), Pair("w1", " ")} & set(left)
    assert long[0] in left


def test_a_text_to_learn_no_translations_from_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"^corpus m: no pair of 1 to 100 tokens a side to learn"):
        run(tmp_path, [Pair("w " * 200, "v " * 200)], ALIGNED)
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize("name", ["none", "characters"])
def test_words_are_scored_where_the_tokens_are_none(tmp_path, name):
    """With marks that `none` leaves at the words, and with characters as tokens."""
    pairs = [Pair(f"{source}.", f"{target}.") for source, target in translations(1000)]
    after, _ = run(tmp_path, pairs, ALIGNED, tokenize=replace(TOKENIZE, name=name))
    good = {pair for n, pair in enumerate(pairs) if n % 40}
    left = list(after.pairs("train"))
    assert good <= set(left) and len(left) - 975 < 3
