"""A binarized corpus is read as it was written, and damage to its files is found."""

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
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.text.tokenizers import Tokenize
from corpora import PAIRS
from prepared import prepare

SETS = {
    "train": PAIRS[:3],
    "valid": [("Ein Qualm.", "")],
    "test.x": PAIRS[3:5],
    "test.y": PAIRS[5:],
}
SEPARATE_BPE = Units(bpe=Bpe(num_merges=20, joint=False, threshold=0))
JOINT_WORDS = Units(words=Words(joint=True, max_size=1000, min_count=1))


@pytest.mark.parametrize("units", [SEPARATE_BPE, JOINT_WORDS], ids=["separate BPE", "joint words"])
def test_a_corpus_knows_its_languages_sets_and_sizes(tmp_path, units):
    """The corpus has 3 training pairs, a validation pair, and test sets of 2 and 1 pairs."""
    outputs = prepare(tmp_path, SETS, units=units)

    corpus = outputs.binary

    assert corpus.source == "de"
    assert corpus.target == "en"
    assert corpus.joint == units.joint
    assert list(corpus.sets) == ["train", "valid", "test.x", "test.y"]
    assert list(corpus.sets) == outputs.text("tokens").set_names()
    pair_counts = [size.pairs for size in corpus.sets.values()]
    assert pair_counts == [3, 1, 2, 1]


@pytest.mark.parametrize("units", [SEPARATE_BPE, JOINT_WORDS], ids=["separate BPE", "joint words"])
@pytest.mark.parametrize(("side", "language"), [(0, "de"), (1, "en")])
def test_ids_are_decoded_to_the_tokens_that_were_binarized(tmp_path, units, side, language):
    """A corpus stores sentences as ids; no token may be lost on the way to ids and back."""
    outputs = prepare(tmp_path, SETS, units=units)

    decode = outputs.binary.segmentation(language).decode
    lines = []
    for ids in outputs.binary.side("train", language):
        lines.append(" ".join(decode(ids.tolist())))

    assert lines == [pair[side] for pair in outputs.text("tokens").pairs("train")]


@pytest.fixture(scope="module")
def side_of_200_sentences(tmp_path_factory):
    """The German side of a test set with 200 sentences."""
    sets = {**SETS, "test.x": PAIRS[3:5] * 100}
    return prepare(tmp_path_factory.mktemp("corpus"), sets).binary.side("test.x", "de")


def test_a_sentence_is_a_read_only_view_of_the_file(side_of_200_sentences):
    """Arrays are mapped into memory: all processes share them, and no one may change them."""
    sentence = side_of_200_sentences[0]

    # In NumPy, a view refers to the array whose data it shares.
    assert sentence.base is not None
    assert not sentence.flags.owndata
    assert not sentence.flags.writeable


def test_a_side_is_pickled_without_its_sentences(side_of_200_sentences):
    """Worker processes receive the pickled side, and open the files themselves."""
    pickled = pickle.dumps(side_of_200_sentences)

    assert len(pickled) < 1000  # Bytes; the ids of 200 sentences need more.
    for ids, expected_ids in zip(pickle.loads(pickled), side_of_200_sentences, strict=True):
        assert ids.tolist() == expected_ids.tolist()


def test_a_side_has_the_length_of_each_sentence(side_of_200_sentences):
    assert len(side_of_200_sentences) == 200
    assert sum(side_of_200_sentences.lengths) == sum(map(len, side_of_200_sentences))


@pytest.mark.parametrize("sentences_at_once", [1, 7, 200, 1000])
def test_lengths_in_parts_are_those_of_all_sentences(
    side_of_200_sentences, monkeypatch, sentences_at_once
):
    """A training set may be large, so its lengths are not all computed at once."""
    monkeypatch.setattr(binarized, "_SENTENCES_AT_ONCE", sentences_at_once)

    parts = list(side_of_200_sentences.length_parts())

    lengths = side_of_200_sentences.lengths
    assert np.concatenate(parts).tolist() == lengths.tolist()
    assert max(map(len, parts)) == min(sentences_at_once, 200)
    assert side_of_200_sentences.longest == max(lengths)
    assert side_of_200_sentences.token_count == sum(lengths)


