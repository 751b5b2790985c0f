"""External systems: rows of the table whose translations are files that were not made here.

Part of the settings in `experiment.py`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import NotBlank, SettingError, Sha256, there_are
from bleuprint.runtime.yaml_tree import Tree, as_tree

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

    trained: Tree
    external: Tree
    errors: list[UserError]


def with_external(document: Tree, init_from: Tree) -> tuple[Tree, list[UserError]]:
    """Separate the systems that are trained from external ones.

    Args:
        document: The content of params.yaml, with the settings of all systems in `runs`.
        init_from: Its top-level entry that names what trained systems start from.

    Returns:
        The content with the trained systems in `runs` and the other ones in `external`, and an
        error for each system that cannot be either, or if none is trained.
    """
    cells = document.get("runs")
    if not isinstance(cells, Tree):
        return document, []
    by_kind = _separated(cells, init_from)
    place = document.places["runs"]
    errors = list(by_kind.errors)
    if by_kind.external and not by_kind.trained:
        message = "all systems are external: add one that is trained here, the baseline"
        errors.append(place.error(message))
    document = document.put("runs", by_kind.trained, place)
    return document.put("external", by_kind.external, place), errors


def _separated(cells: Tree, init_from: Tree) -> SystemsByKind:
    """Return the systems by their kind; `init_from`: what trained systems start from."""
    trained = {}
    external = {}
    errors = []
    for name, row in cells.items():
        settings = [as_tree(cell) for cell in as_tree(row).values()]
        has_translations = [cell for cell in settings if TRANSLATIONS in cell]
        keys = list(_keys_of_trained(settings))
        # one with `about` alone lacks its translations
        is_external = has_translations or (not keys and any("about" in cell for cell in settings))
        if not is_external:
            trained[name] = row
        elif not keys:
            external[name] = row
        elif name in init_from:
            message = f"{name} is an external system, which is not trained here: remove this entry"
            errors.append(init_from.places[name].error(message))
        else:
            place = has_translations[0].places[TRANSLATIONS]
            message = (
                f"{name} has {TRANSLATIONS}, which are files, and {keys[0]}, by which it would be "
                "trained here; remove one of them, or the `like` by which it has it"
            )
            errors.append(place.error(message))
    return SystemsByKind(
        trained=Tree(trained, cells.places),
        external=Tree(external, cells.places),
        errors=errors,
    )


def _keys_of_trained(settings: Collection[Tree]) -> Iterator[str]:
    """The keys of settings that only systems have that are trained here."""
    for cell in settings:
        for key in SETTINGS_OF_TRAINED:
            if key in cell:
                yield key


def check_external(systems: ExternalSystems, tests: Mapping[str, Collection[str]]) -> None:
    """Raise SettingError at an unknown test set; `tests`: the names of each corpus's test sets."""
    for name, row in systems.items():
        for corpus, system in row.items():
            for test in () if system is None else system.translations:
                if test not in tests[corpus]:
                    keys = ["external", name, corpus, TRANSLATIONS, test]
                    message = f"{corpus} has no such test set; {there_are(test, tests[corpus])}"
                    raise SettingError(keys, message)
