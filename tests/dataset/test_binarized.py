import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.dataset import binarized
from bleuprint.dataset.binarized import BinaryCorpus, write_header
from bleuprint.rules import EDITS
from bleuprint.runtime.errors import UserError
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS
from prepared import prepare

SETS = {
    "train": PAIRS[:3],
    "valid": [("Ein Qualm.", "")],
    "test.x": PAIRS[3:5],
    "test.y": PAIRS[5:],
}
APART = Units(bpe=Bpe(num_merges=20, joint=False, threshold=0, learner="incremental"))


def rewrite(path, **changes):
    """corpus.json with other entries, and a SHA-256 that belongs to them."""
    header = {**json.loads(path.read_text()), **changes}
    del header["sha256"]
    path.write_text(json.dumps({**header, "sha256": binarized._digest(header)}))


@pytest.mark.parametrize("units", [APART, Units(words=Words(True, 1000, 1))])
def test_what_is_read_is_what_was_tokenized(tmp_path, units):
    made = prepare(tmp_path, SETS, units=units)
    corpus, tokens = made.binary, made.text("tokens")
    assert (corpus.source, corpus.target, corpus.joint) == ("de", "en", units.joint)
    assert list(corpus.sets) == tokens.names() == ["train", "valid", "test.x", "test.y"]
    assert [size.pairs for size in corpus.sets.values()] == [3, 1, 2, 1]
    for side, language in enumerate(("de", "en")):
        decode = corpus.segmentation(language).decode
        read = [" ".join(decode(ids.tolist())) for ids in corpus.side("train", language)]
        assert read == [pair[side] for pair in tokens.pairs("train")]


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


def test_numbers_begin_where_a_mapping_is_aligned(tmp_path):
    made = prepare(tmp_path, SETS)
    for path in (tmp_path / "binary").glob("*.npy"):
        values = np.load(path)
        assert (path.stat().st_size - values.nbytes) % 64 == 0
        # numpy's own writer makes the same file.
        np.save(tmp_path / "again.npy", values)
        assert path.read_bytes() == (tmp_path / "again.npy").read_bytes()
    assert made.binary.side("train", "de")[0].flags.aligned


def read_all(corpus):
    corpus.verify()
    ids = [
        ids.tolist()
        for name in corpus.sets
        for language in (corpus.source, corpus.target)
        for ids in corpus.side(name, language)
    ]
    return os.getpid(), ids, corpus.text("en", ids[3])


