"""The stage split draws the validation and test sets that a corpus lacks."""

import json
from itertools import chain

import pytest

from bleuprint.config.corpus import Split
from bleuprint.corpus.split import split_folder
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import PAIRS, numbered_pairs, write_set

# 200 pairs without a common sentence.
PAIRS_200 = numbered_pairs("Satz {}", "sentence {}", 200)
DEFAULT_SHARES = Split(valid=0.05, test=0.1, seed=7)


def split_sets(root, settings=DEFAULT_SHARES, decontaminate="normalized", workers=1, **sets):
    """Run the stage split.

    Args:
        root: The folder for input and output.
        settings: How pairs are drawn; as default 5% for validation and 10% for the test set.
        decontaminate: How sentences are compared to find those in two sets.
        workers: The number of processes.
        **sets: The pairs of each set before the stage; test_x is the test set test.x.

    Returns:
        The pairs of each set after the stage, and the filtering statistics by set.
    """
    before = TextFolder(root / "before", "de", "en")
    for name, pairs in sets.items():
        write_set(before, name.replace("_", "."), pairs)
    stats_file = root / "filter_stats.json"
    split_folder("c", settings, decontaminate, before, root / "after", stats_file, workers)
    after = TextFolder(root / "after", "de", "en")
    pairs_by_set = {name: list(after.pairs(name)) for name in after.set_names()}
    return pairs_by_set, json.loads(stats_file.read_text())["sets"]


def sizes_of(sets):
    """Return the number of pairs of each set."""
    return {name: len(pairs) for name, pairs in sets.items()}


def pairs_with_shared_sentences(count):
    """Return pairs of which three in a row share the source, and two in a row the target."""
    return [Pair(f"s{number // 3}", f"t{number // 2}") for number in range(count)]


@pytest.mark.parametrize(
    ("valid_share", "test_share", "expected_sizes"),
    [
        pytest.param(0.05, 0.1, {"train": 170, "valid": 10, "test.held-out": 20}, id="5% and 10%"),
        pytest.param(0.25, 0.1, {"train": 130, "valid": 50, "test.held-out": 20}, id="25% and 10%"),
        pytest.param(0.1, 0.4, {"train": 100, "valid": 20, "test.held-out": 80}, id="10% and 40%"),
        pytest.param(0.01, 0.02, {"train": 194, "valid": 2, "test.held-out": 4}, id="1% and 2%"),
    ],
)
def test_the_drawn_sets_have_the_shares_of_the_settings(
    tmp_path, valid_share, test_share, expected_sizes
):
    """Without held-out files, validation and test set are drawn from the 200 training pairs."""
    settings = Split(valid=valid_share, test=test_share, seed=7)

    sets, _ = split_sets(tmp_path, settings, train=PAIRS_200)

    assert sizes_of(sets) == expected_sizes


def test_each_pair_is_in_one_set_and_each_set_keeps_the_order_of_the_text(tmp_path):
    """The 200 pairs are divided into training, validation and test set."""
    position_in_text = PAIRS_200.index

    sets, _ = split_sets(tmp_path, train=PAIRS_200)

    pairs_of_all_sets = list(chain.from_iterable(sets.values()))
    assert sorted(pairs_of_all_sets, key=position_in_text) == PAIRS_200
    for pairs in sets.values():
        assert pairs == sorted(pairs, key=position_in_text)


def test_the_test_set_is_neither_the_start_nor_the_end_of_the_text(tmp_path):
    """Texts are often sorted by topic or date; the test set must be drawn from all of it."""
    sets, _ = split_sets(tmp_path, Split(valid=0.05, test=0.1, seed=7), train=PAIRS_200)

    assert len(sets["test.held-out"]) == 20
    assert set(sets["test.held-out"]) != set(PAIRS_200[:20])
    assert set(sets["test.held-out"]) != set(PAIRS_200[-20:])


def test_the_statistics_count_drawn_pairs_as_dropped_from_the_training_text(tmp_path):
    """The corpus has 200 pairs, of which no two share a sentence."""
    settings = Split(valid=0.05, test=0.1, seed=7)

    _, filter_stats = split_sets(tmp_path, settings, train=PAIRS_200)

    assert filter_stats["train"]["dropped"] == {
        "drawn_for_valid": 10,  # 5% of 200 pairs.
        "drawn_for_test": 20,
        "source_held_out": 0,
        "target_held_out": 0,
    }


