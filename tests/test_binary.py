import json
import pickle
from collections import Counter

import numpy as np
import pytest

from bleuprint import workers
from bleuprint.binarize import _ArrayWriter, binarize_folder
from bleuprint.binary import BinaryCorpus, Sentences
from bleuprint.bpe import join, learn_codes
from bleuprint.errors import UserError
from bleuprint.pairs import TextFolder
from bleuprint.vocabulary import EOS, UNK
from corpora import PAIRS, prepare, write_set

SETS = {
    "train.a": PAIRS[:3],
    "valid.a": [("Ein Qualm.", "")],
    "test.x": PAIRS[3:5],
    "test.y": PAIRS[5:],
}


def lines_of(corpus, name, language):
    decode = corpus.vocabulary.decode
    return [" ".join(join(decode(sentence.tolist()))) for sentence in corpus.side(name, language)]


def test_what_is_read_is_what_was_tokenised(tmp_path):
    made = prepare(tmp_path, SETS)
    corpus, tokens = made.binary, made.text("tokens")
    assert (corpus.source, corpus.target) == ("de", "en")
    assert list(corpus.sets) == tokens.names() == ["train", "valid", "test.x", "test.y"]
    assert [size.pairs for size in corpus.sets.values()] == [3, 1, 2, 1]
    for language, side in (("de", 0), ("en", 1)):
        expected = [pair[side] for pair in tokens.pairs("train")]
        assert lines_of(corpus, "train", language) == expected


def test_sizes_count_ends_and_unknowns(tmp_path):
    tokens = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(tokens, "train", [("aa b", "b"), ("b", "")])
    write_set(tokens, "valid", [("a <s> q", "</s>")])
    learn_codes("c", 0, tokens, tmp_path / "codes")
    binarize_folder("c", tokens, tmp_path / "codes", tmp_path / "out", tmp_path / "l.json", 1)
    corpus = BinaryCorpus(tmp_path / "out")
    assert corpus.vocabulary.counts[4:] == [("b", 3), ("a", 1), ("a@@", 1)]
    assert vars(corpus.sets["train"]) == {
        "pairs": 2,
        "source_tokens": 6,
        "target_tokens": 3,
        "unknown": 0,
    }
    # <@@ s@@ > and q on one side, <@@ /@@ s@@ > on the other: none is in the vocabulary.
    assert vars(corpus.sets["valid"]) == {
        "pairs": 1,
        "source_tokens": 6,
        "target_tokens": 5,
        "unknown": 8,
    }
    assert corpus.side("train", "de")[0].tolist() == [6, 5, 4, EOS]
    assert corpus.side("train", "en")[1].tolist() == [EOS]
    assert corpus.side("valid", "en")[0].tolist() == [UNK] * 4 + [EOS]
    assert corpus.side("train", "de").lengths.tolist() == [4, 2]


@pytest.mark.parametrize("merges", [0, 30])
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, monkeypatch, merges):
    monkeypatch.setattr(workers, "CHUNK", 2)
    tokens = TextFolder(tmp_path / "tokens", "de", "en")
    write_set(tokens, "train", PAIRS * 4)
    write_set(tokens, "test.x", PAIRS)
    learn_codes("c", merges, tokens, tmp_path / "codes")
    results = []
    for count in (1, 2, 5):
        out = tmp_path / f"out{count}"
        binarize_folder("c", tokens, tmp_path / "codes", out, tmp_path / "l.json", count)
        results.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 10
    # Of twelve chunks, every sentence is found where it ends.
    expected = [source for source, _ in tokens.pairs("train")]
    assert lines_of(BinaryCorpus(out), "train", "de") == expected


def test_sentences_are_views_of_the_file_and_survive_pickling(tmp_path):
    side = prepare(tmp_path, {**SETS, "test.x": PAIRS[3:5] * 100}).binary.side("test.x", "de")
    assert side[0].base is not None and not side[0].flags.owndata
    assert not side[0].flags.writeable
    again = pickle.loads(pickle.dumps(side))
    assert len(pickle.dumps(side)) < 1000
    assert [s.tolist() for s in again] == [s.tolist() for s in side]
    assert len(side) == 200 and sum(side.lengths) == sum(map(len, side))
    for index in (200, -1):
        with pytest.raises(IndexError):
            side[index]


@pytest.mark.parametrize(("size", "dtype"), [(65530, np.uint16), (65531, np.uint32)])
def test_ids_take_two_bytes_where_they_can(tmp_path, monkeypatch, size, dtype):
    tokens = TextFolder(tmp_path / "tokens", "de", "en")
    words = [chr(0x4E00 + i // 300) + chr(0x3400 + i % 300) for i in range(size)]
    write_set(tokens, "train", [("a", "b")])
    learn_codes("c", 0, tokens, tmp_path / "codes")
    monkeypatch.setattr("bleuprint.binarize._count_units", lambda *_: Counter([*words, "a"]))
    binarize_folder("c", tokens, tmp_path / "codes", tmp_path / "out", tmp_path / "l.json", 1)
    ids = np.load(tmp_path / "out" / "train.de.ids.npy")
    assert ids.dtype == dtype
    vocabulary = BinaryCorpus(tmp_path / "out").vocabulary
    assert len(vocabulary) == size + 5 and vocabulary.decode(ids) == ["a"]


def test_an_array_written_bit_by_bit_is_one_that_numpy_writes(tmp_path):
    values = np.arange(100_000, dtype="<u2")
    with _ArrayWriter(tmp_path / "a.npy", values.dtype) as writer:
        for start in range(0, len(values), 999):
            writer.write(values[start : start + 999])
    np.save(tmp_path / "b.npy", values)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_an_empty_set_can_be_opened(tmp_path):
    made = prepare(tmp_path, {**SETS, "test.empty": []})
    side = made.binary.side("test.empty", "de")
    assert len(side) == 0 and list(side) == [] and side.lengths.tolist() == []


def test_a_damaged_or_missing_corpus_is_named(tmp_path):
    made = prepare(tmp_path, SETS)
    folder = made.binary.folder
    with pytest.raises(UserError, match=r"test\.z\.de\.ids\.npy: no such file"):
        made.binary.side("test.z", "de")
    ids = folder / "test.x.de.ids.npy"
    ids.write_bytes(ids.read_bytes()[:-2])
    with pytest.raises(UserError, match=r"test\.x\.de\.ids\.npy: not a whole array"):
        made.binary.side("test.x", "de")
    with pytest.raises(UserError, match=r"holds \d+ ids, test\.x\.en\.ends\.npy wants"):
        Sentences(folder / "test.y.de.ids.npy", folder / "test.x.en.ends.npy")
    with pytest.raises(UserError, match=r"corpus\.json: no such file"):
        BinaryCorpus(tmp_path)


def test_the_ledger_and_the_corpus_agree(tmp_path):
    made = prepare(tmp_path, SETS)
    sets = json.loads(made.ledger("binarize").read_text())["sets"]
    for name, size in made.binary.sets.items():
        assert sets[name]["pairs_in"] == sets[name]["pairs_out"] == size.pairs
