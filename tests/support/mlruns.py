"""The runs of a project in MLflow, and results that change."""

import dataclasses
import sqlite3

from bleuprint.config.experiment import load
from bleuprint.runtime.files import read_json, write_json
from measuring import value_of
from mlservers import runs_in
from systems import with_systems


def store(root):
    return f"sqlite:///{root / 'mlflow.db'}"


def dump(root):
    with sqlite3.connect(root / "mlflow.db") as database:
        return list(database.iterdump())


def named(root, experiment="trial_run"):
    """All runs by name."""
    client, runs = runs_in(store(root), experiment)
    assert len(runs) == len({run.info.run_name for run in runs})
    return client, {run.info.run_name: run for run in runs}


def decoded_otherwise(cell, beam, score):
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


def bleu(cell):
    of = read_json(cell.results / "scores.json")
    return float(value_of(of["first"], "bleu") or 0)


def is_bleu(measured):
    return (measured["measure"], measured["group"]) == ("bleu", "")
