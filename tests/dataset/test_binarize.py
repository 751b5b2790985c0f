import json
import tracemalloc
from dataclasses import asdict

import numpy as np
import pytest

from bleuprint.config.corpus import Bpe, Units
from bleuprint.corpus.steps.shard import Shard
from bleuprint.dataset import binarize
from bleuprint.dataset.binarize import Binarizing
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.learn_vocabulary import learn_segmentation
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import EOS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError
from bleuprint.text import parallel
from bleuprint.text.parallel import TextFolder
from corpora import EDITS, PAIRS, TOKENIZE, UNITS, write_set
from steps import run_sharded

APART = Units(bpe=Bpe(num_merges=10, joint=False, threshold=0))


def write_words(folder, joint=False, **counts):
    """A segmentation by hand: words, numbered from 4 in the order given for each language."""
    folder.mkdir(parents=True)
    about = {"kind": "words", "joint": joint}
    (folder / "segmentation.json").write_text(json.dumps(about))
    for language, words in counts.items():
        Vocabulary((word, 1) for word in words).write(folder / f"vocabulary.{language}")


def step(root, out="out", **sets):
    tokens = TextFolder(root / "tokens", "de", "en")
    for name, found in sets.items():
        write_set(tokens, name.replace("_", "."), found)
    out = root / out
    return Binarizing(
        "c", tokens, out, out.with_suffix(".json"), root / "bpe", TOKENIZE, EDITS, UNITS
    )


def made(binarizing, shards=1, workers=1):
    run_sharded(binarizing, binarizing.output.with_name("shards"), shards, workers)
    return BinaryCorpus(binarizing.output)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_ids_and_sizes_are_those_counted_by_hand(tmp_path):
    write_words(tmp_path / "bpe", de=["a", "b"], en=["x"])
    sets = {
        "train": [("a b", "x"), ("b", ""), ("a q", "y y x")],
        "valid": [("</s> <unk> <pad>", "x")],
    }
    corpus = made(step(tmp_path, **sets))
    sides = {
        (name, language): [ids.tolist() for ids in corpus.side(name, language)]
        for name in sets
        for language in ("de", "en")
    }
    assert sides == {
        ("train", "de"): [[4, 5, EOS], [5, EOS], [4, UNK, EOS]],
        ("train", "en"): [[4, EOS], [EOS], [UNK, UNK, 4, EOS]],
        # Text can never end a sentence or pass for padding.
        ("valid", "de"): [[UNK, UNK, UNK, EOS]],
        ("valid", "en"): [[4, EOS]],
    }
    assert corpus.side("train", "de").lengths.tolist() == [3, 2, 3]
    assert {name: tuple(vars(size).values()) for name, size in corpus.sets.items()} == {
        "train": (3, 8, 7, 3),
        "valid": (1, 4, 2, 3),
    }


def test_corpus_json_says_what_the_text_went_through(tmp_path):
    write_words(tmp_path / "bpe", joint=True, de=["a"], en=["a"])
    binarizing = step(tmp_path, train=[("a", "a")])
    corpus = made(binarizing)
    about = json.loads((binarizing.output / "corpus.json").read_text())
    assert about["format"] == "bleuprint binary corpus" and about["version"] == 1
    assert about["clean"] == {"unicode": {"form": "NFC"}, "non_printing": {}}
    assert about["tokenize"] == asdict(TOKENIZE)
    assert corpus.joint
    assert contents(binarizing.output / "segmentation") == contents(tmp_path / "bpe")


@pytest.mark.parametrize("units", [APART, Units(bpe=Bpe(num_merges=30, joint=True, threshold=0))])
def test_any_number_of_workers_and_shards_writes_the_same_bytes(tmp_path, monkeypatch, units):
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 2)
    monkeypatch.setattr(binarize, "_BLOCK_ELEMENTS", 7)
    sets = {"train": [*PAIRS, ("", "x"), ("y", ""), ("", "")] * 3, "test_x": PAIRS}
    first = step(tmp_path, "1-1", **sets)
    learn_segmentation("c", units, first.input_text, first.segmentation)
    corpus = made(first)
    expected, filter_stats = contents(first.output), first.filter_stats_path.read_bytes()
    assert len(expected) == 2 * 4 + 5 + 1
    for shards in (1, 2, 7):
        for workers in (1, 2, 5):
            again = step(tmp_path, f"{shards}-{workers}")
            made(again, shards, workers)
            assert contents(again.output) == expected, (shards, workers)
            assert again.filter_stats_path.read_bytes() == filter_stats
    # Of fourteen blocks, every sentence is found where it ends.
    for side, language in enumerate(("de", "en")):
        segmentation = Segmentation.read(first.segmentation, language)
        read = [ids.tolist() for ids in corpus.side("train", language)]
        assert read == [list(segmentation.encode([pair[side]])) for pair in sets["train"]]


