"""The weights that a training starts from, instead of random ones. Part of `experiment.py`.

A system that starts from another system of the experiment names it at the top level, since DVC
reads params.yaml without inheritance: `init_from: {SYSTEM: {system: NAME, corpus: NAME}}`. The
stage parents collects these models, init_weights takes that of a seed, and writes it beside what
the stage fresh writes for every training. So DVC orders a training after its parent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import Name, Sha256, describe_unknown_key, list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, as_mapping

# The keys of a parent, a training of the experiment.
_PARENT = {"system", "corpus"}
# The keys of a start from a folder: the stage resolve adds the SHA-256.
_FOLDER = {"folder", "sha256"}


@dataclass(frozen=True)
class InitFrom:
    """Where the first weights of a training come from; optimizer and schedule begin at update 1.

    `system` and `corpus`: the averaged model of this experiment's training of them with the same
    seed; params.yaml has them at its top level, by system. Or `folder`: a model of another project
    or of a release, such as PROJECT/models/SYSTEM/CORPUS/SEED/averaged, or a release that has one
    model. `sha256`: of a folder's weights; the stage resolve adds it.
    """

    system: Name | None = None
    corpus: Name | None = None
    folder: str | None = None
    sha256: Sha256 | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("system", "corpus", "folder") if getattr(self, name)]
        if given not in (["system", "corpus"], ["folder"]):
            raise ValueError("needs system and corpus, or a folder")

    @property
    def parent(self) -> tuple[str, str] | None:
        """The system and the corpus, if it is a training of this experiment."""
        return (self.system, self.corpus) if self.system and self.corpus else None


def parents_folder(system: str) -> Path:
    """The models of this experiment that a system starts from, a folder a seed."""
    return Path("data", "parents", system)


def fresh_start_file(system: str, seed: int) -> Path:
    """The file that the trainings of a system with a seed depend on, whatever they start from."""
    return Path("data", "starts", system, str(seed), "fresh.json")


def init_weights_folder(system: str, seed: int) -> Path:
    """The model that the trainings of a system with a seed start from, beside `fresh`."""
    return Path("data", "starts", system, str(seed), "weights")


def with_parents(
    runs: LocatedMapping, init_from: LocatedMapping
) -> tuple[LocatedMapping, list[UserError]]:
    """Give each system the parent that params.yaml names for it.

    Args:
        runs: The settings of all systems by system and corpus.
        init_from: The top-level entry of params.yaml, by system.

    Returns:
        The settings with `train.init_from`, without systems whose parent cannot be used, and the
        errors.
    """
    errors = []
    found = {}
    for name, place in init_from.locations.items():
        if name not in runs:
            errors.append(place.error(f"no system {name!r}; {list_known_names(name, runs)}"))
    for name, row in runs.items():
        try:
            if isinstance(row, LocatedMapping) and name in init_from:
                _check_row(name, row, init_from)
            found[name] = _row_with_parent(name, row, init_from)
        except UserError as error:
            errors.append(error)
    return LocatedMapping(found, runs.locations), errors


def _check_row(name: str, row: LocatedMapping, init_from: LocatedMapping) -> None:
    """Raise UserError if a system cannot start from the weights of another."""
    place = init_from.locations[name]
    if not as_mapping(init_from[name]).keys() >= _PARENT:
        raise place.error("needs system and corpus: the training to start from")
    runs = [run for run in row.values() if isinstance(run, LocatedMapping)]
    if not runs:
        raise place.error(f"{name} is trained on no corpus")


def _row_with_parent(name: str, row: Any, init_from: LocatedMapping) -> Any:
    """The settings of a system by corpus, with the parent that `init_from` names for it."""
    if not isinstance(row, LocatedMapping):
        return row
    runs = {}
    for corpus, run in row.items():
        train = as_mapping(as_mapping(run).get("train"))
        own = as_mapping(train.get("init_from"))
        for key in own:
            if key not in _PARENT and key not in _FOLDER:
                raise own.locations[key].error(describe_unknown_key(key, ["folder"]))
        for key in _keys_of_parent(own):
            raise own.locations[key].error(
                f"to start from a system of this experiment, name it at the top level: init_from: "
                f"{{{name}: {{system: ..., corpus: ...}}}}"
            )
        if name not in init_from or not isinstance(run, LocatedMapping):
            runs[corpus] = run
            continue
        place = init_from.locations[name]
        if own:
            raise place.error(f"{name} has another start in its train.init_from: remove one")
        train = train.with_value("init_from", init_from[name], place)
        place_of_train = run.locations["train"] if "train" in run else place
        runs[corpus] = run.with_value("train", train, place_of_train)
    return LocatedMapping(runs, row.locations)


def _keys_of_parent(own: LocatedMapping) -> Iterator[Any]:
    """The keys in a system's own `train.init_from` that name a system of the experiment."""
    for key in own:
        if key in _PARENT:
            yield key
