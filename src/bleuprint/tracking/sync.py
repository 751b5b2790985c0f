"""Log the stages' outputs to MLflow: complete the runs that exist, create those that do not.

A run is a training, with the scores of its translations. An experiment in a temporary folder leaves
the project's scores as they are. The outputs contain no time of day: a run made from them ends when
it is made and begins earlier by the duration of its training, over which the points of its curves
are spaced evenly.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from bleuprint.cells.results import Results
from bleuprint.config.cells import cells_of
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime import environment
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.record import SetScores
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import FINISHED, Description, Point
from bleuprint.tracking.timings import Training, read_training
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


@dataclass(frozen=True)
class TrainedCell:
    """A finished training for MLflow.

    `totals`: metrics of the training; `scores`: those of its translations, KIND/CORPUS/SET, with
    the settings of decoding, `decode`; without them, `problem` may say why.
    """

    description: Description
    tags: Mapping[str, str]
    points: Sequence[Point]
    totals: Mapping[str, float]
    seconds: float
    scores: Mapping[str, float]
    decode: Mapping[str, str]
    problem: str


def sync(settings: Settings, make: bool = True) -> Iterator[str]:
    """Log all outputs to MLflow; yields a line for each run that changed, each cell left out.

    Without `make`, no run is created. A second call changes nothing. Raises UserError if MLflow
    cannot be reached or used.
    """
    cells = {cell: read_cell(settings, cell) for cell in cells_of(settings)}
    trained = [entry for entry in cells.values() if entry]
    if trained:
        with store.failures_named():
            client = store.client()
            experiment = store.experiment(client, settings.experiment, make)
            for each in trained if experiment else ():
                if done := _log_cell(client, experiment, each, make):
                    yield f"run {' '.join(map(str, each.description.cell))}: {done}"
    for cell, entry in cells.items():
        if entry is None:
            where = f"no training with these settings in {cell.results}"
            yield f"{cell}: {where}: dvc pull or dvc repro"
        elif entry.problem:
            yield f"{cell}: its scores are left out: {entry.problem}"


def read_cell(settings: Settings, cell: Cell) -> TrainedCell | None:
    """The outputs of a cell; None if it is not trained, or was trained with other settings."""
    results = Results.find(settings, cell)
    if results is None:
        return None
    facts, tags = results.training, dict[str, str]()
    totals = {"total/teraflop": facts.flops / 1e12}  # MLflow shows all digits
    totals["total/target_tokens"] = float(facts.target_tokens)
    if measured := read_training(cell, facts.fingerprint):
        tags = {"device": measured.device, "versions": measured.versions or "unknown"}
        tags |= runs.commit_tags(measured.commit)
        totals["total/seconds"] = measured.seconds
    scores, problem = results.checked_scores()
    training = settings.system_on(cell.system, cell.corpus), facts.fingerprint, facts.parameters
    description = Description.of(settings.experiment, cell, *training)
    points, metrics = _points(results.curves, measured), _metrics(results, scores)
    seconds = measured.seconds if measured else 0.0
    decode = dotted({"decode": results.translation.decode}) if scores else {}
    return TrainedCell(description, tags, points, totals, seconds, metrics, decode, problem)


def _metrics(results: Results, scores: Mapping[str, SetScores]) -> dict[str, float]:
    """The metrics of each test set, KIND/CORPUS/SET."""
    # of the faults any, one of a dozen, which would hide other metrics in Compare
    kinds = {key: key for key, each in MEASURES.items() if each.kind in ("score", "figure")}
    kinds[ANY] = "test_faulty_lines"
    return {
        f"{kinds[each['measure']]}/{results.cell.corpus}/{test}": each["value"]
        for test, of_test in scores.items()
        for each in of_test["measures"]
        if each["measure"] in kinds and not each["group"]
    }


def _log_cell(client: "MlflowClient", experiment: str, trained: TrainedCell, make: bool) -> str:
    """Complete the run of a training; returns what was done: "made", "completed" or nothing."""
    found = runs.find(client, experiment, trained.description)
    if found is None and not make:
        return ""
    run = found or runs.create(client, experiment, trained.description, {}, trained.seconds)
    tags, scores = dict(trained.tags), dict(trained.totals)
    kinds = {name.split("/")[0] for name in run.data.metrics}
    if not environment.is_copy() or kinds.isdisjoint(MEASURES):
        tags |= trained.decode
        scores |= trained.scores
    changed = runs.complete(client, run, tags, trained.points, scores)
    if run.info.status != FINISHED:
        end = run.info.start_time + round(1000 * trained.seconds)
        client.set_terminated(run.info.run_id, FINISHED, end if trained.seconds else None)
        changed = True
    return "made" if found is None else "completed" if changed else ""


def _points(curves: Curves | None, measured: Training | None) -> list[Point]:
    """The points of the curves, spaced evenly over the duration of the training."""
    if curves is None:
        return []
    pace = 1000 * measured.seconds / curves.validation[-1].update if measured else 0.0
    rates = (measured and measured.rates) or repeat(None)
    points = [
        ("train", {**vars(entry), "tokens_per_second": rate})
        for entry, rate in zip(curves.training, rates, strict=False)
    ]
    points += [("valid", vars(validation)) for validation in curves.validation]
    return [
        Point(f"{kind}/{name}", value, round(pace * values["update"]), values["update"])
        for kind, values in points
        for name, value in values.items()
        if name not in ("update", "tokens") and value is not None
    ]
