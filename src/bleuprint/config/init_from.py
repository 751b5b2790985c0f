"""The weights that a training starts from, instead of random ones: fine-tuning.

A system that starts from a parent, another system of the experiment, names it at the top level of
params.yaml, since DVC reads this file without inheritance:
`init_from: {SYSTEM: {system: NAME, corpus: NAME}}`. Three stages carry the weights, so that DVC
orders a training after the training of its parent: `parents` collects the models of a parent,
`init_weights` copies the model of one seed, and `fresh` writes a file for every training, with or
without a parent.

A system that starts from a model in a folder says so itself, by `train.init_from.folder`; or by
the name of a pretrained model, see pretrained.py.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bleuprint.config.pretrained import NAME_KEYS, with_model_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.fingerprint import NOT_COUNTED
from bleuprint.runtime.schema import Name, Sha256, describe_unknown_key, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, as_mapping

# The keys that name a parent, at the top level of params.yaml.
PARENT_KEYS = ("system", "corpus")
# The keys that name a model, in `train.init_from`. The stage `resolve` adds the SHA-256.
FOLDER_KEYS = ("folder", *NAME_KEYS, "sha256")


class Parent(NamedTuple):
    """A system of the experiment, and the corpus on which it was trained."""

    system: str
    corpus: str


@dataclass(frozen=True)
class InitFrom:
    """Where the first weights of a training come from; optimizer and schedule begin at update 1.

    Attributes:
        system: A system of this experiment: its averaged model with the same seed is the start.
            params.yaml names `system` and `corpus` at its top level.
        corpus: The corpus on which that system was trained.
        folder: Instead of both: a model of another project or of a release, such as
            PROJECT/models/SYSTEM/CORPUS/SEED/averaged, or a release with one model.
        marian: Instead of `folder`: the folder of a model in the Marian format of Hugging Face,
            such as a model of OPUS-MT. `folder` is then the folder into which it is imported.
        huggingface: Instead of `folder`: such a model at Hugging Face, OWNER/NAME, which is
            downloaded.
        revision: The commit of the model at Hugging Face: 40 hexadecimal digits.
        sha256: The SHA-256 of the weights in `folder`; the stage resolve adds it.
    """

    system: Name | None = None
    corpus: Name | None = None
    folder: str | None = None
    marian: str | None = None
    huggingface: str | None = None
    revision: str | None = None
    # Not counted, since only the stage resolve knows it, and commands read params.yaml.
    sha256: Sha256 | None = field(default=None, metadata=NOT_COUNTED)

    def __post_init__(self) -> None:
        """Raise ValueError unless either `system` and `corpus` are set, or only `folder`.

        `folder` is also set if `marian` or `huggingface` names the model.
        """
        set_keys = {key for key in ("system", "corpus", "folder") if getattr(self, key)}
        if not set_keys:
            raise ValueError(
                "names no model to start from. Set folder; or marian; or huggingface and revision"
            )
        if set_keys not in ({"system", "corpus"}, {"folder"}):
            raise ValueError("needs system and corpus, or a folder")

    @property
    def parent(self) -> Parent | None:
        """The system of this experiment to start from; None if a folder has the weights."""
        if self.system and self.corpus:
            return Parent(self.system, self.corpus)
        return None


def parents_folder(system: str) -> Path:
    """Return the folder with the models that a fine-tuned system starts from, one per seed."""
    return Path("data", "parents", system)


def fresh_start_file(system: str, seed: int) -> Path:
    """Return the path of a placeholder, which is written for every training, fine-tuned or not.

    In dvc.yaml, every training depends on the folder data/starts/SYSTEM/SEED, which contains the
    weights that a fine-tuned system starts from. If a training starts from random weights, the
    folder would be missing. It then contains only this empty JSON file.

    Args:
        system: The name of the system.
        seed: The seed of the training.
    """
    return Path("data", "starts", system, str(seed), "fresh.json")


def init_weights_folder(system: str, seed: int) -> Path:
    """Return the folder with the model that the trainings of a fine-tuned system start from.

    Args:
        system: The name of the fine-tuned system.
        seed: The seed of the fine-tuning; the model was trained with the same seed.
    """
    return Path("data", "starts", system, str(seed), "weights")


def with_parents(
    runs: LocatedMapping, init_from: LocatedMapping
) -> tuple[LocatedMapping, list[UserError]]:
    """Add to the settings of each fine-tuned system its parent.

    The parent is the system from whose weights the fine-tuned system starts. params.yaml names it
    at the top level; here it becomes the setting `train.init_from` of the fine-tuned system.

    Args:
        runs: The settings of all systems by system and corpus.
        init_from: The parents, by the name of the fine-tuned system: `{NAME: {system: ...,
            corpus: ...}}`.

    Returns:
        The settings of the systems, and the errors. A system whose parent cannot be used is
        missing in the settings.
    """
    errors = []
    linked_runs = {}
    for name, location in init_from.locations.items():
        if name not in runs:
            errors.append(location.error(f"no system {name!r}; {list_known_names(name, runs)}"))
    for name, settings_by_corpus in runs.items():
        try:
            linked_runs[name] = _system_with_parent(name, settings_by_corpus, init_from)
        except UserError as error:
            errors.append(error)
    return LocatedMapping(linked_runs, runs.locations), errors


def _system_with_parent(name: str, settings_by_corpus: Any, init_from: LocatedMapping) -> Any:
    """Return the settings of a system by corpus, with its parent if it is fine-tuned.

    The parent is the system from whose weights a fine-tuned system starts. The mappings also store
    the line of each value in the YAML file (`locations`), for error messages.

    Args:
        name: The name of the system.
        settings_by_corpus: The settings of the system.
        init_from: The parents, by the name of the fine-tuned system: `{NAME: {system: ...,
            corpus: ...}}`.

    Raises:
        UserError: The parent cannot be used, or the system names it in a wrong place.
    """
    if not isinstance(settings_by_corpus, LocatedMapping):
        return settings_by_corpus  # Validation refuses it later.
    if name in init_from:
        _check_parent(name, settings_by_corpus, init_from)
    linked_settings = {}
    for corpus, settings in settings_by_corpus.items():
        linked_settings[corpus] = _settings_with_parent(name, settings, init_from)
    return LocatedMapping(linked_settings, settings_by_corpus.locations)


def _settings_with_parent(name: str, settings: Any, init_from: LocatedMapping) -> Any:
    """Return the settings of a system on one corpus, with its parent if it is fine-tuned.

    The parent, the system from whose weights a fine-tuned system starts, becomes the setting
    `train.init_from`.

    Args:
        name: The name of the system.
        settings: Its settings on the corpus; None if it is not trained on the corpus.
        init_from: The parents, by the name of the fine-tuned system: `{NAME: {system: ...,
            corpus: ...}}`.

    Raises:
        UserError: The system's own settings name a parent, where only the folder of a model is
            allowed; or the system has both a parent and a folder.
    """
    # `as_mapping` returns an empty mapping for a missing value, or a value of a wrong type.
    train = as_mapping(as_mapping(settings).get("train"))
    folder_setting = as_mapping(train.get("init_from"))
    _check_folder_setting(name, folder_setting)
    if not isinstance(settings, LocatedMapping):
        return settings
    is_fine_tuned = name in init_from
    if not is_fine_tuned:
        return _with_pretrained_weights(settings)
    location = init_from.locations[name]
    if folder_setting:
        raise location.error(f"{name} also starts from a model in train.init_from. Remove one")
    train = train.with_value("init_from", init_from[name], location)
    train_location = settings.locations["train"] if "train" in settings else location
    return settings.with_value("train", train, train_location)


def _with_pretrained_weights(system: LocatedMapping) -> LocatedMapping:
    """Add the folder of a pretrained model to a system that starts from the model's weights.

    Args:
        system: The settings of a system on one corpus.

    Raises:
        UserError: The system names the model in a wrong way.
    """
    train = system.get("train")
    if not isinstance(train, LocatedMapping):
        return system
    init_from = train.get("init_from")
    if not isinstance(init_from, LocatedMapping):
        return system
    init_from = with_model_folder(init_from)
    train = train.with_value("init_from", init_from, train.locations["init_from"])
    return system.with_value("train", train, system.locations["train"])


def _check_parent(name: str, settings_by_corpus: LocatedMapping, init_from: LocatedMapping) -> None:
    """Check the entry of `init_from` that names the parent of a fine-tuned system.

    The parent is a system on a corpus; the fine-tuned system starts from its weights.

    Args:
        name: The name of the fine-tuned system.
        settings_by_corpus: The settings of the fine-tuned system.
        init_from: The parents, by the name of the fine-tuned system: `{NAME: {system: ...,
            corpus: ...}}`.

    Raises:
        UserError: The parent's system or corpus is missing, or the fine-tuned system is trained on
            no corpus.
    """
    location = init_from.locations[name]
    parent = as_mapping(init_from[name])
    missing_keys = [key for key in PARENT_KEYS if key not in parent]
    if missing_keys:
        raise location.error("names no training to start from. Set system and corpus")
    is_trained = any(isinstance(run, LocatedMapping) for run in settings_by_corpus.values())
    if not is_trained:
        raise location.error(f"{name} is trained on no corpus. Remove this entry")


def _check_folder_setting(name: str, init_from: LocatedMapping) -> None:
    """Raise UserError if a system's own setting `train.init_from` names more than a folder.

    To start from a system of the experiment, params.yaml must name it at the top level, under
    `init_from`: DVC reads it there, to run the stages in the right order.

    Args:
        name: The name of the system.
        init_from: The value of its setting `train.init_from`.
    """
    for key in init_from:
        if key not in PARENT_KEYS and key not in FOLDER_KEYS:
            raise init_from.locations[key].error(describe_unknown_key(key, ["folder", *NAME_KEYS]))
    for key in init_from:
        if key in PARENT_KEYS:
            raise init_from.locations[key].error(
                "only a folder or a pretrained model can be named here. To start from a system of "
                "this experiment, write at the top level: "
                f"init_from: {{{name}: {{system: ..., corpus: ...}}}}"
            )


def describe_starts(definitions: dict[str, Any]) -> None:
    """Split the schema of `InitFrom` in two, because params.yaml has `init_from` in two places.

    At the top level, `init_from` names a system and a corpus; the new definition `Parent` describes
    this. In a system, `train.init_from` names a folder; the definition `InitFrom` keeps only this.

    Args:
        definitions: The definitions of the JSON Schema of params.yaml; changed in place.
    """
    all_properties = definitions["InitFrom"]["properties"]
    definitions["Parent"] = {
        **definitions["InitFrom"],
        "properties": {key: all_properties[key] for key in PARENT_KEYS},
        "required": list(PARENT_KEYS),
    }
    definitions["InitFrom"]["properties"] = {key: all_properties[key] for key in FOLDER_KEYS}
