"""The stage dedup drops repeated training pairs, and training pairs with a held-out sentence."""

import json

import pytest

from bleuprint.config.corpus import Dedup
from bleuprint.corpus import dedup
from bleuprint.corpus.dedup import Deduplication
from bleuprint.rules import EDITS
from bleuprint.text.parallel import Pair, TextFolder
from corpora import DEDUP, PAIRS, sources_of, targets_of, write_set
from steps import run_sharded

ALL_COMPARISONS = Dedup(pairs=True, sources=True, targets=True, decontaminate="normalized")


def deduplicate(tmp_path, settings=DEDUP, shards=1, workers=1, edits=(), **sets):
    """Write the sets of a German-English text and run the stage dedup on it.

    Args:
        tmp_path: The folder for input and output.
        settings: Which pairs are dropped; as default equal pairs, and normalized held-out ones.
        shards: The number of shards that the training text is divided into.
        workers: The number of processes.
        edits: The edits of the stage clean, which held-out sentences are compared after.
        **sets: The pairs of each set; test_x is the test set test.x.

    Returns:
        The text after the stage, and the filtering statistics by set.
    """
    before = TextFolder(tmp_path / "before", "de", "en")
    for name, pairs in sets.items():
        write_set(before, name.replace("_", "."), pairs)
    stats_file = tmp_path / "filter_stats.json"
    step = Deduplication("c", before, tmp_path / "after", stats_file, settings, edits)
    run_sharded(step, tmp_path / "shards", shards, workers)
    return TextFolder(tmp_path / "after", "de", "en"), json.loads(stats_file.read_text())["sets"]


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_the_first_of_equal_pairs_stays(tmp_path, shards):
    """Shards are deduplicated together: the two pairs may be in different shards."""
    cat, railway, apples = PAIRS[:3]
    # Both sides occur before, but not together.
    crossed = Pair(cat.source, railway.target)
    text = [cat, railway, cat, crossed, apples, railway, cat]

    after, sets = deduplicate(tmp_path, shards=shards, train=text)

    assert list(after.pairs("train")) == [cat, railway, crossed, apples]
    assert sets["train"]["dropped"]["duplicate_pair"] == 3
    # Counted from 1, as the report shows them.
    dropped_numbers = [sample["pair"] for sample in sets["train"]["samples"]["duplicate_pair"]]
    assert dropped_numbers == [3, 6, 7]


def deduplicate_by_loop(settings, train, held_out):
    """Return the training pairs that stay, by comparing each with all pairs before it.

    Args:
        settings: Which pairs are dropped.
        train: The training pairs.
        held_out: The pairs of the held-out sets.
    """
    held_out_sources = sources_of(held_out)
    held_out_targets = targets_of(held_out)
    kept = []
    for pair in train:
        if settings.decontaminate != "none" and (
            pair.source in held_out_sources or pair.target in held_out_targets
        ):
            continue
        if settings.pairs and pair in kept:
            continue
        if settings.sources and pair.source in sources_of(kept):
            continue
        if settings.targets and pair.target in targets_of(kept):
            continue
        kept.append(pair)
    return kept


@pytest.mark.parametrize("overlap", ["none", "exact"])
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("sources", [True, False])
@pytest.mark.parametrize("targets", [True, False])
def test_all_settings_keep_the_pairs_that_a_simple_loop_keeps(
    tmp_path, pairs, sources, targets, overlap
):
    """The settings say which pairs are dropped: equal pairs, sources, targets, held-out sentences.

    `deduplicate_by_loop` is a reference implementation that keeps all sentences in sets.
    """
    # These remainders repeat, so that some pairs repeat a source, a target or both.
    train = [Pair(f"s{i * i % 37}", f"t{i * i * i % 41}") for i in range(300)]
    held_out = [Pair("s1", "other"), Pair("other", "t2"), Pair("s4", "t8")]
    settings = Dedup(pairs, sources, targets, overlap)

    after, sets = deduplicate(tmp_path, settings, shards=3, train=train, valid=held_out)

    assert list(after.pairs("train")) == deduplicate_by_loop(settings, train, held_out)
    assert sum(sets["train"]["dropped"].values()) == 300 - sets["train"]["pairs_out"]


