"""The SentencePiece models and vocabularies of a pretrained model, instead of learned ones.

The setting `vocabulary.sentencepiece.folder` names the folder of the model, which `bleuprint
import` has written. The stage resolve adds the SHA-256 of its vocabularies to the settings, so that
DVC sees a change of the folder.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.config.corpus import SentencePiece
from bleuprint.config.paths import RESOLVED
from bleuprint.config.setting_place import place_of_setting
from bleuprint.dataset.subwords.segmentation import MODEL, read_segmentation_file
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import report_as_damage
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.yaml_tree import Location

_SIDES = ("source", "target")


def copy_pretrained_pieces(
    corpus: str, settings: SentencePiece, languages: Sequence[str], output: Path
) -> None:
    """Write the pieces of a pretrained model as those of a corpus.

    Writes sentencepiece.LANGUAGE and vocabulary.LANGUAGE.

    Args:
        corpus: The name of the corpus, for messages.
        settings: The settings of the pieces, with `folder` and `sha256`.
        languages: The source and the target language.
        output: The folder to write into.

    Raises:
        UserError: A file is missing, has changed since the settings were resolved, or the setting
            `joint` is wrong.
    """
    folder = environment.project_root() / str(settings.folder)
    found_sha256 = _pieces_sha256(corpus, folder)
    if settings.sha256 not in (None, found_sha256):
        raise _place_of_folder(corpus).error(
            f"{folder} has pieces with SHA-256 {found_sha256}, but the setting sha256 is "
            f"{settings.sha256}. Put the expected model there, or change the setting"
        )
    is_joint = read_segmentation_file(folder)["joint"]
    if settings.joint != is_joint:
        expected = str(is_joint).lower()
        raise _place_of_folder(corpus).error(
            f"{folder} needs joint: {expected}. Set vocabulary.sentencepiece.joint: {expected}"
        )
    for side, language in zip(_SIDES, languages, strict=True):
        for name in (MODEL, "vocabulary"):
            shutil.copyfile(folder / f"{name}.{side}", output / f"{name}.{language}")


def add_piece_hashes(corpora: Mapping[str, Mapping[str, Any]], root: Path = Path()) -> None:
    """Add the SHA-256 of the pieces to the settings of corpora with pretrained pieces.

    Someone who has only downloaded the results may not have the folder. Then the SHA-256 is copied
    from the existing reports/resolved.json, so that DVC sees no change.

    Args:
        corpora: The settings of each corpus. The entry `sha256` is added to
            `vocabulary.sentencepiece` in them.
        root: The folder of the project, with the existing reports/resolved.json.

    Raises:
        UserError: The folder is missing or incomplete.
    """
    recorded_hashes = _recorded_hashes(root / RESOLVED)
    for corpus, settings in _pretrained_settings(corpora):
        name = settings["folder"]
        folder = environment.project_root() / name
        if "sha256" in settings:
            continue  # The user has written it, and the stage learn_vocabulary compares it.
        if not folder.exists() and name in recorded_hashes:
            settings["sha256"] = recorded_hashes[name]
        else:
            settings["sha256"] = _pieces_sha256(corpus, folder)


def _recorded_hashes(resolved: Path) -> dict[str, str]:
    """Read the recorded SHA-256 of the pieces in each folder.

    Args:
        resolved: The file reports/resolved.json, with the settings of each corpus.

    Returns:
        The SHA-256 by folder; empty if the file is missing or damaged.
    """
    with suppress(UserError), report_as_damage(resolved):
        corpora = read_json_object(resolved, ("corpora",))["corpora"]
        recorded_hashes = {}
        for _, settings in _pretrained_settings(corpora):
            recorded_hashes[settings["folder"]] = settings["sha256"]
        return recorded_hashes
    return {}


def _pretrained_settings(
    corpora: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the settings `vocabulary.sentencepiece` of corpora with pretrained pieces.

    Args:
        corpora: The settings of each corpus.
    """
    for name, corpus in corpora.items():
        settings = corpus["vocabulary"].get("sentencepiece", {})
        if "folder" in settings:
            yield name, settings


def _pieces_sha256(corpus: str, folder: Path) -> str:
    """Return one hash of all files with pieces in the folder of a pretrained model.

    Args:
        corpus: The name of the corpus, whose setting names the folder.
        folder: The folder.

    Raises:
        UserError: A file is missing.
    """
    hashes = []
    for side in _SIDES:
        for name in ("vocabulary", MODEL):
            path = folder / f"{name}.{side}"
            if not path.is_file():
                raise _place_of_folder(corpus).error(
                    f"{path}: no such file. Name a folder that bleuprint import has written"
                )
            hashes.append(sha256_of(path))
    return fingerprint.of_settings(hashes)


def _place_of_folder(corpus: str) -> Location:
    """Return the line of params.yaml that names the folder of a corpus's pieces, for messages."""
    return place_of_setting(["corpora", corpus, "vocabulary", "sentencepiece", "folder"])
