"""External systems: rows of the table whose translations are files that were not made here.

Part of the settings in `experiment.py`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import NotBlank, SettingError, Sha256, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping

# Known by their SHA-256 in params.yaml, so that DVC ignores the folder: a clone that has pulled the
# results does not need the files.
FOLDER = Path("inputs", "external")
# The setting that makes a system external, and the settings of systems that are trained.
TRANSLATIONS = "translations"
SETTINGS_OF_TRAINED = ("train", "model", "average", "decode", "arithmetic")


@dataclass(frozen=True)
class TranslationFile:
    """Translations of a test set, a line for each of its lines: detokenized text in UTF-8.

    `path` is below `inputs/external/`; `sha256` is the file's.
    """

    path: str
    sha256: Sha256

    def __post_init__(self) -> None:
        path = Path(self.path)
        if ".." in path.parts or FOLDER not in path.parents:
            raise ValueError(f"path is {self.path!r}: files must be below {FOLDER}/")


@dataclass(frozen=True)
class ExternalSystem:
    """A system whose `translations` are files, by test set, on a corpus.

    `about`: what translated, and when; it is printed below the tables.
    """

    translations: Annotated[dict[str, TranslationFile], MinLen(1)]
    about: NotBlank

    @property
    def files(self) -> dict[str, str]:
        """The paths of its files, by test set."""
        return {test: file.path for test, file in self.translations.items()}


# By system and corpus; None where a system has no translations.
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


def separate_external_systems(document: LocatedMapping) -> tuple[LocatedMapping, list[UserError]]:
    """Separate the systems that are trained from external ones.

    Args:
        document: The content of params.yaml, with the settings of all systems in `runs`.

    Returns:
        The content with the trained systems in `runs` and the other ones in `external`, and an
        error for each system that cannot be either, or if none is trained.
    """
    runs = document.get("runs")
    if not isinstance(runs, LocatedMapping):
        return document, []
    by_kind = _separated(runs)
    place = document.locations["runs"]
    errors = list(by_kind.errors)
    if by_kind.external and not by_kind.trained:
        message = "all systems are external: add one that is trained here, the baseline"
        errors.append(place.error(message))
    document = document.with_value("runs", by_kind.trained, place)
    return document.with_value("external", by_kind.external, place), errors


def _separated(runs: LocatedMapping) -> SystemsByKind:
    """Return the systems by their kind."""
    trained = {}
    external = {}
    errors = []
    for name, row in runs.items():
        settings = [as_mapping(run) for run in as_mapping(row).values()]
        translation_places = _places_of(settings, [TRANSLATIONS])
        training_places = _places_of(settings, SETTINGS_OF_TRAINED)
        # A system with `about` and nothing else is external, too: it lacks its translations, which
        # is told when its settings are read.
        is_described = bool(_places_of(settings, ["about"]))
        if translation_places and training_places:
            errors.append(_error_of_both(name, translation_places[0], training_places[0]))
        elif translation_places or (is_described and not training_places):
            external[name] = row
        else:
            trained[name] = row
    return SystemsByKind(
        trained=LocatedMapping(trained, runs.locations),
        external=LocatedMapping(external, runs.locations),
        errors=errors,
    )


def _places_of(settings: Collection[LocatedMapping], keys: Collection[str]) -> list[Location]:
    """Return where any of the keys stands in the settings of a system, by corpus."""
    places = []
    for settings_on_corpus in settings:
        for key in keys:
            if key in settings_on_corpus:
                places.append(settings_on_corpus.locations[key])
    return places


def _error_of_both(name: str, translations: Location, training: Location) -> UserError:
    """Return the error of a system that has translations, and a setting of its training."""
    section, *keys = training.key.split(".")
    if section != "systems":  # another entry of params.yaml gives it the setting
        return training.error(
            f"{name} is an external system, which is not trained here: remove this entry"
        )
    return translations.error(
        f"{TRANSLATIONS} make {name} an external system, which cannot have {keys[-1]}; remove one "
        "of them, or the `like` that gives it"
    )


def check_external(systems: ExternalSystems, tests: Mapping[str, Collection[str]]) -> None:
    """Raise SettingError at an unknown test set; `tests`: the names of each corpus's test sets."""
    for name, row in systems.items():
        for corpus, system in row.items():
            for test in () if system is None else system.translations:
                if test not in tests[corpus]:
                    keys = ["external", name, corpus, TRANSLATIONS, test]
                    message = (
                        f"{corpus} has no such test set; {list_known_names(test, tests[corpus])}"
                    )
                    raise SettingError(keys, message)
