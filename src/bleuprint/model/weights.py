"""A trained model on disk: model.safetensors, and model.json that describes it."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor, nn

from bleuprint.config.system import Model
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.model.description import DESCRIPTION, ModelDescription, Vocabularies, VocabularyFile
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
    """Write model.json: the model's settings, its vocabularies, the training's fingerprint."""
    vocabularies = Vocabularies(
        source=_describe_vocabulary(corpus, corpus.source),
        target=_describe_vocabulary(corpus, corpus.target),
    )
    description = {
        "model": dataclasses.asdict(model),
        "vocabularies": dataclasses.asdict(vocabularies),
        "fingerprint": fingerprint,
    }
    write_json(folder / DESCRIPTION, description)


def load_model(folder: Path, corpus: BinaryCorpus) -> Transformer:
    """Load the model in a folder, in evaluation mode.

    Args:
        folder: A folder with model.json and model.safetensors.
        corpus: The corpus whose text the model is to translate.

    Raises:
        UserError: A file is missing or damaged, or the corpus has other vocabularies than the model
            was trained on.
    """
    description = ModelDescription.read(folder)
    _check_vocabularies(folder, description.vocabularies, corpus)
    source_size = description.vocabularies.source.size
    target_size = description.vocabularies.target.size
    model = Transformer(description.model, source_size, target_size)
    shapes = {name: [*weight.shape] for name, weight in named_weights(model).items()}
    load_weights(model, read_weights(folder / WEIGHTS, shapes))
    check_origin(folder / WEIGHTS, description.fingerprint, DESCRIPTION)
    check_bytes(folder / WEIGHTS, description.weights_sha256)
    return model.eval()


def read_weights(path: Path, shapes: Mapping[str, list[int]]) -> dict[str, Tensor]:
    """Return the tensors in a file by name.

    Args:
        path: A safetensors file.
        shapes: The name and the shape that each weight must have.

    Raises:
        UserError: The file is missing or damaged, or has other names or shapes.
    """
    with name_in_errors(path):
        check_regular_file(path)
        tensors = load_file(path)
    found_shapes = {name: [*tensor.shape] for name, tensor in tensors.items()}
    if found_shapes != shapes:
        raise UserError(
            f"{path}: not the weights of the model that {path.with_name(DESCRIPTION)} describes"
        )
    return tensors


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name; a shared one once, under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into a model, by the names of `named_weights`, all of which they must have."""
    weights = named_weights(model)
    assert weights.keys() == tensors.keys(), "weights do not belong to this model"
    for name, tensor in tensors.items():
        weights[name].copy_(tensor)


def _describe_vocabulary(corpus: BinaryCorpus, language: str) -> VocabularyFile:
    """Return the size and the SHA-256 of a language's vocabulary."""
    return VocabularyFile(
        size=len(corpus.segmentation(language).vocabulary),
        sha256=sha256_of(_vocabulary_file(corpus, language)),
    )


def _check_vocabularies(folder: Path, vocabularies: Vocabularies, corpus: BinaryCorpus) -> None:
    """Check that a corpus has the vocabularies that the model in a folder was trained on.

    Raises:
        UserError: A vocabulary is another one, or model.json contradicts itself.
    """
    sides = [(vocabularies.source, corpus.source), (vocabularies.target, corpus.target)]
    # Both files before any size: reading a vocabulary makes the corpus check all its files, whose
    # message would be about them.
    for expected, language in sides:
        path = _vocabulary_file(corpus, language)
        if sha256_of(path) != expected.sha256:
            raise UserError(f"{folder}: trained on another vocabulary than {path}")
    for expected, language in sides:
        if len(corpus.segmentation(language).vocabulary) != expected.size:
            path = _vocabulary_file(corpus, language)
            problem = f"its vocabulary has {expected.size} tokens, unlike {path}"
            raise DamagedFile(folder / DESCRIPTION, problem)


def _vocabulary_file(corpus: BinaryCorpus, language: str) -> Path:
    """Return the path of a language's vocabulary."""
    return corpus.folder / SEGMENTATION / f"vocabulary.{language}"