def test_many_processes_read_at_once_and_write_nothing(tmp_path):
    corpus = prepare(tmp_path, {**SETS, "test.x": PAIRS[3:5] * 150}).binary
    _, *here = read_all(corpus)
    assert len(pickle.dumps(corpus)) < 1000
    before = {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")}
    with ProcessPoolExecutor(6) as pool:
        there = list(pool.map(read_all, [corpus] * 12))
    assert [found for _, *found in there] == [here] * 12
    assert os.getpid() not in {process for process, *_ in there}
    assert {path: path.stat().st_mtime_ns for path in corpus.folder.rglob("*")} == before


def test_text_is_made_ready_and_back_as_the_corpus_was(tmp_path):
    characters = Tokenize(name="characters", lowercase=True, hyphens=False, escape=False)
    edits = (EDITS["entities"](), EDITS["unicode"](form="NFKC"))
    sets = {**SETS, "train": [("Ein&nbsp;Oﬀen", "Ab  ▁c"), *PAIRS]}
    prepare(tmp_path, sets, edits=edits, tokenize=characters)
    corpus = BinaryCorpus(tmp_path / "binary")
    texts = [corpus.text(language, corpus.side("train", language)[0]) for language in ("de", "en")]
    assert texts == ["ein offen", "ab ▁c"]
    assert corpus.tokenizer("de").tokenize("A b") == ["a", "▁", "b"]
    assert corpus.text("en", []) == ""


def test_moses_escapes_are_undone(tmp_path):
    escaping = Tokenize(name="moses", lowercase=False, hyphens=True, escape=True)
    sets = {**SETS, "train": [("Sie's ein-mal", "it's so-so [!]"), *PAIRS]}
    made = prepare(tmp_path, sets, tokenize=escaping)
    assert "&apos;s" in next(made.text("tokens").pairs("train")).target
    assert made.binary.text("en", made.binary.side("train", "en")[0]) == "it's so-so [!]"


def test_one_set_can_be_verified_alone(tmp_path):
    prepare(tmp_path, SETS)
    path = tmp_path / "binary" / "valid.de.ends.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    corpus = BinaryCorpus(tmp_path / "binary")
    corpus.verify("train")
    with pytest.raises(UserError, match=r"valid\.de\.ends\.npy: damaged"):
        corpus.verify("valid")


def test_of_sets_with_like_names_only_the_one_is_verified(tmp_path):
    prepare(tmp_path, {**SETS, "test.x2": PAIRS[3:5]})
    damage(tmp_path / "binary" / "test.x2.de.ids.npy", -1)
    corpus = BinaryCorpus(tmp_path / "binary")
    corpus.verify("test.x")
    with pytest.raises(UserError, match=r"test\.x2\.de\.ids\.npy: damaged"):
        corpus.verify("test.x2")


def damage(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_flipped_byte_is_found_wherever_it_is(tmp_path):
    folder = prepare(tmp_path, SETS, units=APART).binary.folder
    BinaryCorpus(folder).verify()
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert len(paths) == 4 * 4 + 5 + 1
    for path in paths:
        for place in {0, path.stat().st_size // 2, path.stat().st_size - 1}:
            whole = path.read_bytes()
            damage(path, place)
            with pytest.raises(UserError) as caught:
                BinaryCorpus(folder).verify()
            assert str(caught.value).startswith(f"{path}: ") or path.name == "corpus.json"
            path.write_bytes(whole)
    BinaryCorpus(folder).verify()


def test_a_damaged_header_is_one_line_where_nothing_is_verified(tmp_path):
    corpus = prepare(tmp_path, SETS).binary
    damage(corpus.folder / "train.de.ids.npy", 0)
    with pytest.raises(UserError, match=r"train\.de\.ids\.npy or train\.de\.ends\.npy is damaged"):
        corpus.side("train", "de")


def test_corpus_json_vouches_for_itself(tmp_path):
    path = prepare(tmp_path, SETS).binary.folder / "corpus.json"
    text = path.read_text()
    path.write_text(text.replace('"lowercase": false', '"lowercase": true'))
    with pytest.raises(UserError, match=r"corpus\.json: damaged"):
        BinaryCorpus(path.parent)
    path.write_text(text[: len(text) // 2])
    with pytest.raises(UserError, match=r"corpus\.json: damaged"):
        BinaryCorpus(path.parent)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2 of the format; this bleuprint reads 1"),
        ({"format": "another"}, "its format is not 'bleuprint binary corpus'"),
    ],
)
def test_other_formats_and_versions_are_refused(tmp_path, change, message):
    folder = prepare(tmp_path, SETS).binary.folder
    rewrite(folder / "corpus.json", **change)
    with pytest.raises(UserError, match=message):
        BinaryCorpus(folder)


@pytest.mark.parametrize("text", ["[]", '{"source": "de", "target": "en", "sets": {}}'])
def test_json_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "corpus.json").write_text(text)
    with pytest.raises(
        UserError, match=r"corpus\.json: (its format is not|damaged: no JSON object)"
    ):
        BinaryCorpus(tmp_path)


@pytest.mark.parametrize(
    "name", ["test.x.de.ids.npy", "train.en.ends.npy", "segmentation/codes.de"]
)
def test_a_file_of_another_size_is_named_at_opening(tmp_path, name):
    folder = prepare(tmp_path, SETS).binary.folder
    path = folder / name
    whole = path.read_bytes()
    for data, what in ((whole[:-1], "cut short"), (whole + b"\0", "too long"), (b"", "cut short")):
        path.write_bytes(data)
        with pytest.raises(UserError, match=rf"{name}: {what}: {len(data)} bytes, .* {len(whole)}"):
            BinaryCorpus(folder)
    path.unlink()
    with pytest.raises(UserError, match=rf"{name}: no such file"):
        BinaryCorpus(folder)


def test_a_missing_corpus_or_set_is_named(tmp_path):
    with pytest.raises(UserError, match=r"corpus\.json: no such file; run: dvc repro"):
        BinaryCorpus(tmp_path)
    corpus = prepare(tmp_path, SETS).binary
    with pytest.raises(UserError, match=r"no set 'test\.z'; there are: train, valid, test\.x"):
        corpus.side("test.z", "de")


def what_was_read():
    """Bytes that this process has read, and bytes of files that are mapped and in memory."""
    lines = Path("/proc/self/io").read_text().splitlines()
    shared = int(Path("/proc/self/statm").read_text().split()[2])
    return int(lines[0].removeprefix("rchar: ")), shared * os.sysconf("SC_PAGE_SIZE")


def test_opening_reads_no_sentence(tmp_path, monkeypatch):
    folder = prepare(tmp_path, SETS).binary.folder
    pairs, ids = 1 << 20, 1 << 29
    for language in ("de", "en"):
        for name, kind, length in (("ids", "<u2", ids), ("ends", "<i8", pairs)):
            path = folder / f"train.{language}.{name}.npy"
            array = np.lib.format.open_memmap(path, "w+", kind, (length,))
            array[-1] = 2 if name == "ids" else ids
            del array
            assert path.stat().st_blocks * 512 < 1 << 20
    about = json.loads((folder / "corpus.json").read_text())
    del about["files"], about["sha256"]
    about["sets"]["train"] = {
        "pairs": pairs,
        "source_tokens": ids,
        "target_tokens": ids,
        "unknown": 0,
    }
    (folder / "corpus.json").unlink()
    monkeypatch.setattr(binarized, "sha256_of", lambda _: "0" * 64)
    write_header(folder, about)

    read, mapped = what_was_read()
    corpus = BinaryCorpus(folder)
    sides = [corpus.side("train", language) for language in ("de", "en")]
    assert [len(side) for side in sides] == [pairs, pairs]
    assert sides[0][pairs - 1][-1] == 2
    read_after, mapped_after = what_was_read()
    assert read_after - read < 1 << 20
    assert mapped_after - mapped < 1 << 24


def test_opening_loads_no_more_than_reading_needs(tmp_path):
    folder = prepare(tmp_path, SETS).binary.folder
    code = (
        "import sys; from pathlib import Path;"
        "from bleuprint.dataset.binarized import BinaryCorpus;"
        f"print(len(BinaryCorpus(Path({str(folder)!r})).side('train', 'de')));"
        "print(*sorted({'torch', 'sacremoses', 'bleuprint.rules'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == b"3\n\n"
