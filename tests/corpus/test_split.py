import json
from itertools import chain

import pytest

from bleuprint.config.corpus import Split
from bleuprint.corpus.split import split_folder
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import PAIRS, write_set

MANY = [Pair(f"Satz {i}", f"sentence {i}") for i in range(200)]


SHARES = Split(0.05, 0.1, 7)


def run(root, settings=SHARES, decontaminate="normalized", workers=1, **sets):
    before = TextFolder(root / "before", "de", "en")
    for name, pairs in sets.items():
        write_set(before, name.replace("_", "."), pairs)
    split_folder(
        "c", settings, decontaminate, before, root / "after", root / "filter_stats.json", workers
    )
    after = TextFolder(root / "after", "de", "en")
    found = {name: list(after.pairs(name)) for name in after.set_names()}
    return found, json.loads((root / "filter_stats.json").read_text())["sets"]


def test_missing_sets_are_drawn_and_the_rest_keeps_its_order(tmp_path):
    found, filter_stats = run(tmp_path, train=MANY)
    assert {name: len(pairs) for name, pairs in found.items()} == {
        "train": 170,
        "valid": 10,
        "test.held-out": 20,
    }
    assert sorted(chain(*found.values()), key=MANY.index) == MANY
    for pairs in found.values():
        assert pairs == sorted(pairs, key=MANY.index)
    # A shuffle, not the head or the tail.
    assert set(found["test.held-out"]) not in (set(MANY[:20]), set(MANY[-20:]))
    assert filter_stats["train"]["dropped"] == {
        "drawn_for_valid": 10,
        "drawn_for_test": 20,
        "source_held_out": 0,
        "target_held_out": 0,
    }


@pytest.mark.parametrize(
    ("valid", "test", "sizes"),
    [(0.25, 0.1, (130, 50, 20)), (0.1, 0.4, (100, 20, 80)), (0.01, 0.02, (194, 2, 4))],
)
def test_the_sets_have_the_shares_of_the_settings(tmp_path, valid, test, sizes):
    found, _ = run(tmp_path, Split(valid, test, 7), train=MANY)
    assert tuple(len(found[name]) for name in ("train", "valid", "test.held-out")) == sizes


@pytest.mark.parametrize("every", [2, 7])
def test_the_interval_of_validation_pairs_is_that_of_the_settings(tmp_path, every):
    found, _ = run(tmp_path, Split(0.0, 0.1, 1, every=every), train=MANY, test_x=PAIRS)
    assert found["valid"] == MANY[every - 1 :: every]


def test_the_seed_decides(tmp_path):
    first, _ = run(tmp_path / "a", train=MANY)
    again, _ = run(tmp_path / "b", train=MANY)
    other, _ = run(tmp_path / "c", Split(0.05, 0.1, 8), train=MANY)
    assert first == again != other


def test_pairs_that_are_dropped_change_few_others(tmp_path):
    """Of 2,000 pairs 40 are dropped, and of the 300 that were drawn those that were among them."""
    many = [Pair(f"Satz {i}", f"sentence {i}") for i in range(2000)]
    first, _ = run(tmp_path / "a", train=many)
    fewer, _ = run(tmp_path / "b", train=[pair for i, pair in enumerate(many) if i % 50])
    for name, size, after in (("test.held-out", 200, 196), ("valid", 100, 98)):
        assert (len(first[name]), len(fewer[name])) == (size, after)
        assert len({*fewer[name]} - {*first[name]}) <= size // 50
        assert len({*first[name]} - {*fewer[name]}) <= 2 * size // 50


def test_given_sets_stay_and_only_the_missing_one_is_drawn(tmp_path):
    found, _ = run(tmp_path / "a", train=MANY, valid=PAIRS)
    assert found["valid"] == PAIRS and len(found["test.held-out"]) == 20
    assert len(found["train"]) == 180
    found, _ = run(tmp_path / "b", train=MANY, test_x=PAIRS)
    assert found["test.x"] == PAIRS and len(found["valid"]) == 10
    assert "test.held-out" not in found
    found, filter_stats = run(tmp_path / "c", train=MANY, test_x=PAIRS, valid=PAIRS)
    assert found == {"train": MANY, "valid": PAIRS, "test.x": PAIRS}
    assert filter_stats["train"]["pairs_out"] == 200


