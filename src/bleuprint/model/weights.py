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
from bleuprint.runtime.file_errors import DamagedFile, name_in_errors
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import check_regular_file, sha256_of
from bleuprint.runtime.schema import to_json_value

WEIGHTS = "model.safetensors"


def write_description(folder: Path, model: Model, corpus: BinaryCorpus, fingerprint: str) -> None:
    """Write model.json, which describes the weights in the same folder.

    Args:
        folder: The folder to write into.
        model: The settings of the model's shape.
        corpus: The corpus of the training. The sizes and hashes of its vocabularies are written.
        fingerprint: The fingerprint of the training, which identifies it.
    """
    vocabularies = Vocabularies(
        source=_describe_vocabulary(corpus, corpus.source),
        target=_describe_vocabulary(corpus, corpus.target),
    )
    description = {
        "model": to_json_value(model),
        "vocabularies": dataclasses.asdict(vocabularies),
        "fingerprint": fingerprint,
    }
    write_json(folder / DESCRIPTION, description)


def load_model(folder: Path, corpus: BinaryCorpus) -> Transformer:
    """Load a trained model, for translation, after checking that its files are intact.

    Args:
        folder: A folder with model.safetensors, the weights, and model.json, which describes them.
        corpus: The corpus whose text the model is to translate.

    Returns:
        The model in evaluation mode.

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
    """Read the weights in a file, and check that their names and shapes are as expected.

    Args:
        path: A file in the format safetensors.
        shapes: The shape that each weight must have, by its name.

    Returns:
        The weights, by name.

    Raises:
        UserError: The file is missing or damaged, or has other names or shapes.
    """
    with name_in_errors(path):
        check_regular_file(path)
        tensors = load_file(path)
    found_shapes = {name: [*tensor.shape] for name, tensor in tensors.items()}
    if found_shapes != shapes:
        raise UserError(
            f"{path} contains other weights than {path.with_name(DESCRIPTION)} describes. "
            "Get an intact copy of the folder, or run: make reproduce"
        )
    return tensors


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model by name; tied weights occur once, under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy tensors into the weights of a model.

    Args:
        model: The model, which is changed.
        tensors: A tensor for each name that `named_weights` returns.
    """
    weights = named_weights(model)
    assert weights.keys() == tensors.keys(), "weights do not belong to this model"
    for name, tensor in tensors.items():
        weights[name].copy_(tensor)


def _describe_vocabulary(corpus: BinaryCorpus, language: str) -> VocabularyFile:
    """Return the size of a language's vocabulary, and the SHA-256 of its file."""
    return VocabularyFile(
        size=len(corpus.segmentation(language).vocabulary),
        sha256=sha256_of(_vocabulary_file(corpus, language)),
    )


def _check_vocabularies(folder: Path, vocabularies: Vocabularies, corpus: BinaryCorpus) -> None:
    """Check that a corpus has the vocabularies that a model was trained on.

    Args:
        folder: The folder of the model, for messages.
        vocabularies: The vocabularies that its model.json names.
        corpus: The corpus whose text the model is to translate.

    Raises:
        UserError: The corpus has another vocabulary than the model, or model.json is damaged: the
            vocabulary has the SHA-256 that it records, but not the size.
    """
    sides = [(vocabularies.source, corpus.source), (vocabularies.target, corpus.target)]
    # Compare the hashes of both vocabularies before any size. To know a size, the corpus reads the
    # vocabulary, and would report a changed file itself, without mentioning the model.
    for expected, language in sides:
        path = _vocabulary_file(corpus, language)
        if sha256_of(path) != expected.sha256:
            raise UserError(f"{folder}: the model was trained on another vocabulary than {path}")
    for expected, language in sides:
        if len(corpus.segmentation(language).vocabulary) != expected.size:
            path = _vocabulary_file(corpus, language)
            problem = f"its vocabulary has {expected.size} tokens, unlike {path}"
            raise DamagedFile(folder / DESCRIPTION, problem)


def _vocabulary_file(corpus: BinaryCorpus, language: str) -> Path:
    """Return the path of a language's vocabulary."""
    return corpus.folder / SEGMENTATION / f"vocabulary.{language}"
