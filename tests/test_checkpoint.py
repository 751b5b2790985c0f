"""Checkpoints and models as files: whole, checked, and refused where they do not belong."""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from bleuprint import checkpoint
from bleuprint.average import average, mean
from bleuprint.binary import BinaryCorpus
from bleuprint.errors import UserError
from bleuprint.model import Transformer
from bleuprint.modelfile import WEIGHTS, describe, load_model, write_description
from bleuprint.settings import Average, Model, Units, Words
from corpora import PAIRS
from prepared import prepare

SHAPE = Model(1, 1, 8, 8, 2, 0.0, "post", "decoder")


def save(folder: Path, update: int, value: float = 0.0) -> Path:
    tensors = {"a": torch.full((2, 3), value)}
    return checkpoint.save(folder, update, tensors, {"step": torch.tensor(1.0)}, {"loss": 0.1})


def updates(folder: Path) -> list[int]:
    return [checkpoint.update_of(path) for path in sorted(folder.glob("checkpoint-*"))]


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    save(tmp_path, 3, 1.5)
    save(tmp_path, 12, 2.5)
    found = checkpoint.latest(tmp_path)
    assert found is not None
    assert (found.update, found.state["loss"]) == (12, 0.1)
    assert found.model["a"].tolist() == [[2.5] * 3] * 2


def test_the_newest_regular_ones_are_kept_and_the_very_last(tmp_path: Path) -> None:
    for update in (10, 20, 25, 30, 37):
        save(tmp_path, update)
    checkpoint.prune(tmp_path, keep=2, every=10)
    assert updates(tmp_path) == [20, 30, 37]


@pytest.mark.parametrize("name", [checkpoint.MODEL, checkpoint.OPTIMIZER, checkpoint.STATE])
def test_damaged_ones_go_and_whole_ones_stay(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, 1)
    path = save(tmp_path, 2) / name
    path.write_bytes(path.read_bytes()[:-9])
    checkpoint.drop_damaged(tmp_path)
    assert updates(tmp_path) == [1]
    assert "checkpoint-0000002 is damaged" in capsys.readouterr().err


def test_a_newer_format_is_refused_and_not_removed(tmp_path: Path) -> None:
    path = save(tmp_path, 1) / checkpoint.STATE
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(UserError, match="format 99; this version reads 1"):
        checkpoint.drop_damaged(tmp_path)
    assert updates(tmp_path) == [1]


def test_the_average_is_the_mean_in_float64(tmp_path: Path) -> None:
    # 1 is lost beside 2^24 in float32: a sum kept in float32 would give another mean
    values = [2.0**24, 1.0, 1.0]
    for number, value in enumerate(values):
        save_file({"a": np.array([value], np.float32)}, tmp_path / f"{number}.safetensors")
    paths = sorted(tmp_path.glob("*.safetensors"))
    assert mean(paths)["a"].tolist() == [np.float32((2.0**24 + 2) / 3)]


def test_the_last_ones_are_averaged(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "model.json").write_text("{}")
    for update in (8, 9, 10):
        save_file(
            {"a": np.array([float(update)], np.float32)}, folder / f"{update:07d}.safetensors"
        )
    average(folder, Average(last=2), tmp_path / "averaged")
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [9.5]
    with pytest.raises(UserError, match=r"3 checkpoints, average\.last is 4"):
        average(folder, Average(last=4), tmp_path / "averaged")


def test_other_shapes_are_not_averaged(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "1.safetensors")
    save_file({"a": np.zeros(1, np.float32)}, tmp_path / "2.safetensors")
    with pytest.raises(UserError, match="cannot be averaged"):
        mean(sorted(tmp_path.glob("*.safetensors")))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> BinaryCorpus:
    """A corpus with vocabularies of different sizes."""
    units = Units(words=Words(joint=False, max_size=100, min_count=1))
    return prepare(tmp_path_factory.mktemp("words"), {"train.a": PAIRS}, units=units).binary


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
    tensors = {name: tensor.numpy().copy() for name, tensor in checkpoint.weights(model).items()}
    save_file(tensors, folder / WEIGHTS)
    write_description(folder, describe(SHAPE, corpus, "f"))
    return folder, corpus, model


def test_a_model_reads_back_as_it_was(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, model = model_folder(tmp_path, words)
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4]])
    assert torch.equal(load_model(folder, corpus)(source, target), model.eval()(source, target))


def test_a_model_is_described_by_both_vocabularies(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    described = json.loads((folder / "model.json").read_text())["vocabularies"]
    for side, language in (("source", "de"), ("target", "en")):
        file = (corpus.folder / "segmentation" / f"vocabulary.{language}").read_bytes()
        assert described[side]["units"] == file.count(b"\n")
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
    write_description(folder, describe(other, corpus, "f"))
    with pytest.raises(UserError, match=r"inner\.bias is \(8,\) instead of \(10,\)"):
        load_model(folder, corpus)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, words: BinaryCorpus) -> None:
    folder, corpus, _ = model_folder(tmp_path, words)
    tensors = load_file(folder / WEIGHTS)
    tensors["encoder.0.first.norm.bias"][0] = np.nan
    save_file(tensors, folder / WEIGHTS)
    with pytest.raises(UserError, match=r"encoder\.0\.first\.norm\.bias is not finite"):
        load_model(folder, corpus)
