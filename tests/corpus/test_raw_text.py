"""Texts with one side that a system translates, and repeated texts, up to the stage clean."""

import json
from dataclasses import replace
from itertools import combinations

import pytest

from bleuprint.config import paths
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.corpus.clean import Cleaning, RawText
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder
from corpora import LINE_ENDS_ELSEWHERE, numbered_pairs, sources_of, targets_of, write_set
from params import read
from steps import run_sharded


def odd_lines():
    """Return lines with characters that end a line elsewhere, but not here, and a null byte."""
    characters = [*LINE_ENDS_ELSEWHERE, "\0"]
    return [f"{char}wort{char} {number}{char}" for number, char in enumerate(characters)]


def download_training_texts(tmp_path, texts):
    """Download the training texts of an English-German corpus.

    Args:
        tmp_path: The folder of the corpus.
        texts: The settings of the texts, by their names.

    Returns:
        The downloaded text, and the filtering statistics by set.
    """
    raw = TextFolder(tmp_path / "raw", "en", "de")
    stats_file = tmp_path / "filter_stats.json"
    source = Downloads(None, tmp_path / "store", tmp_path / "lock")
    download_corpus("c", Files(texts, {}, {}), raw, stats_file, source)
    return raw, json.loads(stats_file.read_text())["sets"]


def test_a_text_with_repeat_3_is_downloaded_as_three_copies(tmp_path):
    """With the setting `repeat`, a small good text gets more weight in the training."""
    text = Text(
        "x",
        source=File(url="phrasebook:valid.de"),
        target=File(url="phrasebook:valid.en"),
        pairs=10,
        repeat=3,
    )

    raw, sets = download_training_texts(tmp_path, {"both": text})

    pairs = list(raw.pairs("train"))
    assert len(pairs) == 3 * 10
    assert pairs == 3 * pairs[:10]
    assert sets["train.both"]["pairs_out"] == 3 * 10
    # Each pair of the file that is not among the 10 sampled ones counts three times, too.
    pairs_not_sampled = sets["train.both"]["dropped"]["pairs"]
    assert pairs_not_sampled > 0
    assert pairs_not_sampled % 3 == 0


def test_a_text_with_one_side_is_downloaded_to_its_own_folder(tmp_path, monkeypatch):
    """For back-translation, a system will translate it; until then, its sources are empty.

    With `repeat: 2` it counts twice, but is stored once. The lines contain characters at which
    other programs would end a line.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    first_line_with_byte_order_mark = "\ufeffa"
    lines = [first_line_with_byte_order_mark, *odd_lines()]
    (tmp_path / "inputs" / "mono.de").write_bytes("\n".join(lines).encode())  # No newline at end.
    both = Text(
        "x",
        source=File(url="phrasebook:valid.de"),
        target=File(url="phrasebook:valid.en"),
        pairs=10,
    )
    mono = Text("x", target=File(path="inputs/mono.de"), repeat=2)

    raw, sets = download_training_texts(tmp_path, {"both": both, "mono": mono})

    raw_mono = raw.with_path(raw.path / "mono")
    expected_targets = ["a"]
    for line in odd_lines():
        # Files from Windows have a carriage return at the end of each line.
        expected_targets.append(line.removesuffix("\r"))
    pairs = list(raw_mono.pairs("train"))
    assert sources_of(pairs) == [""] * len(lines)
    assert targets_of(pairs) == expected_targets
    assert raw.set_names() == ["train"]
    assert raw.count("train") == 10
    repeat = 2
    assert sets["train.mono"]["pairs_in"] == repeat * len(lines)
    assert sets["train.mono"]["pairs_out"] == repeat * len(lines)


def corpus_with_synthetic_texts(tmp_path):
    """Write a corpus with a parallel text and two synthetic texts, of which `made` is repeated.

    The parallel text is longer than a block. The stages clean and dedup change and drop nothing.

    Returns:
        The settings of the corpus `own`, and its training pairs in the expected order.
    """
    corpus = read(tmp_path).corpus("own")
    repeated_synthetic = Text("own", source=File(path="inputs/b.de"), repeat=2)
    synthetic = replace(repeated_synthetic, repeat=None)
    texts = {**corpus.files.train, "made": repeated_synthetic, "other": synthetic}
    corpus = replace(
        corpus,
        clean=(),
        dedup=replace(corpus.dedup, pairs=False),
        files=replace(corpus.files, train=texts),
    )
    parallel_pairs = numbered_pairs("a {}", "{}\x85x", BLOCK_PAIRS + 1)
    repeated_pairs = []
    other_pairs = []
    for number, line in enumerate(odd_lines()):
        repeated_pairs.append((f"made {number}", f"{line}x"))
        other_pairs.append((f"other {number}", f"{line}x"))

    parallel_folder = paths.download_folder("own", tmp_path)
    write_set(TextFolder(parallel_folder, "de", "no"), "train", parallel_pairs)
    repeated_folder = synthetic_folder("own", "made", tmp_path)
    write_set(TextFolder(repeated_folder, "de", "no"), "train", repeated_pairs)
    other_folder = synthetic_folder("own", "other", tmp_path)
    write_set(TextFolder(other_folder, "de", "no"), "train", other_pairs)
    return corpus, parallel_pairs + 2 * repeated_pairs + other_pairs


def test_raw_text_numbers_the_pairs_of_all_texts_in_one_sequence(tmp_path):
    """The report names pairs by these numbers.

    The corpus has a parallel text, and two synthetic texts, of which one is read twice.
    """
    corpus, expected_pairs = corpus_with_synthetic_texts(tmp_path)

    text = RawText.for_corpus("own", corpus, tmp_path)

    assert text.count("train") == len(expected_pairs)
    numbered_pairs = []
    for block in text.blocks("train"):
        numbered_pairs += block.numbered_pairs()
    assert numbered_pairs == list(enumerate(expected_pairs, start=1))


def test_raw_text_reads_any_range_of_pairs_across_texts(tmp_path):
    """A shard is such a range; it may begin in one text and end in the next.

    The corpus has a parallel text, and two synthetic texts, of which one is read twice.
    """
    corpus, expected_pairs = corpus_with_synthetic_texts(tmp_path)
    text = RawText.for_corpus("own", corpus, tmp_path)
    # The first text ends at BLOCK_PAIRS + 1; the others follow. None reads to the end.
    bounds = [0, 5, *range(BLOCK_PAIRS, len(expected_pairs)), None]

    for start, stop in combinations(bounds, 2):
        pairs = []
        for block in text.blocks("train", start, stop):
            pairs += block.pairs()
        assert pairs == expected_pairs[start:stop]


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_the_stage_clean_appends_synthetic_texts_to_the_parallel_text(tmp_path, shards):
    """The sources of a synthetic text are translations by a system.

    The corpus has a parallel text, and two synthetic texts, of which one is read twice.
    """
    corpus, expected_pairs = corpus_with_synthetic_texts(tmp_path)
    step = Cleaning.for_corpus("own", corpus, tmp_path)

    run_sharded(step, tmp_path / "shards", shards)

    assert step.output == tmp_path / "data/clean/own/together"
    assert list(TextFolder(step.output, "de", "no").pairs("train")) == expected_pairs
    counts = json.loads(step.filter_stats_path.read_text())["sets"]["train"]
    assert counts["pairs_in"] == len(expected_pairs)
    assert counts["pairs_out"] == len(expected_pairs)
