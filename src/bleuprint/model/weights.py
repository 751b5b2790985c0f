"""A trained model on disk: model.safetensors, and model.json that describes it."""

import dataclasses
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from bleuprint.config.system import Model
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, reading, sha256_of, write_json
from bleuprint.runtime.schema import build

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


def write_description(folder: Path, model: Model, corpus: BinaryCorpus, fingerprint: str) -> None:
    """Write model.json: model settings, vocabularies, the training's fingerprint."""
    vocabularies = {
        side: {
            "size": len(corpus.segmentation(language).vocabulary),
            "sha256": sha256_of(_vocabulary_file(corpus, language)),
        }
        for side, language in (("source", corpus.source), ("target", corpus.target))
    }
    settings = dataclasses.asdict(model)
    description = {"model": settings, "vocabularies": vocabularies, "fingerprint": fingerprint}
    write_json(folder / DESCRIPTION, description)


def training_fingerprint(folder: Path) -> str:
    """The fingerprint of the training that made the model in `folder`."""
    return str(read_object(folder / DESCRIPTION, ("fingerprint",))["fingerprint"])


def load_model(folder: Path, corpus: BinaryCorpus) -> Transformer:
    """Load the model in `folder`, in evaluation mode.

    Raises UserError if a file is missing or damaged, if a weight is not finite, or if the model was
    trained on other vocabularies than those of `corpus`.
    """
    path, weights_path = folder / DESCRIPTION, folder / WEIGHTS
    try:
        description = read_object(path, ("model", "vocabularies", "fingerprint", "averaged"))
        tensors = load_file(weights_path)
        with safe_open(weights_path, "pt") as file:
            fingerprint = (file.metadata() or {}).get("fingerprint")
    except FileNotFoundError as error:
        raise UserError(f"{error.filename or folder}: no such file") from None
    except SafetensorError as error:
        raise UserError(f"{weights_path}: damaged: {error}") from None
    with reading(path):
        averaged = description["averaged"]["sha256"]
        vocabularies = [description["vocabularies"][side] for side in ("source", "target")]
        sizes, hashes = zip(
            *((int(v["size"]), str(v["sha256"])) for v in vocabularies), strict=True
        )
    if sha256_of(weights_path) != averaged:
        raise UserError(
            f"{weights_path}: is not the average that {path} describes; run the stage average "
            "again: dvc repro --force --single-item average@SYSTEM-CORPUS-SEED"
        )
    if fingerprint != description["fingerprint"]:
        raise UserError(f"{weights_path}: belongs to another training than {path}")
    for expected, language in zip(hashes, (corpus.source, corpus.target), strict=True):
        vocabulary = _vocabulary_file(corpus, language)
        if sha256_of(vocabulary) != expected:
            raise UserError(f"{folder}: trained on another vocabulary than {vocabulary}")
    settings = build(Model, description["model"], path)
    model = Transformer(settings, *sizes)
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise UserError(f"{weights_path}: {name} is not finite: the training has diverged")
    try:
        load_weights(model, tensors)
    except ValueError as error:
        raise UserError(f"{weights_path}: {error}") from None
    return model.eval()


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights by name; a shared one once, under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `tensors` into the model; raises ValueError if names or shapes differ."""
    check_weights(model, tensors)
    weights = named_weights(model)
    for name, tensor in tensors.items():
        weights[name].copy_(tensor)


def check_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Raise ValueError if names or shapes of `tensors` are not those of the model."""
    weights = named_weights(model)
    if weights.keys() != tensors.keys():
        odd = sorted(weights.keys() ^ tensors.keys())
        raise ValueError(f"weights do not belong to this model: {', '.join(odd[:3])}")
    for name, tensor in tensors.items():
        if weights[name].shape != tensor.shape:
            shapes = f"{tuple(tensor.shape)} instead of {tuple(weights[name].shape)}"
            raise ValueError(f"weights do not belong to this model: {name} is {shapes}")


def _vocabulary_file(corpus: BinaryCorpus, language: str) -> Path:
    return corpus.folder / SEGMENTATION / f"vocabulary.{language}"
