"""External systems: systems whose translations are files of the user, such as an online system's.

The table shows them like systems that are trained here. `experiment.py` has them in `external`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import NotBlank, SettingError, Sha256, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping

# The folder of the files. params.yaml has their SHA-256, and DVC ignores the folder; so a clone
# that has pulled the results does not need the files.
FOLDER = Path("inputs", "external")
# The setting that makes a system external, and the settings of systems that are trained.
TRANSLATIONS = "translations"
SETTINGS_OF_TRAINED = ("train", "model", "average", "decode", "arithmetic")


@dataclass(frozen=True)
class TranslationFile:
    """A file with the translations of a test set, one per line: detokenized text in UTF-8.

    Attributes:
        path: The file, below `inputs/external/`.
        sha256: The SHA-256 of the file.
    """

    path: str
    sha256: Sha256

    def __post_init__(self) -> None:
        """Raise ValueError unless the file is in `inputs/external/`, where such files must be."""
        path = Path(self.path)
        if ".." in path.parts or FOLDER not in path.parents:
            raise ValueError(f"path is {self.path!r}, but files must be below {FOLDER}/")


@dataclass(frozen=True)
class ExternalSystem:
    """The settings of an external system on a corpus.

    Attributes:
        translations: The files with its translations, by test set.
        about: Which system translated, and when; printed below the tables.
    """

    translations: Annotated[dict[str, TranslationFile], MinLen(1)]
    about: NotBlank

    @property
    def files(self) -> dict[str, str]:
        """The paths of the files, by test set."""
        return {test: file.path for test, file in self.translations.items()}


# External systems by system and corpus; None where a system has no translations.
ExternalSystems = Mapping[str, Mapping[str, ExternalSystem | None]]


@dataclass(frozen=True)
class SystemsByKind:
    """The settings of systems by system and corpus, as params.yaml has them.

    Attributes:
        trained: The systems that are trained here.
        external: The systems whose translations are files.
        errors: An error for each system that has settings of both kinds, and is in neither.
    """

    trained: LocatedMapping
    external: LocatedMapping
    errors: list[UserError]


def separate_external_systems(
    document: LocatedMapping,
) -> tuple[LocatedMapping, list[UserError]]:
    """Separate the external systems, whose translations are files, from the trained systems.

    Args:
        document: The content of params.yaml, with the settings of all systems in `runs`, by system
            and corpus.

    Returns:
        The content, with the trained systems in `runs` and the external ones in `external`; and the
        errors: for each system with settings of both kinds, and if no system is trained.
    """
    runs = document.get("runs")
    if not isinstance(runs, LocatedMapping):
        return document, []  # Validation refuses it later.
    systems = _systems_by_kind(runs)
    location = document.locations["runs"]
    errors = list(systems.errors)
    if systems.external and not systems.trained:
        message = "all systems are external. Add one that is trained here, as the baseline"
        errors.append(location.error(message))
    document = document.with_value("runs", systems.trained, location)
    return document.with_value("external", systems.external, location), errors


def _systems_by_kind(runs: LocatedMapping) -> SystemsByKind:
    """Sort systems into trained and external ones.

    A system with translations is external; one with settings such as `model` or `train` is trained;
    one with both is a mistake of the user.

    Args:
        runs: The settings of all systems by system and corpus.
    """
    trained = {}
    external = {}
    errors = []
    for name, settings_by_corpus in runs.items():
        settings = [as_mapping(run) for run in as_mapping(settings_by_corpus).values()]
        translation_locations = _find_keys(settings, [TRANSLATIONS])
        training_locations = _find_keys(settings, SETTINGS_OF_TRAINED)
        has_description = bool(_find_keys(settings, ["about"]))
        if translation_locations and training_locations:
            errors.append(_two_kinds_error(name, translation_locations[0], training_locations[0]))
        elif training_locations:
            trained[name] = settings_by_corpus
        elif translation_locations or has_description:
            # If it has only a description, validation says that its translations are missing.
            external[name] = settings_by_corpus
        else:
            # A system without settings is trained with the defaults.
            trained[name] = settings_by_corpus
    return SystemsByKind(
        trained=LocatedMapping(trained, runs.locations),
        external=LocatedMapping(external, runs.locations),
        errors=errors,
    )


def _find_keys(
    settings_on_corpora: Collection[LocatedMapping], keys: Collection[str]
) -> list[Location]:
    """Find the places in params.yaml where the settings of a system contain one of some keys.

    Args:
        settings_on_corpora: The settings of the system on each corpus.
        keys: The keys to search for.
    """
    locations = []
    for settings in settings_on_corpora:
        for key in keys:
            if key in settings:
                locations.append(settings.locations[key])
    return locations


def _two_kinds_error(name: str, translations: Location, training: Location) -> UserError:
    """Return the error for a system that has both translations and settings for training.

    Args:
        name: The name of the system.
        translations: Where params.yaml has its translations.
        training: Where params.yaml has a setting for its training: in the system itself, or under a
            top-level key such as `init_from`.
    """
    # The key is, for example, systems.small.train or init_from.small.
    section, *keys = training.key.split(".")
    is_top_level_setting = section != "systems"
    if is_top_level_setting:
        return training.error(
            f"{name} is an external system, which is not trained here. Remove this entry"
        )
    return translations.error(
        f"{name} has {TRANSLATIONS}, so it is an external system and cannot have {keys[-1]}. "
        "Remove one of the two settings, or the `like` that brings it"
    )


def check_external(
    systems: ExternalSystems, tests_by_corpus: Mapping[str, Collection[str]]
) -> None:
    """Raise SettingError if an external system has translations of a test set that does not exist.

    Args:
        systems: The external systems, whose translations are files, by system and corpus.
        tests_by_corpus: The names of the test sets by corpus.
    """
    for name, settings_by_corpus in systems.items():
        for corpus, system in settings_by_corpus.items():
            if system is None:
                continue
            tests = tests_by_corpus[corpus]
            for test in system.translations:
                if test not in tests:
                    keys = ["external", name, corpus, TRANSLATIONS, test]
                    message = f"{corpus} has no such test set; {list_known_names(test, tests)}"
                    raise SettingError(keys, message)
