"""A stage gathers its shards if they come from the same text and settings; seen with filtering."""

from pathlib import Path

import pytest

from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText
from bleuprint.corpus.steps.sharded import run_and_print, run_step
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.text.line_index import LineIndex
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, file_contents, numbered_pairs, write_set


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


def bytes_read(function, *arguments):
    """Call a function, and return how many bytes this process has read meanwhile.

    `rchar` in /proc/self/io counts the bytes of all calls of read(), also of cached files.
    """

    def read_until_now():
        """Return the bytes that this process has read since it began."""
        first_line = Path("/proc/self/io").read_text().splitlines()[0]
        return int(first_line.removeprefix("rchar: "))

    start = read_until_now()
    function(*arguments)
    return read_until_now() - start


@pytest.fixture
def large_text(tmp_path):
    """A training text of 40,000 pairs in two files of 2.5 million bytes."""
    folder = TextFolder(tmp_path / "large", "de", "en")
    pairs = numbered_pairs(f"{'wort ' * 11} {{:06}}", f"{'word ' * 11} {{:06}}", 40_000)
    write_set(folder, "train", pairs)
    return folder


@pytest.mark.parametrize(
    "check",
    [
        pytest.param("length"),
        # Each shard learns word translations, which takes seconds.
        pytest.param("word_alignment", marks=pytest.mark.slow),
    ],
)
def test_a_shard_of_an_indexed_text_reads_only_its_own_bytes(tmp_path, large_text, check):
    """The text is divided into 16 shards; each is a sixteenth of 5 million bytes. Three are read.

    A shard also reads the few lines between the nearest indexed line and its first one, the index,
    and parts of the program, here up to 100,000 bytes. The check word_alignment learns from pairs
    of the whole text; it reads them from the index, not from the text.
    """
    settings = {"length": {"max": 100}, "word_alignment": {"min": -100.0}}
    checks = (CHECKS[check](**settings[check]),)
    step = Filtering("m", large_text, tmp_path / "out", tmp_path / "stats", checks, TOKENIZE)
    shards_folder = tmp_path / "shards"
    text_size = sum(path.stat().st_size for path in large_text.files("train"))
    run_step(step, shards_folder, TextToIndex(), 1)
    index_size = sum(len(content) for content in file_contents(shards_folder / "index").values())
    run_step(step, shards_folder, Shard(1, 16), 1)  # Loads what the program needs later.

    read_sizes = [
        bytes_read(run_step, step, shards_folder, Shard(number, 16), 1) for number in (2, 9, 16)
    ]

    assert max(read_sizes) < text_size / 16 + index_size + 100_000


def test_without_an_index_the_last_shard_reads_all_bytes(tmp_path, large_text):
    """So the figure of the test above is about the index."""
    step = filtering(large_text, tmp_path, max_ratio=9.0)
    text_size = sum(path.stat().st_size for path in large_text.files("train"))

    read_size = bytes_read(run_step, step, tmp_path / "shards", Shard(16, 16), 1)

    assert read_size > 2 * text_size


@pytest.mark.parametrize("is_indexed", [True, False], ids=["index", "no index"])
def test_the_index_does_not_change_the_output(tmp_path, large_text, is_indexed):
    """The text of 40,000 pairs has 7 shards, which begin between indexed lines."""
    step = filtering(large_text, tmp_path, max_ratio=9.0)
    if is_indexed:
        run_step(step, tmp_path / "shards", TextToIndex(), 1)
    for shard in Shard.all(7):
        run_step(step, tmp_path / "shards", shard, 1)

    run_step(step, tmp_path / "shards", AllShards(7), 1)

    assert file_contents(tmp_path / "after") == file_contents(large_text.path)


def test_an_index_of_another_text_is_refused(tmp_path, before):
    """The text was written again after it was indexed."""
    step = filtering(before, tmp_path, max_ratio=9.0)
    run_step(step, tmp_path / "shards", TextToIndex(), 1)
    write_set(before, "train", [Pair("x", "y")])

    with pytest.raises(UserError) as error:
        run_step(step, tmp_path / "shards", Shard(1, 2), 1)

    assert str(error.value) == (
        f"{before.path}/train.de: this file has changed since it was indexed. "
        f"Remove {tmp_path}/shards/index, or index the text again with --index"
    )


def test_a_text_that_changes_after_its_shards_were_read_is_refused(tmp_path, before):
    """The shards are those of the indexed text; the text that is gathered is another one."""
    step = filtering(before, tmp_path, max_ratio=9.0)
    run_step(step, tmp_path / "shards", TextToIndex(), 1)
    run_both_shards(step, tmp_path / "shards")
    write_set(before, "train", [Pair("x", "y")])

    with pytest.raises(UserError, match="1-of-2: this shard was made from another text"):
        run_step(step, tmp_path / "shards", AllShards(2), 1)


def test_the_lines_of_a_text_are_not_counted_if_its_index_says_their_number(before):
    """The text has three pairs; the index says four."""
    source_file, _ = before.files("train")
    index = LineIndex(4, "", 0, 0, spacing=1000, offsets=(0,))
    indexed_text = TextFolder(before.path, "de", "en", indexes={source_file: index})

    assert indexed_text.count("train") == 4
