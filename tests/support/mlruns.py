"""The runs of a project in MLflow, and results that change."""

import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import Cell
from bleuprint.runtime.files import read_json, write_json
from measuring import value_of
from mlservers import runs_in
from systems import with_systems


def store(root: Path) -> str:
    return f"sqlite:///{root / 'mlflow.db'}"


def dump(root: Path) -> list[str]:
    with sqlite3.connect(root / "mlflow.db") as database:
        return list(database.iterdump())


def named(root: Path, experiment: str = "trial_run") -> tuple[Any, dict[str, Any]]:
    """All runs by name."""
    client, runs = runs_in(store(root), experiment)
    assert len(runs) == len({run.info.run_name for run in runs})
    return client, {run.info.run_name: run for run in runs}


def decoded_otherwise(cell: Cell, beam: int, score: float) -> Settings:
    """Give the results of a cell the translations and scores of another beam; its settings."""
    path = cell.results / "scores.json"
    content = read_json(path)
    (measured,) = (each for each in content["first"]["measures"] if is_bleu(each))
    measured["value"] = score
    write_json(path, content)
    path = cell.results / "translation.json"
    record = read_json(path)
    record["decode"]["beam"] = beam
    write_json(path, record)
    settings = load()
    system = settings.system(cell.system)
    other = dataclasses.replace(system, decode=dataclasses.replace(system.decode, beam=beam))
    return with_systems(settings, {cell.system: other})


def bleu(cell: Cell) -> float:
    of = read_json(cell.results / "scores.json")
    return float(value_of(of["first"], "bleu") or 0)


def is_bleu(measured: dict[str, Any]) -> bool:
    return (measured["measure"], measured["group"]) == ("bleu", "")
