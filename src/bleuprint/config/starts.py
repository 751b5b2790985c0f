"""Rows that start from the weights of others, checked together.

DVC reads params.yaml without inheritance. A row that starts from a training of the same experiment
therefore stands under `tuned`, with its `train.from` in full, by which DVC knows the order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from graphlib import CycleError, TopologicalSorter
from typing import Any

from bleuprint.config.system import Model, System
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError, there_are
from bleuprint.runtime.yaml_tree import Tree

# Settings of a model that decide no weight's shape or use; positions: of those that are learned.
_FREE = {"dropout", "layer_drop", "init", "max_positions"}

_Cells = Mapping[str, Mapping[str, System | None]]


def first_difference(model: Model, of_start: Model) -> str | None:
    """The first setting by which weights of one model do not fit the other, with both values."""
    learned = model.positional_encoding == "learned"
    for name in (field.name for field in fields(model)):
        values = getattr(model, name), getattr(of_start, name)
        if values[0] != values[1] and (name not in _FREE or (name == "max_positions" and learned)):
            return f"model.{name} is {values[0]}, and {values[1]} of its start"
    return None


def check_starts(cells: _Cells) -> None:
    """Raise SettingError at a start that is no training, of another architecture, or a cycle."""
    graph: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for system, row in cells.items():
        for corpus, cell in row.items():
            if cell is not None and cell.train.from_ and (start := cell.train.from_.cell):
                if message := _problem(cell, *start, cells):
                    raise SettingError(["cells", system, corpus, "train", "from"], message)
                graph[system, corpus] = [start]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " -> ".join(" on ".join(cell) for cell in reversed(error.args[1]))
        at = ["cells", *error.args[1][0], "train", "from"]
        raise SettingError(at, f"a cycle, each the start of the next: {cycle}") from None


def _problem(cell: System, system: str, corpus: str, cells: _Cells) -> str | None:
    if system not in cells:
        return f"no system {system!r}; {there_are(system, cells)}"
    if (start := cells[system].get(corpus)) is None:
        trained = [name for name, each in cells[system].items() if each is not None]
        return f"{system} is not trained on {corpus!r}; {there_are(corpus, trained)}"
    if start.average.ensemble:
        return f"{system} is an ensemble (average.ensemble), not one model"
    return first_difference(cell.model, start.model)


def misplaced(cells: Mapping[str, Any], tuned: Tree) -> Iterator[UserError]:
    """Errors of rows of whose start DVC would not know; `tuned`: as params.yaml has them."""
    for name, row in cells.items():
        own = _start(tuned.get(name))
        if name in tuned and not {"system", "corpus"} <= own.keys():
            message = "a row of tuned needs its own train.from: {system: ..., corpus: ...}"
            yield tuned.places[name].error(message)
            continue
        for cell in row.values() if isinstance(row, Mapping) else ():
            start = _start(cell)
            if {"system", "corpus"} <= start.keys() and "release" not in start and start != own:
                yield start.places["system"].error(
                    "say it once, in train.from of a row under tuned, where DVC reads the order"
                )
                break


def _start(row: Any) -> Tree:
    train = row.get("train") if isinstance(row, Tree) else None
    start = train.get("from") if isinstance(train, Tree) else None
    return start if isinstance(start, Tree) else Tree({}, {})