@pytest.mark.parametrize(("size", "kind"), [(65532, np.uint16), (65533, np.uint32)])
def test_ids_take_two_bytes_where_they_can(tmp_path, size, kind):
    words = [f"w{i}" for i in range(size)]
    write_words(tmp_path / "bpe", de=words, en=["x"])
    binarizing = step(tmp_path, train=[(words[-1], "x")])
    corpus = made(binarizing)
    assert corpus.side("train", "de")[0].dtype == kind
    assert corpus.side("train", "de")[0].tolist() == [size + 3, EOS]
    assert corpus.side("train", "en")[0].dtype == np.uint16
    assert (binarizing.output / "train.de.ids.npy").stat().st_size == 128 + 2 * kind().itemsize


def test_shards_are_joined_without_being_in_memory(tmp_path):
    write_words(tmp_path / "bpe", de=["a"], en=["b"])
    words = 50
    pair = (" ".join(["a"] * words), " ".join(["b"] * words))
    binarizing = step(tmp_path, train=[pair] * 1000)
    part = tmp_path / "part"
    part.mkdir()
    binarizing.process_shard(Shard(), part, 1)
    for path in part.iterdir():  # longer by the same sentences again
        path.write_bytes(path.read_bytes() * 200)
    tracemalloc.start()
    try:
        binarizing.gather([part], 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (binarizing.output / "train.de.ids.npy").stat().st_size > 20_000_000
    assert peak < 12_000_000


def test_an_empty_set_can_be_written_and_opened(tmp_path):
    write_words(tmp_path / "bpe", de=["a"], en=["b"])
    side = made(step(tmp_path, train=[("a", "b")], test_empty=[])).side("test.empty", "de")
    assert len(side) == 0 and list(side) == [] and side.lengths.tolist() == []


@pytest.mark.parametrize("name", ["train", "test.x"])
def test_a_text_that_cannot_be_read_leaves_nothing(tmp_path, name):
    write_words(tmp_path / "bpe", de=["a"], en=["b"])
    binarizing = step(tmp_path, train=[("a", "b")] * 2, test_x=[("a", "b")] * 2)
    (tmp_path / "tokens" / f"{name}.en").write_bytes(b"b\n\xff\n")
    with pytest.raises(UserError, match=rf"{name}\.en:2: byte 1 of the line is 0xff"):
        made(binarizing)
    (tmp_path / "tokens" / f"{name}.en").write_bytes(b"b\n")
    with pytest.raises(UserError, match=rf"{name}\.de has 2 lines and .*{name}\.en has 1"):
        made(binarizing)
    assert not binarizing.output.exists() and not binarizing.filter_stats_path.exists()
    assert not list(tmp_path.glob(".*"))


def test_what_a_workflow_tool_hides_in_a_folder_is_not_copied(tmp_path):
    write_words(tmp_path / "bpe", de=["a"], en=["b"])
    plain = step(tmp_path, "plain", train=[("a", "b")])
    made(plain)
    (tmp_path / "bpe" / ".snakemake_timestamp").touch()
    marked = step(tmp_path, "marked")
    made(marked)
    assert contents(plain.output) == contents(marked.output)


def test_the_filter_stats_and_the_corpus_agree(tmp_path):
    write_words(tmp_path / "bpe", de=["a"], en=["b"])
    binarizing = step(tmp_path, train=[("a", "b")] * 5, valid=[("a", "")], test_x=[])
    corpus = made(binarizing, shards=2)
    filter_stats = json.loads(binarizing.filter_stats_path.read_text())
    assert (filter_stats["stage"], filter_stats["corpus"]) == ("binarize", "c")
    counts = {name: account["pairs_out"] for name, account in filter_stats["sets"].items()}
    assert counts == {"train": 5, "valid": 1, "test.x": 0}
    assert counts == {name: size.pairs for name, size in corpus.sets.items()}
    for account in filter_stats["sets"].values():
        assert account["pairs_in"] == account["pairs_out"] and not account["dropped"]
