"""Pretrained models in the Marian format of Hugging Face, such as OPUS-MT, by their names.

A system that starts from such a model names it in its settings `train`. A corpus that uses the
subwords of the model names it in `vocabulary.sentencepiece`. The name is one of these:

- `{marian: FOLDER}`: a folder in the Marian format on this machine;
- `{huggingface: OWNER/NAME, revision: COMMIT}`: a model that is downloaded.

`with_model_folder` adds the setting `folder` to the name: the folder into which the model is
imported. So the other modules read every pretrained model from a folder.
"""

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, runtime_checkable

from bleuprint.runtime.yaml_tree import LocatedMapping, Location

# The settings that name a model in the Marian format, in the order in which they are looked up.
NAME_KEYS = ("marian", "huggingface", "revision")
_IMPORTED_MODELS = Path("work", "pretrained", "imported")
# OWNER/NAME, as in the address of a model at Hugging Face.
_HUGGING_FACE_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
# Models are repositories of Git, whose commits have 40 hexadecimal digits.
_COMMIT = re.compile("[0-9a-f]{40}")
# The number of hexadecimal digits of a hash that tell models in folders of the same name apart.
_HASH_DIGITS = 8


@runtime_checkable
class ModelName(Protocol):
    """Settings of a system or of a corpus that may name a pretrained model.

    If `marian` or `huggingface` names the model, `folder` is the folder into which it is imported.
    """

    @property
    def folder(self) -> str | None:
        """The folder of the model; None if the settings name no model."""

    @property
    def marian(self) -> str | None:
        """The folder in the Marian format; None if the model is named otherwise."""

    @property
    def huggingface(self) -> str | None:
        """The name of the model at Hugging Face, OWNER/NAME; None if it is named otherwise."""

    @property
    def revision(self) -> str | None:
        """The commit of the model at Hugging Face; None if it is named otherwise."""


def with_model_folder(settings: LocatedMapping) -> LocatedMapping:
    """Add the folder of a pretrained model to settings that name the model.

    Args:
        settings: The settings of a system or of a corpus that may name a model.

    Returns:
        The settings with `folder`; unchanged if they name no model in the Marian format.

    Raises:
        UserError: The settings name more than one model, or name it in a wrong way.
    """
    # The keys that are set, in the order of NAME_KEYS. A null removes a name that is inherited.
    keys = [key for key in (*NAME_KEYS, "folder") if settings.get(key) is not None]
    name_keys = [key for key in keys if key in NAME_KEYS]
    if not name_keys:
        return settings
    location = settings.locations[name_keys[0]]
    for key in name_keys:
        if not isinstance(settings[key], str):
            raise settings.locations[key].error(f"{settings[key]!r} is not a name. Quote it")
    if keys == ["marian"]:
        return settings.with_value("folder", _folder_of_marian(settings["marian"]), location)
    if keys == ["huggingface"]:
        raise location.error(
            "the commit of the model is missing. Add revision: COMMIT, with the 40 digits under "
            f"Files and versions at https://huggingface.co/{settings['huggingface']}"
        )
    if keys == ["huggingface", "revision"]:
        _check_hugging_face_name(settings)
        folder = _folder_of_hugging_face(settings["huggingface"], settings["revision"])
        return settings.with_value("folder", folder, location)
    raise location.error(
        "name one model: folder: FOLDER, or marian: FOLDER, or huggingface: OWNER/NAME with "
        "revision: COMMIT"
    )


def with_pretrained_pieces(corpus: Any) -> Any:
    """Add the folder of a pretrained model to a corpus that uses the subwords of the model.

    Args:
        corpus: The settings of a corpus. What is not a mapping is returned unchanged; validation
            refuses it later.

    Raises:
        UserError: The corpus names the model in a wrong way.
    """
    if not isinstance(corpus, LocatedMapping):
        return corpus
    vocabulary = corpus.get("vocabulary")
    if not isinstance(vocabulary, LocatedMapping):
        return corpus
    pieces = vocabulary.get("sentencepiece")
    if not isinstance(pieces, LocatedMapping):
        return corpus
    pieces = with_model_folder(pieces)
    pieces_location = vocabulary.locations["sentencepiece"]
    vocabulary = vocabulary.with_value("sentencepiece", pieces, pieces_location)
    return corpus.with_value("vocabulary", vocabulary, corpus.locations["vocabulary"])


def _check_hugging_face_name(settings: LocatedMapping) -> None:
    """Check the name and the commit of a model at Hugging Face.

    Args:
        settings: The settings `huggingface` and `revision`.

    Raises:
        UserError: One of them is not written as Hugging Face and Git write it.
    """
    name = settings["huggingface"]
    revision = settings["revision"]
    if not _HUGGING_FACE_NAME.fullmatch(name):
        name_location: Location = settings.locations["huggingface"]
        raise name_location.error(
            f"{name!r} is not a model of Hugging Face. Write OWNER/NAME, such as "
            "Helsinki-NLP/opus-mt-en-de"
        )
    if not _COMMIT.fullmatch(revision):
        revision_location: Location = settings.locations["revision"]
        raise revision_location.error(
            f"{revision!r} is not a commit, and a branch may change. Write the 40 digits under "
            f"Files and versions at https://huggingface.co/{name}"
        )


def _folder_of_hugging_face(name: str, revision: str) -> str:
    """Return the folder into which a model of Hugging Face is imported.

    Args:
        name: OWNER/NAME.
        revision: The commit.
    """
    return (_IMPORTED_MODELS / f"{name}@{revision}").as_posix()


def _folder_of_marian(path: str) -> str:
    """Return the folder into which a model in a folder on this machine is imported.

    Args:
        path: The folder in the Marian format. Its path decides the name of the other folder.
    """
    # Users write the same folder as a/b, a/b/ or ./a/b.
    folder = PurePosixPath(path)
    digits = hashlib.sha256(folder.as_posix().encode()).hexdigest()[:_HASH_DIGITS]
    return (_IMPORTED_MODELS / f"{folder.name}-{digits}").as_posix()