@pytest.mark.parametrize("index", [200, -1])
def test_an_index_outside_of_a_side_is_an_error(side_of_200_sentences, index):
    with pytest.raises(IndexError):
        side_of_200_sentences[index]


def test_a_corpus_is_pickled_without_what_it_has_read(tmp_path):
    """Worker processes receive the pickled corpus, and open the files themselves."""
    corpus = prepare(tmp_path, {**SETS, "test.x": PAIRS[3:5] * 100}, units=SEPARATE_BPE).binary
    ids = corpus.side("test.x", "de")[150].tolist()
    text = corpus.text("de", ids)

    pickled = pickle.dumps(corpus)
    corpus_from_pickle = pickle.loads(pickled)

    assert len(pickled) < 1000  # Bytes; the ids of 200 sentences need more.
    assert corpus_from_pickle.side("test.x", "de")[150].tolist() == ids
    assert corpus_from_pickle.text("de", ids) == text


def test_opening_a_corpus_loads_neither_torch_nor_tokenizers(tmp_path):
    """Loading them takes half a second, in each of the processes that read ids."""
    folder = prepare(tmp_path, SETS).binary.folder
    program = f"""if True:
        import sys
        from pathlib import Path
        from bleuprint.dataset.binarized import BinaryCorpus
        print(len(BinaryCorpus(Path({str(folder)!r})).side("train", "de")))
        print(sorted({{"torch", "sacremoses", "bleuprint.rules"}} & set(sys.modules)))
    """

    command = [sys.executable, "-c", program]
    process = subprocess.run(command, check=True, capture_output=True, text=True)

    sentence_count, loaded_modules = process.stdout.splitlines()
    assert sentence_count == "3"
    assert loaded_modules == "[]"


def test_array_files_are_those_of_numpy_and_aligned_for_memory_mapping(tmp_path):
    """Other programs can then read the arrays by numpy.load.

    numpy.save lets the values begin at a multiple of 64 bytes.
    """
    corpus = prepare(tmp_path, SETS).binary

    for path in corpus.folder.glob("*.npy"):
        values = np.load(path)
        header_bytes = path.stat().st_size - values.nbytes
        assert header_bytes % 64 == 0
        np.save(tmp_path / "by_numpy.npy", values)
        assert path.read_bytes() == (tmp_path / "by_numpy.npy").read_bytes()
    assert corpus.side("train", "de")[0].flags.aligned


@pytest.fixture
def character_corpus(tmp_path):
    """A corpus in lowercased characters, whose first pair has an entity, a ligature and a "▁"."""
    sets = {**SETS, "train": [("Ein&nbsp;Oﬀen", "Ab  ▁c"), *PAIRS]}
    edits = (EDITS["entities"](), EDITS["unicode"](form="NFKC"))
    characters = Tokenize(name="characters", lowercase=True, hyphens=False, escape=False)
    prepare(tmp_path, sets, edits=edits, tokenize=characters)
    return BinaryCorpus(tmp_path / "binary")


@pytest.mark.parametrize(("language", "text"), [("de", "ein offen"), ("en", "ab ▁c")])
def test_ids_are_detokenized_by_the_tokenizer_of_the_corpus(character_corpus, language, text):
    """The sentences were "Ein&nbsp;Oﬀen" (with a ligature) and "Ab  ▁c"."""
    ids = character_corpus.side("train", language)[0]

    assert character_corpus.text(language, ids) == text


def test_no_ids_are_an_empty_text(character_corpus):
    assert character_corpus.text("en", []) == ""


def test_a_corpus_has_the_tokenizer_of_its_text(character_corpus):
    assert character_corpus.tokenizer("de").tokenize("A b") == ["a", "▁", "b"]


