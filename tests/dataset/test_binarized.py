import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bleuprint.config.corpus import Bpe, Units, Words
from bleuprint.dataset import binarized
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.rules import EDITS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS
from prepared import prepare

SETS = {
    "train": PAIRS[:3],
    "valid": [("Ein Qualm.", "")],
    "test.x": PAIRS[3:5],
    "test.y": PAIRS[5:],
}
APART = Units(bpe=Bpe(num_merges=20, joint=False, threshold=0))


@pytest.mark.parametrize("units", [APART, Units(words=Words(True, 1000, 1))])
def test_what_is_read_is_what_was_tokenized(tmp_path, units):
    made = prepare(tmp_path, SETS, units=units)
    corpus, tokens = made.binary, made.text("tokens")
    assert (corpus.source, corpus.target, corpus.joint) == ("de", "en", units.joint)
    assert list(corpus.sets) == tokens.set_names() == ["train", "valid", "test.x", "test.y"]
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


def test_a_corpus_is_pickled_without_what_it_has_read(tmp_path):
    corpus = prepare(tmp_path, {**SETS, "test.x": PAIRS[3:5] * 100}, units=APART).binary
    ids = corpus.side("test.x", "de")[150].tolist()
    text = corpus.text("de", ids)
    pickled = pickle.dumps(corpus)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert again.side("test.x", "de")[150].tolist() == ids
    assert again.text("de", ids) == text


def test_opening_a_corpus_loads_neither_torch_nor_tokenizers(tmp_path):
    """Which takes half a second, in each of the processes that read ids."""
    folder = prepare(tmp_path, SETS).binary.folder
    code = f"""if True:
        import sys
        from pathlib import Path
        from bleuprint.dataset.binarized import BinaryCorpus
        print(len(BinaryCorpus(Path({str(folder)!r})).side("train", "de")))
        print(sorted({{"torch", "sacremoses", "bleuprint.rules"}} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["3", "[]"]


def test_numbers_begin_where_a_mapping_is_aligned(tmp_path):
    made = prepare(tmp_path, SETS)
    for path in (tmp_path / "binary").glob("*.npy"):
        values = np.load(path)
        assert (path.stat().st_size - values.nbytes) % 64 == 0
        # numpy's own writer makes the same file.
        np.save(tmp_path / "again.npy", values)
        assert path.read_bytes() == (tmp_path / "again.npy").read_bytes()
    assert made.binary.side("train", "de")[0].flags.aligned


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


def test_escapes_of_the_tokens_are_undone_in_the_text(tmp_path):
    escaping = Tokenize(name="moses", lowercase=False, hyphens=True, escape=True)
    sets = {**SETS, "train": [("Sie's ein-mal", "it's so-so [!]"), *PAIRS]}
    made = prepare(tmp_path, sets, tokenize=escaping)
    tokens = next(iter(made.text("tokens").pairs("train"))).target
    assert tokens == "it &apos;s so @-@ so &#91; ! &#93;"
    ids = made.binary.side("train", "en")[0]
    assert made.binary.text("en", ids) == "it's so-so [!]"


def test_a_corpus_can_be_moved(tmp_path):
    made = prepare(tmp_path, SETS)
    expected = made.binary.text("de", made.binary.side("train", "de")[0])
    moved = made.binary.folder.rename(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "bpe")
    corpus = BinaryCorpus(moved)
    corpus.verify()
    assert corpus.text("de", corpus.side("train", "de")[0]) == expected


def test_of_sets_with_like_names_only_the_one_is_verified(tmp_path):
    prepare(tmp_path, {**SETS, "test.x2": PAIRS[3:5]})
    damage(tmp_path / "binary" / "test.x2.de.ids.npy", -1)
    corpus = BinaryCorpus(tmp_path / "binary")
    corpus.verify("test.x")
    with pytest.raises(UserError, match=r"test\.x2\.de\.ids\.npy is damaged"):
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
            assert (
                str(caught.value).startswith(f"{path} is damaged: ") or path.name == "corpus.json"
            )
            path.write_bytes(whole)
    BinaryCorpus(folder).verify()


@pytest.mark.parametrize("kind", ["ids", "ends"])
@pytest.mark.parametrize("fault", ["its header", "cut", "empty"])
def test_a_damaged_array_is_named_where_nothing_is_verified(tmp_path, kind, fault):
    corpus = prepare(tmp_path, SETS).binary
    path = corpus.folder / f"train.de.{kind}.npy"
    whole = path.read_bytes()
    damaged = {
        "its header": bytes([whole[0] ^ 1]) + whole[1:],
        "cut": whole[:-1],
        "empty": b"",
    }
    path.write_bytes(damaged[fault])
    with pytest.raises(UserError) as error:
        corpus.side("train", "de")
    assert str(error.value).startswith(f"{path} is damaged: ")


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((3, 2), np.uint16), r"\(3, 2\) uint16"),
        (np.zeros(3, np.float32), r"\(3,\) float32"),
        (np.zeros((), np.uint16), r"\(\) uint16"),
    ],
)
def test_an_array_of_another_shape_or_type_is_no_list_of_ids(tmp_path, array, found):
    corpus = prepare(tmp_path, SETS).binary
    np.save(corpus.folder / "train.de.ids.npy", array)
    with pytest.raises(UserError, match=f"expected a list of ids or lengths, but found {found}"):
        corpus.side("train", "de")


def test_an_array_that_is_missing_is_named(tmp_path):
    corpus = prepare(tmp_path, SETS).binary
    path = corpus.folder / "train.de.ends.npy"
    path.unlink()
    with pytest.raises(UserError, match=r"train\.de\.ends\.npy: no such file; run: make reproduce"):
        corpus.side("train", "de")


def test_another_version_is_refused(tmp_path):
    folder = prepare(tmp_path, SETS).binary.folder
    path = folder / "corpus.json"
    header = {**json.loads(path.read_text()), "version": 2}
    path.write_text(json.dumps(header))
    with pytest.raises(UserError, match="format has version 2, but this bleuprint reads version 1"):
        BinaryCorpus(folder)


def test_a_missing_corpus_or_set_is_named(tmp_path):
    with pytest.raises(UserError, match=r"corpus\.json: no such file; run: make reproduce"):
        BinaryCorpus(tmp_path)
    corpus = prepare(tmp_path, SETS).binary
    with pytest.raises(UserError, match=r"no set 'test\.z'; there are: train, valid, test\.x"):
        corpus.side("test.z", "de")


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_segmentation_with_other_bytes_is_not_used(tmp_path, language):
    """Merges in another order split words otherwise, with the same vocabulary."""
    folder = prepare(tmp_path, SETS, units=APART).binary.folder
    merges = folder / "segmentation" / "codes.de"
    assert merges.is_file(), sorted(each.name for each in merges.parent.iterdir())
    first, second, *others = merges.read_text().splitlines(keepends=True)
    merges.write_text("".join([first, *others, second]))
    with pytest.raises(UserError, match=r"codes\.de is damaged: its SHA-256 is not the one in"):
        BinaryCorpus(folder).segmentation(language)


def test_a_file_is_hashed_once(tmp_path, monkeypatch):
    corpus = BinaryCorpus(prepare(tmp_path, SETS, units=APART).binary.folder)
    hashed = []

    def counted(path):
        hashed.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(binarized, "sha256_of", counted)
    corpus.verify("valid")
    assert sorted(hashed) == [f"valid.{x}.{y}.npy" for x in ("de", "en") for y in ("ends", "ids")]
    corpus.verify()
    corpus.verify()
    assert len(hashed) == len(set(hashed)) == len(corpus.file_hashes)
