"""Models as files: complete, described, and refused for another training or vocabulary."""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

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
def words(tmp_path_factory: pytest.TempPathFactory) -> BinaryCorpus:
    """A corpus with vocabularies of different sizes."""
    units = Units(words=Words(joint=False, max_size=100, min_count=1))
    return prepare(tmp_path_factory.mktemp("words"), {"train": PAIRS}, units=units).binary


def model_folder(root: Path, words: BinaryCorpus) -> tuple[Path, BinaryCorpus, Transformer]:
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
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "f"})
    write_description(folder, SHAPE, corpus, "f")
    describe_average(folder)
    return folder, corpus, model


def describe_average(folder: Path) -> None:
    """Record in model.json that the weights are an average, with their hash."""
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    description = json.loads((folder / "model.json").read_text())
    description["averaged"] = {"updates": [10, 20], "sha256": digest}
    (folder / "model.json").write_text(json.dumps(description))


def test_a_model_reads_back_as_it_was(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, model = model_folder(tmp_path, words)
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4]])
    assert torch.equal(load_model(folder, corpus)(source, target), model.eval()(source, target))


def test_weights_in_place_of_an_average_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    older = {name: tensor * 2 for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(older, folder / WEIGHTS, {"fingerprint": "f"})
    with pytest.raises(UserError, match=r"model\.safetensors: is not the average that .*json desc"):
        load_model(folder, corpus)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("averaged", {"x": 1}),
        ("averaged", [1]),
        ("vocabularies", {}),
        ("vocabularies", {"source": {"size": "x", "sha256": "0"}, "target": {}}),
    ],
)
def test_a_damaged_description_is_one_clear_line(
    tmp_path: Path, words: BinaryCorpus, key: str, value: Any
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**description, key: value}))
    with pytest.raises(UserError, match=r"^\S+model\.json: damaged: [^\n]+$"):
        load_model(folder, corpus)


def test_a_model_is_described_by_both_vocabularies(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    described = json.loads((folder / "model.json").read_text())["vocabularies"]
    for side, language in (("source", "de"), ("target", "en")):
        file = (corpus.folder / "segmentation" / f"vocabulary.{language}").read_bytes()
        assert described[side]["size"] == file.count(b"\n")
        assert described[side]["sha256"] == hashlib.sha256(file).hexdigest()


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_model_of_another_vocabulary_is_refused(
    tmp_path: Path, words: BinaryCorpus, language: str
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    path = corpus.folder / "segmentation" / f"vocabulary.{language}"
    *known, one, other, end = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*known, other, one, end]))
    with pytest.raises(UserError, match=rf"another vocabulary than .*vocabulary\.{language}$"):
        load_model(folder, BinaryCorpus(corpus.folder))


def test_weights_of_another_shape_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    other = dataclasses.replace(SHAPE, d_ff=10)
    write_description(folder, other, corpus, "f")
    describe_average(folder)
    with pytest.raises(UserError, match=r"fc1\.bias is \(8,\) instead of \(10,\)"):
        load_model(folder, corpus)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    tensors = load_file(folder / WEIGHTS)
    tensors["encoder.0.self_attention_residual.norm.bias"][0] = np.nan
    save_file(tensors, folder / WEIGHTS, {"fingerprint": "f"})
    describe_average(folder)
    with pytest.raises(UserError, match=r"self_attention_residual\.norm\.bias is not finite"):
        load_model(folder, corpus)


@pytest.mark.parametrize("mark", [{"fingerprint": "g"}, {"by": "another"}, None])
def test_weights_of_another_training_are_refused(
    tmp_path: Path, words: BinaryCorpus, mark: dict[str, str] | None
) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, mark)
    describe_average(folder)
    with pytest.raises(
        UserError, match=r"model\.safetensors: belongs to another training than .*json"
    ):
        load_model(folder, corpus)
