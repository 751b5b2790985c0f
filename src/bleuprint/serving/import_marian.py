"""Imports a pretrained Marian model of Hugging Face, such as OPUS-MT, as a model of ours."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from bleuprint.config.system import Model
from bleuprint.dataset.marian_vocabulary import (
    SOURCE_VOCABULARY,
    TARGET_VOCABULARY,
    MarianVocabulary,
    copy_segmentation,
    has_separate_vocabularies,
)
from bleuprint.dataset.subwords.segmentation import read_segmentation_file
from bleuprint.model.description import (
    DESCRIPTION,
    ModelDescription,
    Vocabularies,
    VocabularyFile,
)
from bleuprint.model.marian_config import CONFIG, MarianConfig
from bleuprint.model.marian_weights import find_weights, model_of_marian
from bleuprint.model.weights import WEIGHTS, named_weights
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import to_json_value

# The tag of a target language, such as >>fra<<, as OPUS-MT writes it before a source sentence.
_LANGUAGE_TAG = re.compile(r">>[\w-]+<<")
# How many tags a message quotes.
_QUOTED_TAGS = 3


def import_marian(folder: Path, output: Path) -> Model:
    """Write a Marian model as a model of ours, with its vocabularies.

    Writes model.safetensors, model.json, segmentation.json, and vocabulary.SIDE and
    sentencepiece.SIDE for source and target.

    Args:
        folder: The folder of the Marian model, in the format of Hugging Face.
        output: The folder to write, which must not exist.

    Returns:
        The settings of the model's shape.

    Raises:
        UserError: `output` exists, or `folder` contains no complete Marian model.
    """
    if output.exists():
        raise UserError(f"{output} exists already. Name another folder")
    with atomic_folder(output) as partial:
        return convert_marian(folder, partial)


def convert_marian(folder: Path, output: Path) -> Model:
    """Write a Marian model as a model of ours into an empty folder; see `import_marian`.

    Args:
        folder: The folder of the Marian model, in the format of Hugging Face.
        output: The empty folder.

    Returns:
        The settings of the model's shape.

    Raises:
        UserError: `folder` contains no complete Marian model.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder. Name the folder of a Marian model")
    config = MarianConfig.read(folder)
    source = MarianVocabulary.read(folder / SOURCE_VOCABULARY, config.vocab_size)
    target = source
    if has_separate_vocabularies(folder):
        target = MarianVocabulary.read(folder / TARGET_VOCABULARY, config.target_size)
    _check_special_ids(config, target, folder)
    _check_one_target_language(source, folder)
    weights_path = find_weights(folder)
    model = model_of_marian(config, weights_path, (source.marian_ids, target.marian_ids))
    vocabularies = {"source": source.vocabulary, "target": target.vocabulary}
    copy_segmentation(folder, vocabularies, output)
    save_file(named_weights(model), output / WEIGHTS)
    description = ModelDescription(
        model=model.settings,
        vocabularies=Vocabularies(
            source=_describe_vocabulary(output, "source", len(source.vocabulary)),
            target=_describe_vocabulary(output, "target", len(target.vocabulary)),
        ),
        weights_sha256=sha256_of(output / WEIGHTS),
    )
    write_json(output / DESCRIPTION, dataclasses.asdict(description))
    return model.settings


def _check_special_ids(config: MarianConfig, target: MarianVocabulary, folder: Path) -> None:
    """Check that config.json and the target vocabulary agree on the ids of special tokens.

    Args:
        config: The content of config.json.
        target: The target vocabulary.
        folder: The folder of the Marian model, for messages.

    Raises:
        UserError: They do not agree.
    """
    for name, token, vocabulary_id in (
        ("pad_token_id", "<pad>", target.pad_id),
        ("eos_token_id", "</s>", target.eos_id),
    ):
        config_id = getattr(config, name)
        if config_id != vocabulary_id:
            raise UserError(
                f"{folder / CONFIG}: {name} is {config_id}, but {token} has the id {vocabulary_id} "
                "in the target vocabulary. Get both files from the same model"
            )


def _check_one_target_language(source: MarianVocabulary, folder: Path) -> None:
    """Check that the sentences of a model do not begin with the tag of their target language.

    Args:
        source: The source vocabulary, which contains the tags of a model with several targets.
        folder: The folder of the Marian model, for messages.

    Raises:
        UserError: The model has several target languages.
    """
    tags = [token for token in source.vocabulary.tokens if _LANGUAGE_TAG.fullmatch(token)]
    if len(tags) > 1:
        examples = ", ".join(tags[:_QUOTED_TAGS])
        raise UserError(
            f"{folder / SOURCE_VOCABULARY}: the model has {len(tags)} target languages, with tags "
            f"such as {examples}. Only models of one language pair can be imported. Choose one, "
            "such as Helsinki-NLP/opus-mt-en-fr"
        )


def _describe_vocabulary(folder: Path, side: str, size: int) -> VocabularyFile:
    """Return the size and the SHA-256 of a vocabulary.

    Args:
        folder: The folder with the file of the vocabulary.
        side: `source` or `target`.
        size: The number of its tokens.
    """
    return VocabularyFile(size=size, sha256=sha256_of(folder / f"vocabulary.{side}"))


def describe_use(folder: Path, model: Model) -> str:
    """Return the settings with which a system starts from an imported model, as lines of text.

    Args:
        folder: The folder of the imported model.
        model: The settings of its shape.
    """
    is_joint = read_segmentation_file(folder)["joint"]
    joint = "" if is_joint else ", joint: false"
    settings = describe_shape(model)
    return f"""{folder}: written. To start from it, write in params.yaml:
  in a corpus: tokenize: {{name: none}}
               vocabulary: {{sentencepiece: {{folder: {folder}{joint}}}}}
  in a system: model: {settings}
               train: {{init_from: {{folder: {folder}}}}}
To use it as it is, without training, set for the system, too:
  train: {{max_updates: 1, validate_interval: 1, save_interval: 1,
          lr_schedule: {{inverse_sqrt: null, noam: null, constant: {{lr: 0}}}}}}
  average: {{last: 1}}"""


def describe_shape(model: Model) -> str:
    """Return the settings of a model's shape that differ from their defaults, as YAML in a line."""
    return _flow_style(to_json_value(model), to_json_value(Model()))


def _flow_style(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return the values that differ from their defaults as YAML in one line.

    Args:
        values: The values by key; a value may itself be such a mapping.
        defaults: The defaults by key.
    """
    entries = []
    for key, value in values.items():
        default = defaults[key]
        if value == default:
            continue
        text = _flow_style(value, default) if isinstance(value, dict) else json.dumps(value)
        entries.append(f"{key}: {text}")
    return f"{{{', '.join(entries)}}}"
