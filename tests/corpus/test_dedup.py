import json

import pytest

from bleuprint.config.corpus import Dedup
from bleuprint.corpus import dedup
from bleuprint.corpus.dedup import Deduplication
from bleuprint.rules import EDITS
from bleuprint.text.parallel import Pair, TextFolder
from corpora import DEDUP, PAIRS, write_set
from steps import run_sharded

ALL = Dedup(pairs=True, sources=True, targets=True, decontaminate="normalized")


def run(tmp_path, settings=DEDUP, shards=1, workers=1, edits=(), **sets):
    before = TextFolder(tmp_path / "before", "de", "en")
    for name, pairs in sets.items():
        write_set(before, name.replace("_", "."), pairs)
    after, filter_stats = tmp_path / "after", tmp_path / "filter_stats.json"
    step = Deduplication("c", before, after, filter_stats, settings, edits)
    run_sharded(step, tmp_path / "shards", shards, workers)
    return TextFolder(after, "de", "en"), json.loads(filter_stats.read_text())["sets"]


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_the_first_of_equal_pairs_stays(tmp_path, shards):
    a, b, c, *_ = PAIRS
    crossed = Pair(a.source, b.target)
    after, sets = run(tmp_path, shards=shards, train=[a, b, a, crossed, c, b, a])
    assert list(after.pairs("train")) == [a, b, crossed, c]
    assert sets["train"]["dropped"]["duplicate_pair"] == 3
    numbers = [sample["pair"] for sample in sets["train"]["samples"]["duplicate_pair"]]
    assert numbers == [3, 6, 7]


def slow_and_obvious(settings, train, held_out):
    sources, targets = ({pair[side] for pair in held_out} for side in (0, 1))
    kept = []
    for pair in train:
        twice = (
            (settings.pairs and pair in kept)
            or (settings.sources and pair.source in {other.source for other in kept})
            or (settings.targets and pair.target in {other.target for other in kept})
        )
        leaked = settings.decontaminate != "none" and (
            pair.source in sources or pair.target in targets
        )
        if not twice and not leaked:
            kept.append(pair)
    return kept


@pytest.mark.parametrize("overlap", ["none", "exact"])
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("sources", [True, False])
@pytest.mark.parametrize("targets", [True, False])
def test_each_choice_equals_the_obvious_loop(tmp_path, pairs, sources, targets, overlap):
    train = [Pair(f"s{i * i % 37}", f"t{i * i * i % 41}") for i in range(300)]
    held_out = [Pair("s1", "other"), Pair("other", "t2"), Pair("s4", "t8")]
    settings = Dedup(pairs, sources, targets, overlap)
    after, sets = run(tmp_path, settings, 3, train=train, valid=held_out)
    assert list(after.pairs("train")) == slow_and_obvious(settings, train, held_out)
    assert sum(sets["train"]["dropped"].values()) == 300 - sets["train"]["pairs_out"]


def test_a_pair_that_is_dropped_is_no_reason_to_drop_another(tmp_path):
    train = [Pair("a", "leaked"), Pair("a", "b"), Pair("c", "b"), Pair("c", "d")]
    after, sets = run(tmp_path, ALL, train=train, valid=[Pair("x", "leaked")])
    assert list(after.pairs("train")) == [train[1], train[3]]
    assert {rule: n for rule, n in sets["train"]["dropped"].items() if n} == {
        "target_held_out": 1,
        "same_target": 1,
    }


def test_what_is_held_out_leaves_train(tmp_path):
    a, b, c, d, e, _ = PAIRS
    train = [a, Pair(b.source, "x"), Pair("x", c.target), d, Pair(e.target, e.source)]
    after, sets = run(tmp_path, train=train, valid=[b, e], test_x=[c, a])
    assert list(after.pairs("train")) == [d, Pair(e.target, e.source)]
    assert sets["train"]["dropped"] == {
        "duplicate_pair": 0,
        "source_held_out": 2,
        "target_held_out": 1,
    }
    assert list(after.pairs("valid")) == [b, e]
    assert list(after.pairs("test.x")) == [c, a]