def test_the_seed_decides_which_pairs_are_drawn(tmp_path):
    """Results are reproducible only if a seed always draws the same pairs."""
    seed_7 = Split(valid=0.05, test=0.1, seed=7)
    seed_8 = Split(valid=0.05, test=0.1, seed=8)

    sets, _ = split_sets(tmp_path / "a", seed_7, train=PAIRS_200)
    sets_of_same_seed, _ = split_sets(tmp_path / "b", seed_7, train=PAIRS_200)
    sets_of_other_seed, _ = split_sets(tmp_path / "c", seed_8, train=PAIRS_200)

    assert sets_of_same_seed == sets
    assert sets_of_other_seed != sets


@pytest.mark.parametrize(
    ("name", "size", "expected_size_without_40_pairs"),
    [
        pytest.param("test.held-out", 200, 196, id="test set: 10% of the pairs"),
        pytest.param("valid", 100, 98, id="validation set: 5% of the pairs"),
    ],
)
def test_dropping_pairs_from_the_text_changes_little_in_the_drawn_sets(
    tmp_path, name, size, expected_size_without_40_pairs
):
    """If a new filter drops 2% of the pairs, scores should still be about nearly the same test set.

    The settings draw 5% of the pairs for validation and 10% for the test set; 40 of 2,000 pairs are
    dropped.
    """
    pairs = numbered_pairs("Satz {}", "sentence {}", 2000)
    pairs_without_40 = list(pairs)
    del pairs_without_40[::50]  # Every 50th pair.

    sets, _ = split_sets(tmp_path / "a", train=pairs)
    sets_without_40, _ = split_sets(tmp_path / "b", train=pairs_without_40)

    pairs_in_set = set(sets[name])
    pairs_in_new_set = set(sets_without_40[name])
    assert len(pairs_in_set) == size
    assert len(pairs_in_new_set) == expected_size_without_40_pairs
    assert len(pairs_in_new_set - pairs_in_set) <= 0.02 * size
    assert len(pairs_in_set - pairs_in_new_set) <= 0.04 * size


def test_if_the_corpus_has_a_validation_set_only_the_test_set_is_drawn(tmp_path):
    """The settings draw 5% of 200 pairs for validation, unused here, and 10% for the test set."""
    settings = Split(valid=0.05, test=0.1, seed=7)

    sets, _ = split_sets(tmp_path, settings, train=PAIRS_200, valid=PAIRS)

    assert sets["valid"] == PAIRS
    assert len(sets["test.held-out"]) == 20
    assert len(sets["train"]) == 180


def test_if_the_corpus_has_a_test_set_only_the_validation_set_is_drawn(tmp_path):
    """The settings draw 5% of 200 pairs for validation, and 10%, unused here, for the test set."""
    settings = Split(valid=0.05, test=0.1, seed=7)

    sets, _ = split_sets(tmp_path, settings, train=PAIRS_200, test_x=PAIRS)

    assert sets["test.x"] == PAIRS
    assert len(sets["valid"]) == 10
    assert "test.held-out" not in sets


def test_if_the_corpus_has_both_sets_nothing_is_drawn(tmp_path):
    sets, filter_stats = split_sets(tmp_path, train=PAIRS_200, test_x=PAIRS, valid=PAIRS)

    assert sets == {"train": PAIRS_200, "valid": PAIRS, "test.x": PAIRS}
    assert filter_stats["train"]["pairs_out"] == 200


def linked_files(folder):
    """Return the names of the files of a folder that have a second name elsewhere."""
    return {path.name for path in folder.iterdir() if path.stat().st_nlink > 1}


def test_sets_that_do_not_change_are_hard_links_which_take_no_room(tmp_path):
    """With a validation and a test set, nothing is drawn: the training text stays as it is."""
    split_sets(tmp_path, train=PAIRS_200, valid=PAIRS, test_x=PAIRS)

    paths = sorted((tmp_path / "before").iterdir())
    assert len(paths) == 6
    for path in paths:
        assert (tmp_path / "after" / path.name).samefile(path)


