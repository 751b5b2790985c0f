"""Texts of which a system translates one side, and repeated texts, up to the stage clean."""

import json
from dataclasses import replace
from itertools import combinations

from bleuprint.config import paths
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.corpus.clean import Cleaning, RawText
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.text.parallel import BLOCK_PAIRS, TextFolder
from corpora import LINE_ENDS_ELSEWHERE, write_set
from params import read
from steps import run_sharded

LINES = [f"{c}wort{c} {i}{c}" for i, c in enumerate([*LINE_ENDS_ELSEWHERE, "\0"])]
PHRASE = {side: File(url=f"phrasebook:valid.{side}") for side in ("de", "en")}


def test_the_given_side_and_copies_are_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/mono.de").write_bytes("\n".join(["\ufeffa", *LINES]).encode())  # no last \n
    both = Text("x", source=PHRASE["de"], target=PHRASE["en"], pairs=10, repeat=3)
    mono = Text("x", target=File(path="inputs/mono.de"), repeat=2)
    raw = TextFolder(tmp_path / "raw", "en", "de")
    filter_stats = tmp_path / "filter_stats.json"
    files = Files({"both": both, "mono": mono}, {}, {})
    download_corpus(
        "c", files, raw, filter_stats, Downloads(None, tmp_path / "store", tmp_path / "lock")
    )
    pairs = list(raw.pairs("train"))
    assert len(pairs) == 30 and pairs[:10] * 3 == pairs
    given = raw.with_path(raw.path / "mono")
    assert list(given.pairs("train")) == [("", line.removesuffix("\r")) for line in ["a", *LINES]]
    assert raw.set_names() == ["train"]
    sets = json.loads(filter_stats.read_text())["sets"]
    left_out = sets["train.both"]["dropped"]["pairs"]
    assert sets["train.both"]["pairs_out"] == 30 and left_out % 3 == 0 < left_out
    assert sets["train.mono"]["pairs_in"] == sets["train.mono"]["pairs_out"] == 2 * (len(LINES) + 1)


def test_clean_reads_synthetic_texts_after_the_others_in_any_shards(tmp_path):
    corpus = read(tmp_path).corpus("own")
    of_source = Text("own", source=File(path="inputs/b.de"), repeat=2)
    train = {**corpus.files.train, "made": of_source, "other": replace(of_source, repeat=None)}
    corpus = replace(
        corpus,
        clean=(),
        dedup=replace(corpus.dedup, pairs=False),
        files=replace(corpus.files, train=train),
    )
    sides = {name: [(f"{name} {i}", f"{i}{c}x") for i, c in enumerate(LINES)] for name in train}
    sides["a"] = [(f"a {i}", f"{i}\x85x") for i in range(BLOCK_PAIRS + 1)]
    for name, pairs in sides.items():
        given = name == "a"
        path = (
            paths.download_folder("own", tmp_path)
            if given
            else synthetic_folder("own", name, tmp_path)
        )
        write_set(TextFolder(path, "de", "no"), "train", pairs)
    expected = [*sides["a"], *sides["made"], *sides["made"], *sides["other"]]
    text = RawText.for_corpus("own", corpus, tmp_path)
    assert text.count("train") == len(expected)
    numbered = [each for block in text.blocks("train") for each in block.numbered_pairs()]
    assert numbered == [*enumerate(expected, 1)]
    bounds = [0, 5, *range(BLOCK_PAIRS, len(expected)), None]
    for start, stop in combinations(bounds, 2):
        blocks = text.blocks("train", start, stop)
        assert [pair for block in blocks for pair in block.pairs()] == expected[start:stop]
    step = Cleaning.for_corpus("own", corpus, tmp_path)
    assert step.output == tmp_path / "data/clean/own"
    for shards in (1, 2, 7):
        run_sharded(step, tmp_path / "shards", shards, 1)
        assert list(TextFolder(step.output, "de", "no").pairs("train")) == expected
        counts = json.loads(step.filter_stats_path.read_text())["sets"]["train"]
        assert counts["pairs_in"] == counts["pairs_out"] == len(expected)
