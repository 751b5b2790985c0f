"""Log the stages' outputs to MLflow: complete the runs that exist, create those that do not.

A run is a training, with the scores of its translations. An experiment in a temporary folder leaves
the project's scores as they are.

The outputs contain no time of day. A run created from them ends when it is created and starts
earlier by the duration of its training, over which the points of its curves are spaced evenly. Its
tag `bleuprint.times` says so.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.comet.score import read_comet
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.runtime.secrets import mask
from bleuprint.scoring.metrics import DIGITS, METRICS
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.score import SetScores
from bleuprint.tracking import runs, store
from bleuprint.tracking.cell_results import CellResults, cells_of
from bleuprint.tracking.runs import Content, Description
from bleuprint.tracking.timings import Training, read_training
from bleuprint.training.history import Curves

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run
    from mlflow.tracking import MlflowClient

TIMES = "bleuprint.times"
# Tags of the run that holds the report page: the experiment's name, and the page's SHA-256.
REPORT, _PAGE_SUM = "bleuprint.report", "bleuprint.page"
_REBUILT = "rebuilt: ended when it was synchronized; duration as measured, points spaced evenly"


@dataclass(frozen=True)
class TrainedCell:
    """A finished training for MLflow.

    `scores`: its metrics by test set, with the settings of decoding, `decode`; without them,
    `problem` may say why.
    """

    description: Description
    content: Content
    seconds: float
    scores: Mapping[str, float] = field(default_factory=dict)
    decode: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    def content_in(self, run: "Run | None") -> Content:
        """The content for its run, with scores unless the run keeps those of the project."""
        scored = run is not None and any(name.split("/")[0] in METRICS for name in run.data.metrics)
        if environment.is_copy() and scored:
            return self.content
        return dataclasses.replace(
            self.content,
            tags={**self.content.tags, **self.decode},
            summary={**self.content.summary, **self.scores},
        )


def sync(settings: Settings, make: bool = True) -> Iterator[str]:
    """Log all outputs to MLflow; yields a line for each run that changed.

    Without `make`, no run of a training is created. A second call changes nothing. Raises UserError
    if MLflow cannot be reached or used.
    """
    trained = [entry for cell in cells_of(settings) if (entry := read_cell(settings, cell))]
    yield from _log_all(settings, trained, make)


def sync_all(settings: Settings) -> Iterator[str]:
    """Sync, and name each cell that cannot be logged. Raises UserError if none can."""
    by_cell = {cell: read_cell(settings, cell) for cell in cells_of(settings)}
    trained = [entry for entry in by_cell.values() if entry]
    if not trained:
        raise UserError(f"nothing to log: {len(by_cell)} of {len(by_cell)} trainings missing")
    logged = list(_log_all(settings, trained, make=True))
    yield from logged or [f"nothing new to log: MLflow at {mask(store.uri())}"]
    for cell, entry in by_cell.items():
        if entry is None:
            where = f"no training with these settings in {cell.results}"
            yield f"{cell}: {where}: dvc pull or dvc repro"
        elif entry.problem:
            yield f"{cell}: its scores are left out: {entry.problem}"


def read_cell(settings: Settings, cell: Cell) -> TrainedCell | None:
    """The outputs of a cell; None if it is not trained, or was trained with other settings."""
    results = CellResults.find(settings, cell)
    if results is None:
        return None
    facts = results.training
    measured = read_training(cell, facts.fingerprint)
    system = settings.system_on(cell.system, cell.corpus)
    description = Description.of(settings.experiment, cell, system, dataclasses.asdict(facts))
    content = runs.initial_content(description, measured.commit if measured else None)
    tags = {**content.tags, "bleuprint.code": facts.code, "bleuprint.data": facts.data}
    summary = {
        "total/teraflop": facts.flops / 1e12,  # MLflow shows all digits
        "total/target_tokens": float(facts.target_tokens),
    }
    if measured:
        tags |= {"device": measured.device, "versions": measured.versions or "unknown"}
        summary["total/seconds"] = measured.seconds
    scores, problem = results.checked_scores()
    content = dataclasses.replace(
        content, tags=tags, points=_points(results.curves, measured), summary=summary
    )
    seconds = measured.seconds if measured else 0.0
    decode = runs.parameters({"decode": results.translation.decode}) if scores else {}
    return TrainedCell(description, content, seconds, _metrics(results, scores), decode, problem)


def _metrics(results: CellResults, scores: Mapping[str, SetScores]) -> dict[str, float]:
    """The metrics of each test set, KIND/CORPUS/SET."""
    found: dict[str, float] = {}
    for test, metrics in scores.items():
        place = f"{results.cell.corpus}/{test}"
        for kind in (name for name in METRICS if name in metrics):
            found[f"{kind}/{place}"] = metrics[kind]["score"]  # type: ignore[literal-required]
        if loss := metrics["loss"]:
            found |= {f"loss/{place}": loss["loss"], f"perplexity/{place}": loss["perplexity"]}
        for fault in metrics.get("faults", ()):
            if fault["name"] == ANY:  # one of a dozen, which would hide other metrics in Compare
                found[f"test_faulty_lines/{place}"] = float(len(fault["lines"]))
    if results.settings.comet and results.comet.exists():
        for test, comet in read_comet(results.comet).items():
            if test in scores and comet["hypotheses"] == scores[test]["hypotheses"]:
                place = f"{results.cell.corpus}/{test}"
                found[f"comet/{place}"] = round(100 * comet["score"], DIGITS)
    return found


def _log_cell(client: "MlflowClient", experiment: str, trained: TrainedCell, make: bool) -> str:
    """Complete the run of a training; returns what was done: "made", "completed" or nothing."""
    run = runs.find(client, experiment, trained.description.tags)
    if run is None and not make:
        return ""
    content = trained.content_in(run)
    if run is None:
        content = dataclasses.replace(content, tags={**content.tags, TIMES: _REBUILT})
        runs.create(client, experiment, content, trained.seconds)
        return "made"
    changed = runs.complete(client, run, content)
    if run.info.status != "FINISHED":
        end = run.info.start_time + round(1000 * trained.seconds)
        client.set_terminated(run.info.run_id, "FINISHED", end if trained.seconds else None)
        changed = True
    return "completed" if changed else ""


def _log_all(settings: Settings, trained: Sequence[TrainedCell], make: bool) -> Iterator[str]:
    with store.failures_named():
        client = store.client()
        if make and trained:
            store.experiment(client, settings.experiment)
        experiment = store.find_experiment(client, settings.experiment)
        if experiment is None:
            return
        for entry in trained:
            if done := _log_cell(client, experiment.experiment_id, entry, make):
                yield f"run {entry.content.name}: {done}"
        if not environment.is_copy():  # the page stays that of the project
            yield from _log_report(client, experiment.experiment_id, settings.experiment)


def _log_report(client: "MlflowClient", experiment: str, name: str) -> Iterator[str]:
    """A separate run holds the report page, which covers all runs."""
    page, table = Path("reports", "index.html"), Path("reports", "table.md")
    if not page.exists():
        return
    note = (
        f"The report of experiment **{name}**: artifact `{page.name}`, and `{table.name}` "
        "for its table alone.\n\nTo make it again: `dvc repro report`"
    )
    tags = {REPORT: name}
    content = Content("report", {**tags, "mlflow.source.name": "stages/report.py"}, note)
    run = runs.find(client, experiment, tags) or runs.create(client, experiment, content, 0.0)
    digest = sha256_of(page)
    if run.data.tags.get(_PAGE_SUM) != digest:
        for path in filter(Path.exists, (page, table)):
            client.log_artifact(run.info.run_id, str(path))
        client.set_tag(run.info.run_id, _PAGE_SUM, digest)
        yield "run report: the page attached"


def _points(curves: Curves | None, measured: Training | None) -> list["Metric"]:
    """The points of the curves, spaced evenly over the duration of the training."""
    from mlflow.entities import Metric

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
        Metric(f"{kind}/{name}", value, round(pace * values["update"]), values["update"])
        for kind, values in points
        for name, value in values.items()
        if name not in ("update", "tokens") and value is not None
    ]