def test_nothing_left_shares_a_sentence_with_what_was_drawn(tmp_path):
    train = [Pair(f"s{i // 3}", f"t{i // 2}") for i in range(300)]
    found, filter_stats = run(tmp_path, train=train)
    test, valid, rest = found["test.held-out"], found["valid"], found["train"]
    assert len(test) == 30
    for held_out, others in ((test, valid + rest), (valid, rest)):
        for side in (0, 1):
            assert not {pair[side] for pair in held_out} & {pair[side] for pair in others}
    dropped = filter_stats["train"]["dropped"]
    assert dropped["source_held_out"] > 0 and dropped["target_held_out"] > 0
    # Neither are pairs dropped that share nothing with what is held out.
    taken = [{pair[side] for pair in test + valid} for side in (0, 1)]
    free = [p for p in train if p.source not in taken[0] and p.target not in taken[1]]
    assert rest == free


def test_workers_change_nothing(tmp_path):
    train = [Pair(f"s{i // 3}", f"t{i // 2}") for i in range(9000)]
    assert run(tmp_path / "a", train=train) == run(tmp_path / "b", workers=2, train=train)


def test_sharing_a_sentence_is_as_the_settings_compare(tmp_path):
    train = [Pair(f"s{i // 3}", f"t{i // 2}") for i in range(300)]
    found, filter_stats = run(tmp_path, decontaminate="none", train=train)
    assert [len(pairs) for pairs in found.values()] == [255, 15, 30]
    assert filter_stats["train"]["dropped"]["source_held_out"] == 0
    shouted = [
        Pair(f"S{i // 2}", f"T{i}") if i % 2 else Pair(f"s{i // 2}", f"t{i}") for i in range(300)
    ]
    exact, _ = run(tmp_path, decontaminate="exact", train=shouted)
    folded, _ = run(tmp_path, decontaminate="normalized", train=shouted)
    assert len(exact["train"]) == 255 > len(folded["train"])


def test_every_nth_pair_validates(tmp_path):
    found, filter_stats = run(
        tmp_path / "a", Split(0.0, 0.1, 1, every=23), train=MANY, test_x=PAIRS
    )
    assert found["valid"] == MANY[22::23]
    assert found["train"] == [pair for i, pair in enumerate(MANY, 1) if i % 23]
    assert filter_stats["train"]["dropped"]["drawn_for_valid"] == 8
    given, _ = run(tmp_path / "c", Split(0.0, 0.1, 1, every=999), train=MANY, valid=PAIRS)
    assert len(given["train"]) == len(MANY) - 20  # it does not count beside a validation set
    found, _ = run(tmp_path / "b", Split(0.0, 0.1, 1, every=23), train=MANY)
    assert len(found["test.held-out"]) == 20
    assert set(found["valid"]) == set(MANY[22::23]) - set(found["test.held-out"])


def test_every_that_leaves_no_validation_set_is_an_error(tmp_path):
    pairs = [Pair(f"s{i}", f"t{i}") for i in range(23)]
    with pytest.raises(UserError, match=r"no pair is left for validation by split\.every 24"):
        run(tmp_path / "24", Split(0.0, 0.3, 1, every=24), train=pairs)
    for seed in range(40):  # until the drawn test set has the 23rd pair
        try:
            found, _ = run(tmp_path / str(seed), Split(0.0, 0.3, seed, every=23), train=pairs)
        except UserError as error:
            assert str(error).endswith("no pair is left for validation by split.every 23")
            return
        assert found["valid"] == pairs[22:]
    pytest.fail("no seed draws the pair")


def test_a_corpus_too_small_to_split_is_an_error(tmp_path):
    with pytest.raises(
        UserError, match=r"corpus c: too few pairs \(2\) to draw 1 for validation and 1 to"
    ):
        run(tmp_path, train=PAIRS[:2])
    found, _ = run(tmp_path, train=PAIRS[:3])
    assert [len(pairs) for pairs in found.values()] == [1, 1, 1]
