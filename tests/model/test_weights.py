"""Models as files: described, and refused for another vocabulary."""

import hashlib
import json
import shutil

import pytest
import torch
from safetensors.numpy import save_file

import systems
from bleuprint.config.corpus import Units, Words
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import WEIGHTS, load_model, named_weights, write_description
from bleuprint.runtime.errors import UserError
from corpora import PAIRS
from prepared import prepare

SHAPE = systems.model(d_model=8, d_ff=8, heads=2, d_k=4, d_v=4, tie_embeddings="decoder")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A corpus with vocabularies of different sizes."""
    units = Units(words=Words(joint=False, max_size=100, min_count=1))
    return prepare(tmp_path_factory.mktemp("words"), {"train": PAIRS}, units=units).binary


def model_folder(root, words):
    """A model's folder, the corpus it belongs to, and the model itself."""
    folder = root / "model"
    folder.mkdir()
    shutil.copytree(words.folder, root / "corpus")
    corpus = BinaryCorpus(root / "corpus")
    source, target = (len(corpus.segmentation(side).vocabulary) for side in ("de", "en"))
    assert source != target
    torch.manual_seed(0)
    model = Transformer(SHAPE, source, target)
    tensors = {name: tensor.numpy().copy() for name, tensor in named_weights(model).items()}
    save_file(tensors, folder / WEIGHTS)
    write_description(folder, SHAPE, corpus, "f")
    return folder, corpus, model


def test_a_model_reads_back_as_it_was(tmp_path, words):
    folder, corpus, model = model_folder(tmp_path, words)
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4]])
    assert torch.equal(load_model(folder, corpus)(source, target), model.eval()(source, target))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocabularies", {}),
        ("vocabularies", {"source": {"size": "x", "sha256": "0"}, "target": {}}),
    ],
)
def test_a_damaged_description_is_one_clear_line(tmp_path, words, key, value):
    folder, corpus, _ = model_folder(tmp_path, words)
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**description, key: value}))
    with pytest.raises(UserError, match=r"^\S+model\.json is damaged: field [^\n]+$"):
        load_model(folder, corpus)


@pytest.mark.parametrize("size", [0, 7, 300])
def test_weights_cut_short_are_one_clear_line(tmp_path, words, size):
    folder, corpus, _ = model_folder(tmp_path, words)
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"^\S+model\.safetensors is damaged: [^\n]+$"):
        load_model(folder, corpus)


def test_weights_of_another_model_are_refused(tmp_path, words):
    folder, corpus, model = model_folder(tmp_path, words)
    tensors = {name: tensor.numpy().copy() for name, tensor in named_weights(model).items()}
    for foreign in ({**tensors, "more": tensors["source_embedding.weight"]}, {**tensors}):
        if "more" not in foreign:
            foreign["source_embedding.weight"] = foreign["source_embedding.weight"][1:].copy()
        save_file(foreign, folder / WEIGHTS)
        with pytest.raises(
            UserError, match=r"not contain the weights of the model that \S+model\.json"
        ):
            load_model(folder, corpus)


def test_a_model_is_described_by_both_vocabularies(tmp_path, words):
    folder, corpus, _ = model_folder(tmp_path, words)
    described = json.loads((folder / "model.json").read_text())["vocabularies"]
    for side, language in (("source", "de"), ("target", "en")):
        file = (corpus.folder / "segmentation" / f"vocabulary.{language}").read_bytes()
        assert described[side]["size"] == file.count(b"\n")
        assert described[side]["sha256"] == hashlib.sha256(file).hexdigest()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_model_of_another_vocabulary_is_refused(tmp_path, words, language):
    folder, corpus, _ = model_folder(tmp_path, words)
    path = corpus.folder / "segmentation" / f"vocabulary.{language}"
    *known, one, other, end = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*known, other, one, end]))
    with pytest.raises(UserError, match=rf"another vocabulary than .*vocabulary\.{language}$"):
        load_model(folder, BinaryCorpus(corpus.folder))


@pytest.mark.parametrize(("side", "language"), [("source", "de"), ("target", "en")])
def test_a_description_with_another_size_than_its_vocabulary_is_refused(
    tmp_path, words, side, language
):
    folder, corpus, _ = model_folder(tmp_path, words)
    path = folder / "model.json"
    description = json.loads(path.read_text())
    size = description["vocabularies"][side]["size"] + 1
    description["vocabularies"][side]["size"] = size
    path.write_text(json.dumps(description))
    with pytest.raises(UserError) as raised:
        load_model(folder, corpus)
    vocabulary = corpus.folder / "segmentation" / f"vocabulary.{language}"
    problem = f"its vocabulary has {size} tokens, unlike {vocabulary}"
    assert str(raised.value) == f"{path} is damaged: {problem}; run: make reproduce"


def test_weights_of_another_training_are_refused(tmp_path, words):
    """The description that stands beside them is of the training `f`."""
    folder, corpus, model = model_folder(tmp_path, words)
    tensors = {name: tensor.numpy().copy() for name, tensor in named_weights(model).items()}
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "f"})
    load_model(folder, corpus)
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "g"})
    with pytest.raises(UserError) as raised:
        load_model(folder, corpus)
    assert str(raised.value) == (
        f"{folder / WEIGHTS} contains weights of another training (g...) than model.json names "
        "(f...)"
    )


def test_weights_of_which_a_bit_differs_are_refused(tmp_path, words):
    """The names, shapes and training in their header are those that are described."""
    folder, corpus, _ = model_folder(tmp_path, words)
    weights = folder / WEIGHTS
    whole = weights.read_bytes()
    description = json.loads((folder / "model.json").read_text())
    description["weights_sha256"] = hashlib.sha256(whole).hexdigest()
    (folder / "model.json").write_text(json.dumps(description))
    load_model(folder, corpus)
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UserError) as raised:
        load_model(folder, corpus)
    assert str(raised.value).startswith(
        f"{weights} is damaged: its SHA-256 is not the one in model.json; "
    )
