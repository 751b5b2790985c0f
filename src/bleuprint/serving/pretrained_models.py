"""Imports the pretrained models that settings name, before a stage needs them.

A model is imported into the folder that the setting `folder` names, below work/. The stage resolve
imports it to know the SHA-256 of its weights and subwords. If the folder is missing later, as in a
clone, the stage that reads the model imports it again.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import RESOLVED
from bleuprint.config.pretrained import ModelName
from bleuprint.config.setting_place import place_of_setting
from bleuprint.config.system import System
from bleuprint.model.description import DESCRIPTION, ModelDescription
from bleuprint.runtime import environment
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import report_as_damage
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.regular_files import sha256_of

# In the folder of an imported model: the SHA-256 of the files that it was made from, by name.
_SOURCES = "imported_from.json"
# What to do about a damaged file in the folder of an imported model.
_REMEDY = "Remove its folder, so that the model is imported again"


def import_models_of_experiment(settings: Settings, root: Path = Path()) -> None:
    """Import the pretrained models that the corpora and systems of an experiment name.

    If reports/resolved.json contains the SHA-256 of a downloaded model, the model is pinned: it is
    not downloaded here, but by the stage that reads it. So a clone with all results needs no model.

    Args:
        settings: The settings of the experiment.
        root: The folder of the project, with the existing reports/resolved.json.

    Raises:
        UserError: A model cannot be downloaded or imported, or has another shape than a system that
            starts from it. The message names the line of params.yaml.
    """
    recorded_folders = _recorded_folders(root / RESOLVED)
    for name, corpus in settings.corpora.items():
        for keys, model in _named_models(corpus.vocabulary, ["corpora", name, "vocabulary"]):
            if _needs_import(model, recorded_folders["corpora"]):
                _import_model(model, keys)
    for system_name, corpus_name, system in _trained_systems(settings):
        system_keys = ["runs", system_name, corpus_name]
        for keys, model in _named_models(system.train, [*system_keys, "train"]):
            if _needs_import(model, recorded_folders["runs"]):
                _import_model(model, keys)
            _check_shape(system, model, system_keys)


def import_named_models(settings: Any, keys: Sequence[str]) -> None:
    """Import the pretrained models that settings name, unless they are there.

    A model in a folder on this machine is imported again if one of its files has changed.

    Args:
        settings: The settings, such as those of a training. If they name no model, nothing is done.
        keys: The keys of these settings, from the top level, for messages.

    Raises:
        UserError: A model cannot be downloaded or imported. The message names the line of
            params.yaml.
    """
    for model_keys, model in _named_models(settings, keys):
        _import_model(model, model_keys)


def _named_models(settings: Any, keys: Sequence[str]) -> Iterator[tuple[list[str], ModelName]]:
    """Yield the settings, among other ones, that name a pretrained model, with their keys.

    Args:
        settings: The settings of one kind, a dataclass; its fields may be such settings.
        keys: The keys of these settings, from the top level.
    """
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        # A folder of ours needs no import.
        if isinstance(value, ModelName) and (value.marian or value.huggingface):
            yield [*keys, field.name], value


def _import_model(model: ModelName, keys: Sequence[str]) -> None:
    """Import a pretrained model into the folder that the settings name for it, unless it is there.

    Args:
        model: The settings that name the model.
        keys: The keys of these settings, from the top level, for messages.

    Raises:
        UserError: The model cannot be downloaded or imported. The message names the line of
            params.yaml.
    """
    output = environment.project_root() / str(model.folder)
    output.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(output.with_name(f"{output.name}.lock"))
    try:
        with lock.acquire_or_notify(f"another process imports {output.name}"):
            if model.huggingface is not None:
                _import_from_hugging_face(f"{model.huggingface}@{model.revision}", output)
            else:
                _import_from_folder(environment.project_root() / str(model.marian), output)
    except UserError as error:
        # The user has written the name in params.yaml, so the message points there.
        raise place_of_setting([*keys, "folder"]).error(str(error)) from None


def _import_from_hugging_face(name: str, output: Path) -> None:
    """Download a model and import it, unless this was done before.

    Args:
        name: OWNER/NAME@COMMIT. A commit never changes, so the imported model stays as it is.
        output: The folder of the imported model.

    Raises:
        UserError: The model cannot be downloaded or imported.
    """
    if output.exists():
        return
    # Imported here, since these modules load torch, and few experiments need them.
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.serving.download_marian import download_marian
    from bleuprint.serving.import_marian import import_marian

    marian_folder = environment.work_folder() / "pretrained" / name
    download_marian(name, downloads_of_environment(), marian_folder)
    import_marian(marian_folder, output)


def _import_from_folder(marian_folder: Path, output: Path) -> None:
    """Import a model from a folder, unless the same files were imported before.

    Args:
        marian_folder: The folder in the Marian format. After an import, it may be removed: then the
            imported model stays as it is.
        output: The folder of the imported model.

    Raises:
        UserError: The folder contains no complete model of this format.
    """
    if output.exists() and not marian_folder.exists():
        return
    hashes = {}
    for path in sorted(marian_folder.glob("*")):
        if path.is_file():
            hashes[path.name] = sha256_of(path)
    sources = output / _SOURCES
    if sources.exists() and read_json_object(sources, remedy=_REMEDY) == hashes:
        return
    from bleuprint.serving.import_marian import convert_marian

    with atomic_folder(output) as partial_folder:
        convert_marian(marian_folder, partial_folder)
        write_json(partial_folder / _SOURCES, hashes)


def _needs_import(model: ModelName, recorded_folders: set[str]) -> bool:
    """Return whether a model has to be imported to know its SHA-256.

    Args:
        model: The settings that name the model.
        recorded_folders: The folders of models whose SHA-256 reports/resolved.json contains.
    """
    if model.folder not in recorded_folders:
        return True
    # The files in a folder may have changed since.
    return model.marian is not None and (environment.project_root() / model.marian).exists()


def _recorded_folders(resolved: Path) -> dict[str, set[str]]:
    """Read the folders of models whose SHA-256 is recorded.

    Args:
        resolved: The file reports/resolved.json, which may be missing or damaged.

    Returns:
        The folders: under "runs" those with weights that systems start from, and under "corpora"
        those with subwords of corpora.
    """
    folders: dict[str, set[str]] = {"runs": set(), "corpora": set()}
    # If the file cannot be used, nothing is recorded.
    with suppress(UserError), report_as_damage(resolved):
        content = read_json_object(resolved, ("runs", "corpora"))
        for section, recorded_folders in folders.items():
            _add_recorded_folders(content[section], recorded_folders)
    return folders


def _add_recorded_folders(settings: Any, recorded_folders: set[str]) -> None:
    """Add the folders of models whose SHA-256 is recorded anywhere in some settings.

    Args:
        settings: The settings as JSON values.
        recorded_folders: The folders; changed in place.
    """
    if not isinstance(settings, dict):
        return
    if "folder" in settings and "sha256" in settings:
        recorded_folders.add(settings["folder"])
    for value in settings.values():
        _add_recorded_folders(value, recorded_folders)


def _trained_systems(settings: Settings) -> Iterator[tuple[str, str, System]]:
    """Yield the name, the corpus and the settings of each trained system on each of its corpora."""
    for system_name, settings_by_corpus in settings.runs.items():
        for corpus_name, system in settings_by_corpus.items():
            if system is not None:
                yield system_name, corpus_name, system


def _check_shape(system: System, model: ModelName, keys: Sequence[str]) -> None:
    """Check that a system has the shape of the pretrained model that it starts from.

    Args:
        system: The settings of the system.
        model: The settings that name the pretrained model.
        keys: The keys that lead to the system in params.yaml, such as `["systems", "small"]`. The
            message names the line.

    Raises:
        UserError: The shapes differ. The message contains the settings of the pretrained model.
    """
    folder = environment.project_root() / str(model.folder)
    if not (folder / DESCRIPTION).exists():
        # A clone with committed results has the SHA-256 of the model, but not its files. The shape
        # was checked where the results were computed.
        return
    # Imported here, because it imports torch, which takes seconds.
    from bleuprint.serving.import_marian import describe_shape

    pretrained = ModelDescription.read(folder, _REMEDY).model
    difference = system.model.difference(pretrained)
    if difference:
        raise place_of_setting([*keys, "model"]).error(
            f"{difference}. Write: model: {describe_shape(pretrained)}"
        )
