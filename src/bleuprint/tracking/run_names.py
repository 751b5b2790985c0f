"""What differs between the trainings of an experiment: it is in their names, and in a tag.

A run is called by its system; by its corpus and seed if there are several; and by the settings in
which it differs from other runs of the same cell, as after a rerun with other settings.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from bleuprint.config.paths import Cell
from bleuprint.tracking import runs

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

# Tags: the settings that differ, and the name that was given, since users may rename a run.
DIFFERS, _NAMED = "differs", "bleuprint.name"
_LENGTH = 250  # of a name; MLflow's tag of it is longer


def rename(client: "MlflowClient", experiment: str) -> bool:
    """Name all trainings of an experiment by what differs; returns whether anything changed.

    Names that users gave are kept.
    """
    trainings = list(_trainings(client, experiment))
    names, differences = _names(trainings), _differences(list(map(_settings, trainings)))
    changed = False
    for run, name, differs in zip(trainings, names, differences, strict=True):
        held = run.data.tags
        given = held.get(_NAMED, " ".join(map(str, _cell(run))))
        if run.info.run_name == given != name:
            client.update_run(run.info.run_id, name=name)
            client.set_tag(run.info.run_id, _NAMED, name)
            changed = True
        if held.get(DIFFERS, "") != differs:
            client.set_tag(run.info.run_id, DIFFERS, differs)
            changed = True
    return changed


def _trainings(client: "MlflowClient", experiment: str) -> Iterator["Run"]:
    query, token = f"tags.`{runs.FINGERPRINT}` != ''", None
    while True:
        page = client.search_runs([experiment], query, page_token=token)
        yield from page
        if not (token := page.token):
            return


def _names(trainings: Sequence["Run"]) -> list[str]:
    cells = list(map(_cell, trainings))
    corpora = _without_common_start({cell.corpus for cell in cells})
    several = len({cell.seed for cell in cells}) > 1
    more = {
        cell: iter(_differences([_identity(run) for run in trainings if _cell(run) == cell]))
        for cell in cells
    }
    names = []
    for cell in cells:
        parts = [cell.system, corpora[cell.corpus], str(cell.seed) if several else ""]
        name = " ".join(filter(None, [*parts, next(more[cell])]))
        names.append(name if len(name) <= _LENGTH else f"{name[: _LENGTH - 1]}…")
    return names


def _without_common_start(names: Iterable[str]) -> dict[str, str]:
    """Names without the parts before a hyphen that all share: de for news-en-de and news-en-fr.

    A single name becomes empty, since nothing differs.
    """
    split = {name: name.split("-") for name in names}
    if len(split) == 1:
        return dict.fromkeys(split, "")
    positions = zip(*(parts[:-1] for parts in split.values()), strict=False)
    shared = len(list(takewhile(lambda parts: len(set(parts)) == 1, positions)))
    return {name: "-".join(parts[shared:]) for name, parts in split.items()}


def _differences(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """For each, its values of the settings that not all have alike, by the end of their key."""
    found = dict.fromkeys(key for each in settings for key in each)
    keys = [key for key in found if len({each.get(key) for each in settings}) > 1]
    ends = Counter(key.rpartition(".")[2] for key in keys)
    shown = {key: end if ends[end := key.rpartition(".")[2]] == 1 else key for key in keys}
    return [
        ", ".join(f"{shown[key]} {each[key]}" for key in keys if key in each) for each in settings
    ]


def _settings(run: "Run") -> dict[str, str]:
    """Settings of model, training and decoding."""
    held = {**run.data.params, **run.data.tags}
    return {
        key: held[key] for key in sorted(held) if key.startswith(("model.", "train.", "decode."))
    }


def _identity(run: "Run") -> dict[str, str]:
    """Settings, and the beginning of what else a training depends on."""
    marks = {key: run.data.tags.get(f"bleuprint.{key}", "")[:8] for key in ("data", "code")}
    return {**_settings(run), **{key: mark for key, mark in marks.items() if mark}}


def _cell(run: "Run") -> Cell:
    system, corpus, seed = (run.data.tags[name] for name in Cell._fields)
    return Cell(system, corpus, int(seed))
