"""A trained model as files: weights as safetensors, beside JSON that says what they are."""

import dataclasses
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from bleuprint.config.system import Model
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, write_json
from bleuprint.runtime.schema import build

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


def describe(model: Model, corpus: BinaryCorpus, fingerprint: str) -> dict[str, Any]:
    """What model.json holds: the shape, and the vocabularies the weights belong to."""
    vocabularies = {
        side: {
            "units": len(corpus.segmentation(language).vocabulary),
            "sha256": sha256_of(_vocabulary(corpus, language)),
        }
        for side, language in (("source", corpus.source), ("target", corpus.target))
    }
    return {
        "model": dataclasses.asdict(model),
        "vocabularies": vocabularies,
        "fingerprint": fingerprint,
    }


def write_description(folder: Path, description: dict[str, Any]) -> None:
    write_json(folder / DESCRIPTION, description)


def training_of(folder: Path) -> str:
    """The fingerprint of the training that the model in `folder` is of."""
    return str(read_object(folder / DESCRIPTION, ("fingerprint",))["fingerprint"])


def load_model(folder: Path, corpus: BinaryCorpus, weights: str = WEIGHTS) -> Transformer:
    """The model in `folder`, which must have been trained on the vocabularies of `corpus`.

    `weights`: the name of their file.
    """
    path = folder / DESCRIPTION
    try:
        description = read_object(path, ("model", "vocabularies", "fingerprint"))
        tensors = load_file(folder / weights)
        with safe_open(folder / weights, "pt") as file:
            mark = (file.metadata() or {}).get("fingerprint")
    except FileNotFoundError as error:
        raise UserError(f"{error.filename or folder}: no such file") from None
    except SafetensorError as error:
        raise UserError(f"{folder / weights}: damaged: {error}") from None
    if mark != description["fingerprint"]:
        raise UserError(f"{folder / weights}: of another training than {path} describes")
    source, target = description["vocabularies"]["source"], description["vocabularies"]["target"]
    for known, language in ((source, corpus.source), (target, corpus.target)):
        vocabulary = _vocabulary(corpus, language)
        if sha256_of(vocabulary) != known["sha256"]:
            raise UserError(f"{folder}: trained on another vocabulary than {vocabulary}")
    shape = build(Model, description["model"], path)
    model = Transformer(shape, source["units"], target["units"])
    if bad := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise UserError(f"{folder / weights}: {bad[0]} is not finite: the training has diverged")
    try:
        load_weights(model, tensors)
    except ValueError as error:
        raise UserError(f"{folder / weights}: {error}") from None
    return model.eval()


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The named weights, shared ones once (under their first name)."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `tensors` into the model; raises ValueError if names or shapes differ."""
    own = weights(model)
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())
        raise ValueError(f"weights do not belong to this model: {', '.join(odd[:3])}")
    for name, tensor in tensors.items():
        if own[name].shape != tensor.shape:
            shapes = f"{tuple(tensor.shape)} instead of {tuple(own[name].shape)}"
            raise ValueError(f"weights do not belong to this model: {name} is {shapes}")
        own[name].copy_(tensor)


def _vocabulary(corpus: BinaryCorpus, language: str) -> Path:
    return corpus.folder / SEGMENTATION / f"vocabulary.{language}"
