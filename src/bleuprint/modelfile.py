"""A trained model as files: weights as safetensors, beside JSON that says what they are."""

import dataclasses
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from bleuprint import settings
from bleuprint.binary import VOCABULARY
from bleuprint.checkpoint import load_weights
from bleuprint.errors import UserError
from bleuprint.files import read_json, sha256_of, write_json
from bleuprint.model import Transformer
from bleuprint.schema import build

WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"


def describe(model: settings.Model, vocabulary: Path, fingerprint: str) -> dict[str, Any]:
    """What model.json holds: the shape, and the vocabulary the weights belong to."""
    return {
        "model": dataclasses.asdict(model),
        "vocabulary": {
            "units": sum(1 for _ in vocabulary.open("rb")),
            "sha256": sha256_of(vocabulary),
        },
        "fingerprint": fingerprint,
    }


def write_description(folder: Path, description: dict[str, Any]) -> None:
    write_json(folder / DESCRIPTION, description)


def load_model(folder: Path, corpus: Path) -> Transformer:
    """The model in `folder`, which must have been trained on the vocabulary of `corpus`."""
    path = folder / DESCRIPTION
    try:
        description = read_json(path)
        tensors = load_file(folder / WEIGHTS)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename or folder}: no such file") from None
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS}: damaged: {error}") from None
    vocabulary = corpus / VOCABULARY
    if sha256_of(vocabulary) != description["vocabulary"]["sha256"]:
        raise UserError(f"{folder}: trained on another vocabulary than {vocabulary}")
    shape = build(settings.Model, description["model"], path)
    model = Transformer(shape, description["vocabulary"]["units"])
    if bad := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise UserError(f"{folder / WEIGHTS}: {bad[0]} is not finite: the training has diverged")
    try:
        load_weights(model, tensors)
    except ValueError as error:
        raise UserError(f"{folder / WEIGHTS}: {error}") from None
    return model.eval()
