"""A trained model on disk: model.safetensors, and model.json that describes it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor, nn

from bleuprint.config.system import Model
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.model.description import DESCRIPTION, ModelDescription
from bleuprint.model.origin import check_bytes, check_origin
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import (
    DamagedFile,
    check_regular_file,
    name_in_errors,
    sha256_of,
    write_json,
)

WEIGHTS = "model.safetensors"


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


def load_model(folder: Path, corpus: BinaryCorpus) -> Transformer:
    """Load the model in `folder`, in evaluation mode.

    Raises UserError if model.json or the weights are damaged, or if the model was trained on other
    vocabularies than those of `corpus`.
    """
    description = ModelDescription.read(folder)
    source, target = description.vocabularies.source, description.vocabularies.target
    sides = ((source, corpus.source), (target, corpus.target))
    for expected, language in sides:  # both before the corpus checks all its files
        vocabulary = _vocabulary_file(corpus, language)
        if sha256_of(vocabulary) != expected.sha256:
            raise UserError(f"{folder}: trained on another vocabulary than {vocabulary}")
    for expected, language in sides:
        if len(corpus.segmentation(language).vocabulary) != expected.size:
            vocabulary = _vocabulary_file(corpus, language)
            problem = f"its vocabulary of {expected.size} tokens is not that of {vocabulary}"
            raise DamagedFile(folder / DESCRIPTION, problem)
    model = Transformer(description.model, source.size, target.size)
    shapes = {name: [*tensor.shape] for name, tensor in named_weights(model).items()}
    load_weights(model, read_weights(folder / WEIGHTS, shapes))
    check_origin(folder / WEIGHTS, description.fingerprint, DESCRIPTION)
    check_bytes(folder / WEIGHTS, description.weights_sha256)
    return model.eval()


def read_weights(path: Path, shapes: Mapping[str, list[int]]) -> dict[str, Tensor]:
    """The tensors in a file; raises UserError if it is damaged, or names and shapes are others."""
    with name_in_errors(path):
        check_regular_file(path)
        tensors = load_file(path)
    if shapes != {name: [*tensor.shape] for name, tensor in tensors.items()}:
        raise UserError(
            f"{path}: not the weights of the model that {path.with_name(DESCRIPTION)} describes"
        )
    return tensors


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights by name; a shared one once, under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy the tensors, which are all weights by name, into the model."""
    weights = named_weights(model)
    assert weights.keys() == tensors.keys(), "weights do not belong to this model"
    for name, tensor in tensors.items():
        weights[name].copy_(tensor)


def _vocabulary_file(corpus: BinaryCorpus, language: str) -> Path:
    return corpus.folder / SEGMENTATION / f"vocabulary.{language}"