def test_a_pair_is_dropped_only_if_a_kept_pair_has_its_source_or_target(tmp_path):
    """If a dropped pair dropped another one, the last pair with a sentence would be lost.

    With ALL_COMPARISONS, pairs with the source or target of a kept pair are dropped, and pairs with
    a held-out sentence.
    """
    held_out = Pair("x", "leaked")
    leaked = Pair("a", "leaked")
    same_source_as_leaked = Pair("a", "b")
    same_target_as_kept = Pair("c", "b")
    same_source_as_dropped = Pair("c", "d")
    train = [leaked, same_source_as_leaked, same_target_as_kept, same_source_as_dropped]

    after, sets = deduplicate(tmp_path, ALL_COMPARISONS, train=train, valid=[held_out])

    assert list(after.pairs("train")) == [same_source_as_leaked, same_source_as_dropped]
    assert sets["train"]["dropped"] == {
        "duplicate_pair": 0,
        "same_source": 0,
        "same_target": 1,
        "source_held_out": 0,
        "target_held_out": 1,
    }


def test_training_pairs_with_a_held_out_sentence_are_dropped(tmp_path):
    """A model must not be trained on sentences of the validation or test sets."""
    cat, railway, apples, rain, town_hall = PAIRS[:5]
    valid = [railway, town_hall]
    test = [apples, cat]
    held_out_source = Pair(railway.source, "x")
    held_out_target = Pair("x", apples.target)
    # A held-out sentence counts only on its side, German or English.
    swapped = Pair(town_hall.target, town_hall.source)
    text = [cat, held_out_source, held_out_target, rain, swapped]

    after, sets = deduplicate(tmp_path, train=text, valid=valid, test_x=test)

    assert list(after.pairs("train")) == [rain, swapped]
    assert sets["train"]["dropped"] == {
        "duplicate_pair": 0,
        "source_held_out": 2,  # cat and held_out_source
        "target_held_out": 1,
    }
    assert list(after.pairs("valid")) == valid
    assert list(after.pairs("test.x")) == test


NIGHT = Pair("über Nacht", "over night")
DAY = Pair("am Tag", "by day")
EARLY = Pair("früh", "early")


@pytest.mark.parametrize(
    ("decontaminate", "remaining_pairs"),
    [
        pytest.param("none", [NIGHT, DAY, EARLY], id="none: held-out sentences stay"),
        pytest.param("exact", [NIGHT, DAY], id="exact: only the equal sentence is dropped"),
        pytest.param("normalized", [], id="normalized: case, accents and spaces do not matter"),
    ],
)
def test_decontaminate_chooses_how_sentences_are_compared(tmp_path, decontaminate, remaining_pairs):
    """The pairs are ("über Nacht", "over night"), ("am Tag", "by day") and ("früh", "early")."""
    unrelated = PAIRS[0]
    held_out = [
        ("\ufeffu\u0308ber\u2028NACHT!\r", "x"),  # Normalized: the source of NIGHT.
        ("y", " by\u200b day\x00"),  # Normalized: the target of DAY.
        ("z", "early"),  # The target of EARLY.
    ]
    settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=decontaminate)
    train = [NIGHT, DAY, EARLY, unrelated]

    after, sets = deduplicate(tmp_path, settings, train=train, test_x=held_out)

    assert list(after.pairs("train")) == [*remaining_pairs, unrelated]
    assert list(after.pairs("test.x")) == held_out
    has_count = "source_held_out" in sets["train"]["dropped"]
    assert has_count == (decontaminate != "none")


@pytest.mark.parametrize("decontaminate", ["exact", "normalized"])
@pytest.mark.parametrize(
    ("held_out", "dropped_index"),
    [
        pytest.param(Pair("Sie sagt &bdquo;Ja&ldquo;.", "x"), 0, id="source before the edits"),
        pytest.param(Pair("y", "AT&amp;T is known."), 0, id="target before the edits"),
        pytest.param(PAIRS[2], 1, id="pair that the edits do not change"),
    ],
)
def test_a_held_out_sentence_before_the_edits_matches_training_text_after_them(
    tmp_path, decontaminate, held_out, dropped_index
):
    """The stage clean has edited the training text; held-out sets stay as published.

    The edit `entities` replaces &bdquo; by its character, and `punctuation` simplifies quotation
    marks. The training text already contains the result.
    """
    edits = (EDITS["entities"](), EDITS["punctuation"]())
    edited_train = [Pair('Sie sagt "Ja".', "AT&T is known."), PAIRS[2], PAIRS[3]]
    settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=decontaminate)

    after, _ = deduplicate(tmp_path, settings, edits=edits, train=edited_train, test_x=[held_out])

    expected = list(edited_train)
    del expected[dropped_index]
    assert list(after.pairs("train")) == expected
    assert list(after.pairs("test.x")) == [held_out]