def test_how_sentences_are_compared_is_a_choice(tmp_path):
    train = [Pair("über Nacht", "over night"), Pair("am Tag", "by day"), Pair("früh", "early")]
    odd = [("\ufeffu\u0308ber\u2028NACHT!\r", "x"), ("y", " by\u200b day\x00"), ("z", "early")]
    for overlap, left in (("none", train), ("exact", train[:2]), ("normalized", [])):
        settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=overlap)
        after, sets = run(tmp_path, settings, train=[*train, PAIRS[0]], test_x=odd)
        assert list(after.pairs("train")) == [*left, PAIRS[0]]
        assert list(after.pairs("test.x")) == odd
        assert ("source_held_out" in sets["train"]["dropped"]) == (overlap != "none")


@pytest.mark.parametrize("overlap", ["exact", "normalized"])
def test_an_edit_hides_no_overlap(tmp_path, overlap):
    edits = (EDITS["entities"](), EDITS["punctuation"]())
    known = [Pair('Sie sagt "Ja".', "AT&T is known."), *PAIRS[2:4]]  # as cleaning leaves them
    raw = [Pair("Sie sagt &bdquo;Ja&ldquo;.", "x"), Pair("y", "AT&amp;T is known."), PAIRS[2]]
    settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=overlap)
    for held_out in raw:
        after, _ = run(tmp_path, settings, edits=edits, train=known, test_x=[held_out])
        lost = PAIRS[2] if held_out is PAIRS[2] else known[0]
        assert list(after.pairs("train")) == [pair for pair in known if pair != lost]
        assert list(after.pairs("test.x")) == [held_out]


@pytest.mark.parametrize("overlap", ["exact", "normalized"])
def test_a_sentence_that_an_edit_would_change_again_is_found_as_it_is(tmp_path, overlap):
    """As cleaning leaves what was escaped three times: the edit takes off one level each time."""
    escaped = Pair("&amp;lt;", "x")
    settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=overlap)
    after, _ = run(
        tmp_path,
        settings,
        edits=(EDITS["entities"](),),
        train=[escaped, PAIRS[0]],
        valid=[(escaped.source, "y")],
    )
    assert list(after.pairs("train")) == [PAIRS[0]]


def test_the_sides_are_not_confused(tmp_path):
    after, _ = run(tmp_path, train=[Pair("a b", "c"), Pair("a", "b c")])
    assert len(list(after.pairs("train"))) == 2


def test_hashes_that_end_in_zeros_are_compared_whole(tmp_path):
    hashes = [b"x" + bytes(15), b"x\0\1" + bytes(13), bytes(16), bytes(16), b"x" + bytes(15)]
    (tmp_path / "hashes").write_bytes(b"".join(hashes))
    groups = dedup._group_equal_hashes(tmp_path / "hashes").tolist()
    assert groups[1] == 0 and groups[0] == groups[4] and groups[2] == groups[3]
    assert len(set(groups)) == 3


@pytest.mark.parametrize(("shards", "workers"), [(1, 2), (1, 5), (4, 1), (13, 2)])
def test_shards_and_workers_change_no_byte(tmp_path, shards, workers):
    train = [Pair(f"Satz {i % 4000}", f"sentence {i % 5500}") for i in range(9000)]
    results = []
    for place, of, by in (("a", 1, 1), ("b", shards, workers)):
        after, sets = run(tmp_path / place, ALL, of, by, train=train, valid=train[7:9])
        results.append(([path.read_bytes() for path in after.files("train")], sets))
    assert results[0] == results[1]
    assert 0 < results[0][1]["train"]["pairs_out"] < 9000


def test_two_shards_hold_a_part_of_all_hashes_at_a_time_to_the_same_bytes(tmp_path, monkeypatch):
    train = [Pair(f"Satz {i % 4000}", f"sentence {i % 5500}") for i in range(9000)]
    whole = run(tmp_path / "whole", ALL, train=train, valid=train[7:9])
    held, of_turn = [], dedup._read_range

    def watched(*turn):
        parts = [*of_turn(*turn)]
        held.append(sum(len(some) for _, some in parts))
        return parts

    monkeypatch.setattr(dedup, "_read_range", watched)
    monkeypatch.setattr(dedup, "_HASHES_PER_RANGE", 500)
    monkeypatch.setattr(dedup, "_HASHES_PER_READ", 700)
    parts = run(tmp_path / "parts", ALL, 2, train=train, valid=train[7:9])
    assert len(held) == 18 + 2 * 18 + 2 * 18
    assert min(held) > 300 and max(held) < 700
    for one, other in zip(whole[0].files("train"), parts[0].files("train"), strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert whole[1] == parts[1]