def test_a_training_text_from_which_pairs_were_drawn_is_a_file_of_its_own(tmp_path):
    """The validation set is published, a test set is drawn; the filtered text keeps its pairs."""
    split_sets(tmp_path, train=PAIRS_200, valid=PAIRS)

    before = TextFolder(tmp_path / "before", "de", "en")
    assert list(before.pairs("train")) == PAIRS_200
    assert linked_files(tmp_path / "after") == {"valid.de", "valid.en"}


def test_a_text_that_is_split_again_does_not_change_the_filtered_text(tmp_path):
    """The first split links the training text; the second one must not write to the linked file.

    In the second split, the test set is missing, so that its pairs leave the training text.
    """
    split_sets(tmp_path, train=PAIRS_200, valid=PAIRS, test_x=PAIRS)
    for path in (tmp_path / "before").glob("test.x.*"):
        path.unlink()
    filtered = TextFolder(tmp_path / "before", "de", "en")

    stats_file = tmp_path / "stats.json"
    split_folder("c", DEFAULT_SHARES, "exact", filtered, tmp_path / "after", stats_file, 1)

    assert list(filtered.pairs("train")) == PAIRS_200
    assert len(list(TextFolder(tmp_path / "after", "de", "en").pairs("train"))) == 180


def sentences_of(pairs):
    """Return the set of the sentences of both sides; sources and targets differ in these tests."""
    return set(chain.from_iterable(pairs))


def test_no_sentence_is_in_two_sets_after_the_split(tmp_path):
    """Three pairs in a row share the source sentence, and two in a row the target sentence.

    A pair that shares a sentence with a drawn pair must be dropped from the training text.
    """
    sets, filter_stats = split_sets(tmp_path, train=pairs_with_shared_sentences(300))

    assert len(sets["test.held-out"]) == 30
    test_sentences = sentences_of(sets["test.held-out"])
    valid_sentences = sentences_of(sets["valid"])
    train_sentences = sentences_of(sets["train"])
    assert test_sentences.isdisjoint(valid_sentences)
    assert test_sentences.isdisjoint(train_sentences)
    assert valid_sentences.isdisjoint(train_sentences)
    assert filter_stats["train"]["dropped"]["source_held_out"] > 0
    assert filter_stats["train"]["dropped"]["target_held_out"] > 0


def test_a_training_pair_that_shares_no_sentence_with_a_drawn_pair_stays(tmp_path):
    """Three pairs in a row share the source sentence, and two in a row the target sentence."""
    train = pairs_with_shared_sentences(300)

    sets, _ = split_sets(tmp_path, train=train)

    held_out_sentences = sentences_of(sets["test.held-out"] + sets["valid"])
    expected = [pair for pair in train if held_out_sentences.isdisjoint(pair)]
    assert sets["train"] == expected


def test_the_number_of_workers_does_not_change_the_result(tmp_path):
    """Three pairs in a row share the source sentence, and two in a row the target sentence."""
    train = pairs_with_shared_sentences(9000)

    result = split_sets(tmp_path / "a", workers=1, train=train)
    result_of_two_workers = split_sets(tmp_path / "b", workers=2, train=train)

    assert result == result_of_two_workers


def test_decontaminate_none_keeps_sentences_that_are_in_two_sets(tmp_path):
    """Three pairs in a row share the source sentence, and two in a row the target sentence.

    Only the drawn pairs are missing from the training text: 5% and 10% of 300 pairs.
    """
    settings = Split(valid=0.05, test=0.1, seed=7)
    train = pairs_with_shared_sentences(300)

    sets, filter_stats = split_sets(tmp_path, settings, decontaminate="none", train=train)

    assert sizes_of(sets) == {"train": 255, "valid": 15, "test.held-out": 30}
    assert filter_stats["train"]["dropped"]["source_held_out"] == 0


