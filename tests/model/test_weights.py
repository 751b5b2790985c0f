"""Models as files: described, and refused for another vocabulary."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

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
def binarized_corpus(tmp_path_factory):
    """Binarize a corpus whose vocabularies have different sizes."""
    units = Units(words=Words(joint=False, max_size=100, min_count=1))
    corpus_folder = tmp_path_factory.mktemp("words")
    return prepare(corpus_folder, {"train": PAIRS}, units=units).binary


@dataclass(frozen=True)
class StoredModel:
    """A model that is stored as a training stores it.

    Attributes:
        folder: The model's folder, with weights and description.
        corpus: The corpus to which the model belongs, which a test may change.
        model: The model.
    """

    folder: Path
    corpus: BinaryCorpus
    model: Transformer

    @property
    def weights_file(self):
        """The file of weights, model.safetensors."""
        return self.folder / WEIGHTS

    @property
    def description_file(self):
        """The description of the model."""
        return self.folder / "model.json"

    def vocabulary_file(self, language):
        """Return the corpus's vocabulary of a language."""
        return self.corpus.folder / "segmentation" / f"vocabulary.{language}"

    def tensors(self):
        """Return copies of the model's weights by name."""
        return {name: tensor.numpy().copy() for name, tensor in named_weights(self.model).items()}

    def description(self):
        """Return the content of the description."""
        return json.loads(self.description_file.read_text())

    def describe(self, description):
        """Replace the description."""
        self.description_file.write_text(json.dumps(description))


@pytest.fixture
def stored(tmp_path, binarized_corpus):
    """Store a new model, whose training has the fingerprint `f`."""
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copytree(binarized_corpus.folder, tmp_path / "corpus")
    corpus = BinaryCorpus(tmp_path / "corpus")
    source_size = len(corpus.segmentation("de").vocabulary)
    target_size = len(corpus.segmentation("en").vocabulary)
    assert source_size != target_size
    torch.manual_seed(0)
    stored_model = StoredModel(folder, corpus, Transformer(SHAPE, source_size, target_size))
    save_file(stored_model.tensors(), stored_model.weights_file)
    write_description(folder, SHAPE, corpus, "f")
    return stored_model


def test_a_loaded_model_computes_what_the_stored_one_did(stored):
    """Both give the same logits for a sentence pair, to the last bit."""
    source = torch.tensor([[4, 5, 2]])
    target = torch.tensor([[1, 4]])

    expected_logits = stored.model.eval()(source, target)

    loaded_model = load_model(stored.folder, stored.corpus)

    assert torch.equal(loaded_model(source, target), expected_logits)


@pytest.mark.parametrize(
    "vocabularies",
    [
        pytest.param({}, id="none"),
        pytest.param(
            {"source": {"size": "x", "sha256": "0"}, "target": {}}, id="with a size in letters"
        ),
    ],
)
def test_a_description_with_damaged_vocabularies_is_refused_in_one_line(stored, vocabularies):
    """The description of a stored model, model.json, gets this field `vocabularies`."""
    description = stored.description()
    description["vocabularies"] = vocabularies
    stored.describe(description)

    with pytest.raises(UserError, match=r"^\S+model\.json is damaged: field [^\n]+$"):
        load_model(stored.folder, stored.corpus)


@pytest.mark.parametrize("size_in_bytes", [0, 7, 300])
def test_weights_cut_short_are_refused_in_one_line(stored, size_in_bytes):
    """An interrupted copy leaves only the first bytes: no byte, a part of the header, or more."""
    whole_file = stored.weights_file.read_bytes()
    stored.weights_file.write_bytes(whole_file[:size_in_bytes])

    with pytest.raises(UserError, match=r"^\S+model\.safetensors is damaged: [^\n]+$"):
        load_model(stored.folder, stored.corpus)


def test_weights_with_one_too_many_are_refused(stored):
    """A weight that the described model lacks shows that the file belongs to another model."""
    tensors = stored.tensors()
    tensors["unknown.weight"] = tensors["source_embedding.weight"]
    save_file(tensors, stored.weights_file)

    message = r"contains other weights than \S+model\.json"
    with pytest.raises(UserError, match=message):
        load_model(stored.folder, stored.corpus)