@pytest.mark.parametrize("decontaminate", ["exact", "normalized"])
def test_a_held_out_sentence_as_published_matches_even_if_an_edit_would_change_it(
    tmp_path, decontaminate
):
    """Text that was escaped three times is still escaped after the edit, which removes one level.

    An equal held-out sentence would be changed by the edit, so both of its forms are compared.
    """
    escaped = Pair("&amp;lt;", "x")
    settings = Dedup(pairs=True, sources=False, targets=False, decontaminate=decontaminate)

    after, _ = deduplicate(
        tmp_path,
        settings,
        edits=(EDITS["entities"](),),
        train=[escaped, PAIRS[0]],
        valid=[(escaped.source, "y")],
    )

    assert list(after.pairs("train")) == [PAIRS[0]]


def test_pairs_with_the_same_words_on_other_sides_are_different(tmp_path):
    """Sides are compared separately: "a b" + "c" differs from "a" + "b c"."""
    train = [Pair("a b", "c"), Pair("a", "b c")]

    after, _ = deduplicate(tmp_path, train=train)

    assert len(list(after.pairs("train"))) == 2


def test_hashes_that_end_in_zero_bytes_are_compared_in_full(tmp_path):
    """NumPy ignores zero bytes at the end of a byte string, so that different hashes look equal.

    Equal hashes must get the same group; hashes that occur once get group 0.
    """
    x_and_zeros = b"x" + bytes(15)
    x_and_one = b"x\0\1" + bytes(13)
    zeros = bytes(16)
    path = tmp_path / "hashes"
    path.write_bytes(x_and_zeros + x_and_one + zeros + zeros + x_and_zeros)

    groups = dedup._group_equal_hashes(path).tolist()

    group_of_x_and_zeros, group_of_x_and_one, group_of_zeros = groups[:3]
    assert groups == [
        group_of_x_and_zeros,
        group_of_x_and_one,
        group_of_zeros,
        group_of_zeros,
        group_of_x_and_zeros,
    ]
    assert group_of_x_and_one == 0
    assert len(set(groups)) == 3


def repetitive_pairs():
    """Return 9,000 pairs of which some repeat a source, a target or both."""
    return [Pair(f"Satz {i % 4000}", f"sentence {i % 5500}") for i in range(9000)]


def assert_same_output(result, other_result):
    """Check that two results of `deduplicate` have the same training files and statistics."""
    text, sets = result
    other_text, other_sets = other_result
    for path, other_path in zip(text.files("train"), other_text.files("train"), strict=True):
        assert path.read_bytes() == other_path.read_bytes()
    assert sets == other_sets


@pytest.mark.parametrize(("shards", "workers"), [(1, 2), (1, 5), (4, 1), (13, 2)])
def test_shards_and_workers_do_not_change_the_output(tmp_path, shards, workers):
    """The training text has 9,000 pairs; some repeat a source or a target.

    ALL_COMPARISONS drops them; two of the pairs are also the validation set.
    """
    sets = {"train": repetitive_pairs(), "valid": repetitive_pairs()[7:9]}

    result = deduplicate(tmp_path / "one", ALL_COMPARISONS, shards=1, workers=1, **sets)
    other_result = deduplicate(tmp_path / "many", ALL_COMPARISONS, shards, workers, **sets)

    assert_same_output(result, other_result)
    _, filter_stats = result
    assert 0 < filter_stats["train"]["pairs_out"] < 9000


def test_ranges_of_hashes_limit_memory_and_do_not_change_the_output(tmp_path, monkeypatch):
    """Hashes are compared in ranges by their first bits, so that only one range is in memory.

    The training text has 9,000 pairs; some repeat a source or a target.
    """
    sets = {"train": repetitive_pairs(), "valid": repetitive_pairs()[7:9]}
    result_of_one_range = deduplicate(tmp_path / "one", ALL_COMPARISONS, **sets)
    # Record how many hashes each call of `_read_range` returns, that is, has in memory.
    hashes_in_memory = []
    read_range = dedup._read_range

    def count_hashes(*arguments):
        blocks = list(read_range(*arguments))
        hashes_in_memory.append(sum(len(hashes) for _, hashes in blocks))
        return blocks

    monkeypatch.setattr(dedup, "_read_range", count_hashes)
    monkeypatch.setattr(dedup, "_HASHES_PER_RANGE", 500)
    monkeypatch.setattr(dedup, "_HASHES_PER_READ", 700)
    result_of_many_ranges = deduplicate(tmp_path / "many", ALL_COMPARISONS, shards=2, **sets)

    # 9,000 hashes are 18 ranges of about 500. A range is read twice if it has repeated hashes: to
    # find them, and to number them. No pair occurs twice, but sources and targets do.
    reads_for_pairs = 18
    reads_for_sources = 2 * 18
    reads_for_targets = 2 * 18
    assert len(hashes_in_memory) == reads_for_pairs + reads_for_sources + reads_for_targets
    assert min(hashes_in_memory) > 300
    assert max(hashes_in_memory) < 700
    assert_same_output(result_of_one_range, result_of_many_ranges)