def test_only_decontaminate_normalized_drops_sentences_that_differ_in_case(tmp_path):
    """The pairs "s0", "t0" and "S0", "T1" have the same source only if case does not matter."""
    train = []
    for number in range(150):
        train.append(Pair(f"s{number}", f"t{2 * number}"))
        train.append(Pair(f"S{number}", f"T{2 * number + 1}"))

    sets_exact, _ = split_sets(tmp_path, decontaminate="exact", train=train)
    sets_normalized, _ = split_sets(tmp_path, decontaminate="normalized", train=train)

    # 5% of 300 pairs are drawn for validation, 10% for the test set: 85% are left.
    assert len(sets_exact["train"]) == 255
    assert len(sets_normalized["train"]) < 255


@pytest.mark.parametrize("interval", [2, 7, 23])
def test_split_every_n_validates_on_each_nth_pair(tmp_path, interval):
    """Published recipes do so: prepare-iwslt14.sh of fairseq validates on every 23rd pair."""
    settings = Split(valid=0.0, test=0.1, seed=1, every=interval)

    sets, filter_stats = split_sets(tmp_path, settings, train=PAIRS_200, test_x=PAIRS)

    remaining_pairs = list(PAIRS_200)
    del remaining_pairs[interval - 1 :: interval]
    assert sets["valid"] == PAIRS_200[interval - 1 :: interval]
    assert sets["train"] == remaining_pairs
    assert filter_stats["train"]["dropped"]["drawn_for_valid"] == 200 // interval


def test_split_every_n_does_not_matter_if_the_corpus_has_a_validation_set(tmp_path):
    """`every=999` alone would be an error, since the text has only 200 pairs."""
    settings = Split(valid=0.0, test=0.1, seed=1, every=999)

    sets, _ = split_sets(tmp_path, settings, train=PAIRS_200, valid=PAIRS)

    assert len(sets["test.held-out"]) == 20
    assert len(sets["train"]) == 200 - 20


def test_split_every_n_leaves_pairs_in_the_test_set_that_were_drawn_for_it(tmp_path):
    """The test set, 10% of 200 pairs, is drawn first; it may contain some of the 23rd pairs."""
    settings = Split(valid=0.0, test=0.1, seed=1, every=23)

    sets, _ = split_sets(tmp_path, settings, train=PAIRS_200)

    every_23rd_pair = PAIRS_200[22::23]
    assert len(sets["test.held-out"]) == 20
    assert set(sets["valid"]) == set(every_23rd_pair) - set(sets["test.held-out"])


def test_a_text_shorter_than_split_every_is_refused(tmp_path):
    """With `every=24`, each 24th pair goes to the validation set; a text of 23 pairs has none."""
    pairs = numbered_pairs("s{}", "t{}", 23)
    settings = Split(valid=0.0, test=0.3, seed=1, every=24)

    with pytest.raises(
        UserError, match=r"no pair is left for validation\. Lower split\.every, which is 24"
    ):
        split_sets(tmp_path, settings, train=pairs)


def test_a_split_whose_test_set_takes_the_only_validation_pair_is_refused(tmp_path):
    """Of 23 pairs, only the last one is for validation; some seeds draw it for the test set."""
    pairs = numbered_pairs("s{}", "t{}", 23)

    # The test set takes 30% of the pairs, so that one of 40 seeds draws the last pair for it.
    for seed in range(40):
        settings = Split(valid=0.0, test=0.3, seed=seed, every=23)
        try:
            sets, _ = split_sets(tmp_path / str(seed), settings, train=pairs)
        except UserError as error:
            assert str(error).endswith("Lower split.every, which is 23")
            return
        assert sets["valid"] == [pairs[22]]
    pytest.fail("no seed draws the pair")


def test_a_corpus_of_two_pairs_is_too_small_to_split(tmp_path):
    with pytest.raises(
        UserError, match=r"corpus c: too few pairs \(2\) to draw 1 for validation and 1 for"
    ):
        split_sets(tmp_path, train=PAIRS[:2])


def test_a_corpus_of_three_pairs_gives_three_sets_of_one_pair(tmp_path):
    sets, _ = split_sets(tmp_path, train=PAIRS[:3])

    assert sizes_of(sets) == {"train": 1, "valid": 1, "test.held-out": 1}