def test_weights_of_another_shape_are_refused(stored):
    """The source embedding has one row less than the vocabulary has tokens."""
    tensors = stored.tensors()
    tensors["source_embedding.weight"] = tensors["source_embedding.weight"][1:].copy()
    save_file(tensors, stored.weights_file)

    message = r"contains other weights than \S+model\.json"
    with pytest.raises(UserError, match=message):
        load_model(stored.folder, stored.corpus)


@pytest.mark.parametrize(("side", "language"), [("source", "de"), ("target", "en")])
def test_a_description_names_the_vocabulary_of_each_side(stored, side, language):
    """A vocabulary file has one token per line."""
    vocabulary = stored.vocabulary_file(language).read_bytes()

    described_vocabulary = stored.description()["vocabularies"][side]

    assert described_vocabulary["size"] == vocabulary.count(b"\n")
    assert described_vocabulary["sha256"] == hashlib.sha256(vocabulary).hexdigest()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_model_is_refused_for_a_vocabulary_in_another_order(stored, language):
    """The last two tokens are exchanged, so each would get the embedding of the other."""
    vocabulary_file = stored.vocabulary_file(language)
    tokens = vocabulary_file.read_text().splitlines()
    tokens[-2:] = [tokens[-1], tokens[-2]]
    vocabulary_file.write_text("\n".join(tokens) + "\n")

    with pytest.raises(UserError, match=rf"another vocabulary than .*vocabulary\.{language}$"):
        load_model(stored.folder, BinaryCorpus(stored.corpus.folder))


@pytest.mark.parametrize(("side", "language"), [("source", "de"), ("target", "en")])
def test_a_description_with_another_size_than_its_vocabulary_is_refused(stored, side, language):
    """The size in model.json is changed to one more than the vocabulary has tokens."""
    description = stored.description()
    wrong_size = description["vocabularies"][side]["size"] + 1
    description["vocabularies"][side]["size"] = wrong_size
    stored.describe(description)

    with pytest.raises(UserError) as error:
        load_model(stored.folder, stored.corpus)

    vocabulary_file = stored.vocabulary_file(language)
    problem = f"its vocabulary has {wrong_size} tokens, unlike {vocabulary_file}"
    expected_message = f"{stored.description_file} is damaged: {problem}. Run: make reproduce"
    assert str(error.value) == expected_message


def test_weights_of_the_described_training_are_loaded(stored):
    save_file(stored.tensors(), stored.weights_file, {"fingerprint": "f"})

    load_model(stored.folder, stored.corpus)


def test_weights_of_another_training_are_refused(stored):
    """The description, model.json, is that of the training with fingerprint f; weights are of g."""
    save_file(stored.tensors(), stored.weights_file, {"fingerprint": "g"})

    with pytest.raises(UserError) as error:
        load_model(stored.folder, stored.corpus)

    expected_message = (
        f"{stored.weights_file} contains weights of another training (g...) than model.json "
        "names (f...)"
    )
    assert str(error.value) == expected_message


def test_weights_with_a_changed_bit_are_refused(stored):
    """The last bit of the weights is flipped, which only their SHA-256 in model.json reveals."""
    content = stored.weights_file.read_bytes()
    weights_sha256 = hashlib.sha256(content).hexdigest()
    stored.describe({**stored.description(), "weights_sha256": weights_sha256})
    load_model(stored.folder, stored.corpus)  # The unchanged weights are loaded.

    changed_last_byte = bytes([content[-1] ^ 1])
    stored.weights_file.write_bytes(content[:-1] + changed_last_byte)

    with pytest.raises(UserError) as error:
        load_model(stored.folder, stored.corpus)

    expected_start = (
        f"{stored.weights_file} is damaged: its SHA-256 differs from the one in model.json. "
    )
    assert str(error.value).startswith(expected_start)
