"""A stage gathers its shards if they come from the same text and settings; seen with filtering."""

import pytest

from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText
from bleuprint.corpus.steps.sharded import run_and_print, run_step
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, write_set


@pytest.fixture
def before(tmp_path):
    """A training text of three pairs; in two of them, one side is three times as long."""
    folder = TextFolder(tmp_path / "before", "de", "en")
    write_set(folder, "train", [Pair("a b c", "d"), Pair("f", "g"), Pair("h", "i j k")])
    return folder


def filtering(before, tmp_path, max_ratio):
    """Return the stage filter with a limit for the ratio of both sides' lengths."""
    checks = (CHECKS["identical"](), CHECKS["length_ratio"](max=max_ratio))
    return Filtering("m", before, tmp_path / "after", tmp_path / "filter_stats", checks, TOKENIZE)


def run_both_shards(step, shards_folder):
    """Run a step on two shards, without gathering them."""
    run_step(step, shards_folder, Shard(1, 2), 1)
    run_step(step, shards_folder, Shard(2, 2), 1)


def test_shards_with_the_same_settings_are_gathered(tmp_path, before):
    """Snakemake runs a step on each shard of a text, and then gathers the shards.

    The text `before` has three pairs, which all pass a length ratio of at most 9.
    """
    step = filtering(before, tmp_path, max_ratio=9.0)
    run_both_shards(step, tmp_path / "shards")

    run_step(step, tmp_path / "shards", AllShards(2), 1)

    gathered_text = TextFolder(tmp_path / "after", "de", "en")
    assert gathered_text.count("train") == 3


def test_shards_with_different_settings_are_refused(tmp_path, before):
    """The user changed the settings after the first shard; a mixed text must not be written.

    The first shard was filtered by a length ratio of at most 1.5, the second one by at most 9.
    """
    old_step = filtering(before, tmp_path, max_ratio=1.5)
    new_step = filtering(before, tmp_path, max_ratio=9.0)
    run_step(old_step, tmp_path / "shards", Shard(1, 2), 1)
    run_step(new_step, tmp_path / "shards", Shard(2, 2), 1)

    with pytest.raises(
        UserError, match="1-of-2: this shard was made from another text or with other settings"
    ):
        run_step(new_step, tmp_path / "shards", AllShards(2), 1)

    assert not (tmp_path / "after").exists()


def test_shards_are_gathered_once_the_outdated_one_was_made_again(tmp_path, before):
    """The first shard was filtered by a length ratio of at most 1.5, and then again by at most 9.

    The text `before` has three pairs, which all pass a length ratio of at most 9.
    """
    old_step = filtering(before, tmp_path, max_ratio=1.5)
    new_step = filtering(before, tmp_path, max_ratio=9.0)
    run_step(old_step, tmp_path / "shards", Shard(1, 2), 1)
    run_step(new_step, tmp_path / "shards", Shard(2, 2), 1)

    run_step(new_step, tmp_path / "shards", Shard(1, 2), 1)
    run_step(new_step, tmp_path / "shards", AllShards(2), 1)

    gathered_text = TextFolder(tmp_path / "after", "de", "en")
    assert gathered_text.count("train") == 3


def test_a_missing_shard_is_named(tmp_path, before):
    """The text was processed in two shards, not in three."""
    step = filtering(before, tmp_path, max_ratio=9.0)
    run_both_shards(step, tmp_path / "shards")

    # Gathering three shards fails at the first one, 1-of-3.
    with pytest.raises(UserError, match="1-of-3: shard 1-of-3 is missing"):
        run_step(step, tmp_path / "shards", AllShards(3), 1)


@pytest.mark.parametrize(
    "changed_pairs",
    [
        pytest.param(
            [Pair("a b c", "d"), Pair("f", "g"), Pair("x", "i j k")],
            id="another source, as many pairs",
        ),
        pytest.param([Pair("a", "b")] * 4, id="another number of pairs"),
    ],
)
def test_shards_of_a_text_that_has_changed_since_are_refused(tmp_path, before, changed_pairs):
    """Before the change, the text had the pairs ("a b c", "d"), ("f", "g") and ("h", "i j k")."""
    step = filtering(before, tmp_path, max_ratio=9.0)
    run_both_shards(step, tmp_path / "shards")
    write_set(before, "train", changed_pairs)

    step_on_changed_text = filtering(before, tmp_path, max_ratio=9.0)
    with pytest.raises(UserError, match="1-of-2: this shard was made from another text"):
        run_step(step_on_changed_text, tmp_path / "shards", AllShards(2), 1)


def test_a_shard_prints_no_counts(tmp_path, before, capsys):
    """Snakemake runs many shards; only the step that gathers them prints what the stage dropped."""
    step = filtering(before, tmp_path, max_ratio=1.5)

    run_and_print(step, tmp_path / "shards", Shard(1, 2), 1)
    run_and_print(step, tmp_path / "shards", Shard(2, 2), 1)

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("work", [AllShards(2), WholeText()], ids=["two shards", "whole text"])
def test_the_counts_of_the_whole_text_are_printed(tmp_path, before, capsys, work):
    """The text has the pairs ("a b c", "d"), ("f", "g") and ("h", "i j k"); the limit is 1.5.

    In two of the three pairs, one side is three times as long as the other.
    """
    step = filtering(before, tmp_path, max_ratio=1.5)
    run_both_shards(step, tmp_path / "shards")
    capsys.readouterr()  # Discard what the shards printed.

    run_and_print(step, tmp_path / "shards", work, 1)

    assert capsys.readouterr().out == "filter m: 3 pairs in, 1 out; dropped by length_ratio 2\n"
