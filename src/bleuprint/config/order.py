"""What has to be made before what: starts of trainings, synthetic texts, shared vocabularies.

DVC reads params.yaml without inheritance. So a system that starts from a training of the same
experiment names it at the top level, in `init_from`, by which DVC knows the order.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from bleuprint.config.corpus import Corpus
from bleuprint.config.external import TRANSLATIONS
from bleuprint.config.synthetic import SyntheticText
from bleuprint.config.system import System
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError, there_are
from bleuprint.runtime.yaml_tree import Tree, as_tree

_Runs = Mapping[str, Mapping[str, System | None]]
# The keys of an entry of `init_from`.
_START = {"system", "corpus"}


def check_order(
    corpora: Mapping[str, Corpus],
    cells: _Runs,
    synthetic: Mapping[str, SyntheticText],
    external: Collection[str],
) -> None:
    """Raise SettingError at a cycle, and at what needs a training that there is not.

    A corpus needs the one whose vocabulary it has and what translates its texts; a training its
    corpus and its start. `external`: the names of external systems.
    """
    _check_parents(cells, synthetic, external)
    _check_synthetic(corpora, cells, synthetic)
    needs: dict[str, dict[str, list[str]]] = defaultdict(dict)  # with the keys that say so
    for name, column in corpora.items():
        if of := column.vocabulary.of:
            needs[name][of] = ["corpora", name, "vocabulary", "of"]
    for name, text in synthetic.items():
        needs[text.part_of][f"{text.system} on {text.corpus}"] = ["synthetic", name]
    for system, row in cells.items():
        for corpus, cell in row.items():
            needed = needs[f"{system} on {corpus}"] = {corpus: list[str]()}
            if cell is not None and cell.train.init_from and (named := cell.train.init_from.cell):
                needed[" on ".join(named)] = keys = ["runs", system, corpus, "train", "init_from"]
                start = _training(keys, *named, cells)
                if start.average.ensemble:
                    message = f"{named[0]} is an ensemble (average.ensemble), not one model"
                    raise SettingError(keys, message)
                if difference := cell.model.difference(start.model):
                    raise SettingError(keys, difference)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]
        at = next(keys for one, other in pairwise(cycle) if (keys := needs[one][other]))
        raise SettingError(at, f"a cycle, each needs the next: {' -> '.join(cycle)}") from None


def _check_parents(
    cells: _Runs, synthetic: Mapping[str, SyntheticText], external: Collection[str]
) -> None:
    """Raise SettingError if an external system should translate a text, or be started from."""
    parents = [(text.system, ["synthetic", name, "system"]) for name, text in synthetic.items()]
    for system, row in cells.items():
        for corpus, cell in row.items():
            init_from = None if cell is None else cell.train.init_from
            if init_from is not None and init_from.cell is not None:
                keys = ["runs", system, corpus, "train", "init_from", "system"]
                parents.append((init_from.cell[0], keys))
    for parent, keys in parents:
        if parent in external:
            message = f"{parent} is an external system, without a model here"
            raise SettingError(keys, message)


def _check_synthetic(
    corpora: Mapping[str, Corpus], cells: _Runs, synthetic: Mapping[str, SyntheticText]
) -> None:
    """Raise SettingError at a text without its entry or the reverse, or without its training."""
    texts = {
        f"{corpus}.files.train.{part}": text
        for corpus, column in corpora.items()
        for part, text in column.files.synthetic_texts().items()
    }
    for name, made in synthetic.items():
        keys, part = ["synthetic", name], f"{made.part_of}.files.train.{name}"
        if not (text := texts.get(part)):
            message = f"no {part} with source or target alone; {there_are(part, texts)}"
            raise SettingError([*keys, "part_of"], message)
        _training(keys, made.system, made.corpus, cells)
        sides, trained = corpora[made.part_of].languages, corpora[made.corpus].languages
        if trained != (needs := sides[:: 1 if text.synthetic_side == "target" else -1]):
            message = f"{made.corpus} is {' to '.join(trained)}, and {name} of {made.part_of} needs"
            raise SettingError([*keys, "corpus"], f"{message} {' to '.join(needs)}")
        if made.noise and text.synthetic_side != "source":
            message = f"is for synthetic sources, and {name} has a synthetic {text.synthetic_side}"
            raise SettingError([*keys, "noise"], message)
    wanted = {f"{made.part_of}.files.train.{name}" for name, made in synthetic.items()}
    if without := [name for name in texts if name not in wanted]:
        message = f"has no {texts[without[0]].synthetic_side}, and no entry of synthetic"
        raise SettingError(["corpora", *without[0].split(".")], message)


def _training(keys: list[str], system: str, corpus: str, cells: _Runs) -> System:
    """The settings of the training that an entry at `keys` names; raises SettingError if none."""
    if system not in cells:
        message = f"no system {system!r}; {there_are(system, cells)}"
        raise SettingError([*keys, "system"], message)
    if (found := cells[system].get(corpus)) is None:
        trained = [name for name, each in cells[system].items() if each is not None]
        message = f"{system} is not trained on {corpus!r}; {there_are(corpus, trained)}"
        raise SettingError([*keys, "corpus"], message)
    return found


def with_starts(cells: Tree, init_from: Tree) -> tuple[Tree, list[UserError]]:
    """Give each system the start that `init_from` names for it.

    Args:
        cells: The settings of all systems by system and corpus.
        init_from: The top-level entry of params.yaml, by system, where DVC reads the order.

    Returns:
        The settings with `train.init_from`, and an error for each start that cannot be used.
    """
    errors = []
    found = {}
    for name in init_from:
        if name not in cells:
            place = init_from.places[name]
            errors.append(place.error(f"no system {name!r}; {there_are(name, cells)}"))
    for name, row in cells.items():
        try:
            found[name] = _row_with_start(name, row, init_from)
        except UserError as error:
            errors.append(error)
    return Tree(found, cells.places), errors


def _row_with_start(name: str, row: Any, init_from: Tree) -> Any:
    """The settings of a system by corpus, with the start that `init_from` names for it."""
    if not isinstance(row, Tree):
        return row
    start = init_from.get(name)
    if name in init_from and not as_tree(start).keys() >= _START:
        raise init_from.places[name].error("needs system and corpus: the training to start from")
    if name in init_from and not any(isinstance(cell, Tree) for cell in row.values()):
        raise init_from.places[name].error(f"{name} is trained on no corpus")
    is_external = any(TRANSLATIONS in as_tree(cell) for cell in row.values())
    if name in init_from and is_external:
        raise init_from.places[name].error(
            f"{name} is an external system, which is not trained here: remove this entry"
        )
    cells = {}
    for corpus, cell in row.items():
        train = as_tree(as_tree(cell).get("train"))
        own = as_tree(train.get("init_from"))
        for key in (key for key in own if key in _START):
            raise own.places[key].error(
                f"to start from a system of this experiment, name it at the top level: init_from: "
                f"{{{name}: {{system: ..., corpus: ...}}}}"
            )
        if start is None or not isinstance(cell, Tree):
            cells[corpus] = cell
            continue
        place = init_from.places[name]
        if own:
            raise place.error(f"{name} has another start in its train.init_from: remove one")
        train = train.put("init_from", start, place)
        place_of_train = cell.places["train"] if "train" in cell else place
        cells[corpus] = cell.put("train", train, place_of_train)
    return Tree(cells, row.places)
