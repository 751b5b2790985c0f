"""Log the stages' outputs to MLflow: complete the runs that exist, create those that do not.

A run is a training, with the scores of its translations; another search, whose settings are
parameters, too, has a run of its own. The outputs contain no time of day: a run made from them ends
when it is made and begins earlier by the duration of its training, over which the points of its
curves are spaced evenly.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bleuprint.cells.results import Results
from bleuprint.config.cells import cells_of
from bleuprint.config.experiment import Settings
from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.record import SetScores
from bleuprint.tracking import runs, store
from bleuprint.tracking.runs import FINISHED, Description, Point
from bleuprint.tracking.timings import Training, read_training
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient


def sync(settings: Settings, make: bool = True) -> Iterator[str]:
    """Log all outputs to MLflow; yields a line for each run that changed, each cell left out.

    Without `make`, a run is created only for other scores of a training that has one. A second call
    changes nothing. Raises UserError if MLflow cannot be reached or used.
    """
    cells = {cell: Results.find(settings, cell) for cell in cells_of(settings)}
    if any(cells.values()):
        with store.failures_named():
            client = store.client()
            experiment = store.experiment(client, settings.experiment, make)
            for results in filter(None, cells.values()):
                scores, problem = results.checked_scores()
                done = experiment and _log_cell(client, experiment, results, scores, make)
                if done:
                    yield f"run {' '.join(map(str, results.cell))}: {done}"
                if problem:
                    yield f"{results.cell}: its scores are left out: {problem}"
    for cell in (cell for cell, results in cells.items() if results is None):
        where = f"no training with these settings in {cell.results}"
        yield f"{cell}: {where}: dvc pull or make reproduce"


def described(results: Results) -> Description:
    """The training of a cell, as its run shows it."""
    training = results.training.fingerprint, results.training.parameters
    return Description.of(results.settings, results.cell, *training)


def metrics(scores: Mapping[str, SetScores]) -> dict[str, float]:
    """The metrics of each test set, KIND/SET: short, as MLflow shows 20 characters of a name.

    The corpus is a parameter and part of the run's name.
    """
    # of the faults any, one of a dozen, which would hide other metrics in Compare
    kinds = {key: key for key, each in MEASURES.items() if each.kind in ("score", "figure")}
    kinds[ANY] = "test_faulty_lines"
    return {
        f"{kinds[each['measure']]}/{test}": each["value"]
        for test, of_test in scores.items()
        for each in of_test["measures"]
        if each["measure"] in kinds and not each["group"]
    }


def _log_cell(
    client: "MlflowClient",
    experiment: str,
    results: Results,
    scores: Mapping[str, SetScores],
    make: bool,
) -> str:
    """Complete the run of a training; returns what was done: "made", "completed" or nothing."""
    description, facts = described(results), results.training
    measured = read_training(results.cell, facts.fingerprint)
    seconds = measured.seconds if measured else 0.0
    found = runs.find(client, experiment, description.tags)
    if not found:
        other = runs.find(client, experiment, description.training)
        if not (scores if other else make):
            return ""
    run = found or runs.create(client, experiment, description, {}, seconds)
    lacked = runs.describe(client, run, description)
    tags, totals = dict[str, str](), {"total/teraflop": facts.flops / 1e12}  # all digits are shown
    totals["total/target_tokens"] = float(facts.target_tokens)
    if measured:
        tags = {"device": measured.device, "versions": measured.versions or "unknown"}
        tags |= runs.commit_tags(measured.commit)
        totals["total/seconds"] = seconds
    if facts.early_end:
        tags["early_end"] = str(facts.early_end)
    totals |= metrics(scores)
    changed = runs.complete(client, run, tags, _points(results.curves, measured), totals)
    if run.info.status != FINISHED:
        end = run.info.start_time + round(1000 * seconds)
        client.set_terminated(run.info.run_id, FINISHED, end if measured else None)
        changed = True
    return "made" if found is None else "completed" if changed or lacked else ""


def _points(curves: Curves | None, measured: Training | None) -> list[Point]:
    """The points of the curves, spaced evenly over the duration of the training."""
    if curves is None:
        return []
    pace = 1000 * measured.seconds / curves.validation[-1].update if measured else 0.0
    points = [("train", vars(entry)) for entry in curves.training]
    points += [("valid", vars(entry)) for entry in curves.validation]
    return [
        Point(f"{kind}/{name}", value, round(pace * values["update"]), values["update"])
        for kind, values in points
        for name, value in values.items()
        if name not in ("update", "tokens") and value is not None
    ]