def test_escapes_in_tokens_are_undone_in_the_text(tmp_path):
    """With escape: true, Moses replaces characters such as ' and [ by entities in the tokens.

    BLEU compares text, in which the characters must be as in the sentence.
    """
    escaping = Tokenize(name="moses", lowercase=False, hyphens=True, escape=True)
    sets = {**SETS, "train": [("Sie's ein-mal", "it's so-so [!]"), *PAIRS]}
    outputs = prepare(tmp_path, sets, tokenize=escaping)

    ids = outputs.binary.side("train", "en")[0]
    text = outputs.binary.text("en", ids)

    first_pair = next(iter(outputs.text("tokens").pairs("train")))
    assert first_pair.target == "it &apos;s so @-@ so &#91; ! &#93;"
    assert text == "it's so-so [!]"


def test_a_corpus_can_be_moved_to_another_folder(tmp_path):
    """The corpus contains its vocabularies, so that it works without the folder bpe."""
    corpus = prepare(tmp_path, SETS).binary
    text = corpus.text("de", corpus.side("train", "de")[0])
    shutil.rmtree(tmp_path / "bpe")

    moved_folder = corpus.folder.rename(tmp_path / "elsewhere")
    moved_corpus = BinaryCorpus(moved_folder)

    moved_corpus.verify()
    assert moved_corpus.text("de", moved_corpus.side("train", "de")[0]) == text


# Damage


def flip_bit(path, position):
    """Flip a bit of the byte at a position of a file; negative positions count from its end."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_only_the_requested_set_is_verified(tmp_path):
    """Verifying hashes files, which takes seconds for a large training text.

    A bit of the set test.x2 is flipped; its name begins like that of the intact set test.x.
    """
    prepare(tmp_path, {**SETS, "test.x2": PAIRS[3:5]})
    flip_bit(tmp_path / "binary" / "test.x2.de.ids.npy", -1)
    corpus = BinaryCorpus(tmp_path / "binary")

    corpus.verify("test.x")  # Raises no exception.
    with pytest.raises(UserError, match=r"test\.x2\.de\.ids\.npy is damaged"):
        corpus.verify("test.x2")


def test_a_flipped_bit_is_found_in_any_file_at_any_position(tmp_path):
    """Disks and transfers can damage a file; a model must not be trained on it unnoticed.

    `flip_bit` changes a bit of the first, the middle or the last byte of each file.
    """
    folder = prepare(tmp_path, SETS, units=SEPARATE_BPE).binary.folder
    BinaryCorpus(folder).verify()
    paths = [path for path in folder.rglob("*") if path.is_file()]
    arrays_per_set = 4
    segmentation_files = 5
    # The sets, their segmentation, and corpus.json.
    assert len(paths) == len(SETS) * arrays_per_set + segmentation_files + 1

    for path in paths:
        content = path.read_bytes()
        for position in {0, len(content) // 2, len(content) - 1}:
            flip_bit(path, position)
            with pytest.raises(UserError) as error:
                BinaryCorpus(folder).verify()
            # A damaged corpus.json may say anything, for example that it is another version.
            if path.name != "corpus.json":
                assert str(error.value).startswith(f"{path} is damaged: ")
            path.write_bytes(content)
    BinaryCorpus(folder).verify()


@pytest.mark.parametrize("array", ["ids", "ends"])
@pytest.mark.parametrize("damage", ["first byte changed", "last byte missing", "empty file"])
def test_a_damaged_array_is_named_even_if_the_corpus_is_not_verified(tmp_path, array, damage):
    """The array `ids` contains the tokens of all sentences, `ends` where each sentence ends."""
    corpus = prepare(tmp_path, SETS).binary
    path = corpus.folder / f"train.de.{array}.npy"
    content = path.read_bytes()
    damaged_contents = {
        "first byte changed": bytes([content[0] ^ 1]) + content[1:],
        "last byte missing": content[:-1],
        "empty file": b"",
    }
    path.write_bytes(damaged_contents[damage])

    with pytest.raises(UserError) as error:
        corpus.side("train", "de")

    assert str(error.value).startswith(f"{path} is damaged: ")


@pytest.mark.parametrize(
    ("array", "description"),
    [
        pytest.param(np.zeros((3, 2), np.uint16), r"\(3, 2\) uint16", id="matrix"),
        pytest.param(np.zeros(3, np.float32), r"\(3,\) float32", id="floating-point numbers"),
        pytest.param(np.zeros((), np.uint16), r"\(\) uint16", id="single number"),
    ],
)
def test_an_array_of_another_shape_or_type_is_refused(tmp_path, array, description):
    """The file of ids is replaced by another valid NumPy array."""
    corpus = prepare(tmp_path, SETS).binary
    np.save(corpus.folder / "train.de.ids.npy", array)

    message = f"expected a list of ids or lengths, but found {description}"
    with pytest.raises(UserError, match=message):
        corpus.side("train", "de")


def test_a_missing_array_is_named(tmp_path):
    """The array `ends` tells where each sentence of the training text ends."""
    corpus = prepare(tmp_path, SETS).binary
    (corpus.folder / "train.de.ends.npy").unlink()

    with pytest.raises(UserError, match=r"train\.de\.ends\.npy: no such file. Run: make reproduce"):
        corpus.side("train", "de")


def test_a_corpus_in_another_version_of_the_format_is_refused(tmp_path):
    """A later bleuprint may write a format that this one would misread."""
    folder = prepare(tmp_path, SETS).binary.folder
    path = folder / "corpus.json"
    header = json.loads(path.read_text())
    header["version"] = 2
    path.write_text(json.dumps(header))

    with pytest.raises(UserError, match="format has version 2, but this bleuprint reads version 1"):
        BinaryCorpus(folder)


def test_a_missing_corpus_is_named(tmp_path):
    with pytest.raises(UserError, match=r"corpus\.json: no such file. Run: make reproduce"):
        BinaryCorpus(tmp_path)


def test_a_missing_set_is_named_with_the_sets_that_exist(tmp_path):
    corpus = prepare(tmp_path, SETS).binary

    with pytest.raises(UserError, match=r"no set 'test\.z'; there are: train, valid, test\.x"):
        corpus.side("test.z", "de")


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_segmentation_that_was_changed_is_refused(tmp_path, language):
    """Merges in another order split words differently, although the vocabulary is the same.

    The model would then get subwords that it was not trained on. Here, the first merge becomes the
    last.
    """
    folder = prepare(tmp_path, SETS, units=SEPARATE_BPE).binary.folder
    merges = folder / "segmentation" / "codes.de"
    header, first_merge, *other_merges = merges.read_text().splitlines(keepends=True)
    merges.write_text("".join([header, *other_merges, first_merge]))

    with pytest.raises(
        UserError, match=r"codes\.de is damaged: its SHA-256 differs from the one in"
    ):
        BinaryCorpus(folder).segmentation(language)


@pytest.fixture
def hashed_files(monkeypatch):
    """The names of the files that are hashed, in order."""
    names = []

    def record_and_hash(path):
        names.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(binarized, "sha256_of", record_and_hash)
    return names


def test_only_the_files_of_the_requested_set_are_hashed(tmp_path, hashed_files):
    """Verifying compares the SHA-256 of files; `hashed_files` lists those that are hashed."""
    corpus = BinaryCorpus(prepare(tmp_path, SETS, units=SEPARATE_BPE).binary.folder)
    hashed_files.clear()

    corpus.verify("valid")

    assert sorted(hashed_files) == [
        "valid.de.ends.npy",
        "valid.de.ids.npy",
        "valid.en.ends.npy",
        "valid.en.ids.npy",
    ]


def test_each_file_is_hashed_once_although_the_corpus_is_verified_three_times(
    tmp_path, hashed_files
):
    """Verifying compares the SHA-256 of files, which takes seconds for a large corpus.

    `hashed_files` lists the names of the files that are hashed.
    """
    corpus = BinaryCorpus(prepare(tmp_path, SETS, units=SEPARATE_BPE).binary.folder)
    hashed_files.clear()

    corpus.verify("valid")
    corpus.verify()
    corpus.verify()

    assert len(hashed_files) == len(corpus.file_hashes)
    assert len(set(hashed_files)) == len(hashed_files)
