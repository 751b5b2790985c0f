"""Log the stages' outputs to MLflow: complete the runs that exist, create those that do not.

A run is a training, with the scores of its translations; another search, whose settings are
parameters, too, has a run of its own. The outputs contain no time of day: a run made from them ends
when it is made and begins earlier by the duration of its training, over which the points of its
curves are spaced evenly.

The tag `outputs` of a run is the fingerprint of what it shows. Where all runs have the expected
one, nothing is logged, and MLflow, which takes seconds to load, is not loaded for the project's own
database.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import trained_runs
from bleuprint.runs.results import Results
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, masked_line, print_message
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.secrets import mask
from bleuprint.tracking import database, runs, store
from bleuprint.tracking.run_content import RunContent, content_of
from bleuprint.tracking.runs import FINISHED, OUTPUTS

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.tracking import MlflowClient

# The folder of a run's artifacts for translations, as in results/.
_HYPOTHESES = "hypotheses"
# Which folder above a run's artifacts is the project's.
_PROJECT = 3
# Seconds to wait for another process that logs the same outputs.
_LOCKED = 120


@dataclass
class Outcome:
    """What became of a run in MLflow.

    `done` is "made" or "completed" if its run has changed. `problem` says what is not shown, and
    why. `is_missing`: the run has no results with the present settings.
    """

    run: Run
    done: str = ""
    problem: str = ""
    is_missing: bool = False


def sync(settings: Settings) -> Iterator[str]:
    """Log all outputs to MLflow, and yield lines that say what was done.

    A second call changes nothing.

    Args:
        settings: The settings of params.yaml.

    Yields:
        A line for each run that changed, and for each run whose results or scores are not shown.

    Raises:
        UserError: If MLflow cannot be reached or used, or fails in any other way.
    """
    try:
        outcomes = log_results(settings)
    except UserError:
        raise
    except Exception as error:
        if describe_machine_error(error) is not None:  # of the machine, which has its own message
            raise
        raise UserError(f"MLflow at {mask(store.uri())}: {store.reason(error)}") from error
    for outcome in outcomes:
        if outcome.done:
            yield f"run {' '.join(map(str, outcome.run))}: {outcome.done}"
        if outcome.problem:
            yield f"{outcome.run}: {outcome.problem}"
    for outcome in outcomes:
        if outcome.is_missing:
            where = f"no training with these settings in {outcome.run.results_folder}"
            yield f"{outcome.run}: {where}: dvc pull or make reproduce"


def update_or_note(settings: Settings) -> None:
    """Bring MLflow up to date with the outputs; a failure is a note, whatever it is.

    The results do not depend on MLflow, so that no failure of it may fail what has made them.
    """
    try:
        note_problems(log_results(settings))
    except Exception as error:
        why = masked_line(str(error)) or type(error).__name__
        print_message(
            f"MLflow does not show these results yet ({why}). Run: bleuprint sync", "note"
        )


def update_in_stage(settings: Settings) -> None:
    """Bring MLflow up to date with the outputs in a stage; see `update_or_note`.

    The stage prints no note if its runner logs the results again at its end, and says what fails.
    """
    if environment.RUNNER_LOGS not in os.environ:
        update_or_note(settings)
        return
    with suppress(Exception):
        log_results(settings)


def note_problems(outcomes: Sequence[Outcome]) -> None:
    """Print what MLflow does not show of results that exist."""
    for outcome in outcomes:
        if outcome.problem:
            print_message(f"MLflow, {outcome.run}: {outcome.problem}", "note")


def log_results(settings: Settings) -> list[Outcome]:
    """Log the outputs of all runs to MLflow; return what became of each run.

    Raises:
        UserError: If MLflow cannot be reached or used.
    """
    outcomes = []
    found: list[tuple[Outcome, RunContent]] = []
    for run in trained_runs(settings):
        outcome = Outcome(run)
        outcomes.append(outcome)
        try:
            results = Results.find(settings, run)
            if results is None:
                outcome.is_missing = True
                continue
            scores, problem = results.checked_scores()
            if problem:
                outcome.problem = f"its scores are left out: {problem}"
            found.append((outcome, content_of(results, scores)))
        except UserError as error:  # of a damaged file: the other runs are logged
            outcome.problem = f"its results are left out: {error}"
    contents = [content for _, content in found]
    if contents and not _are_shown(settings.experiment, contents):
        with (
            show_elapsed_time("MLflow: logging the results"),
            store.failures_named(),
            _one_at_a_time(),
        ):
            client = store.client()
            experiment = store.experiment(client, settings.experiment)
            for outcome, content in found:
                _log_run(client, experiment, outcome, content)
    return outcomes


def _are_shown(experiment: str, contents: Sequence[RunContent]) -> bool:
    """Whether the project's database shows all these runs already; of a server False."""
    path = store.database_file()
    if path is None:
        return False
    expected = {content.sha256 for content in contents}
    return expected <= database.logged_outputs(path, experiment)


def _one_at_a_time() -> FileLock:
    """The lock of processes that log outputs: two at once would create each run twice."""
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    return FileLock(environment.work_folder() / "mlflow-runs.lock", timeout=_LOCKED)


def _log_run(
    client: "MlflowClient", experiment: str, outcome: Outcome, content: RunContent
) -> None:
    """Complete the run of a training, and say in its outcome what was done."""
    from mlflow.exceptions import MlflowException

    description, seconds = content.description, content.seconds or 0.0
    found = runs.find(client, experiment, description.tags)
    is_finished = found is not None and found.info.status == FINISHED
    if found and is_finished and found.data.tags.get(OUTPUTS) == content.sha256:
        return
    if found is None:
        other = runs.find(client, experiment, description.training)
        if other and not content.has_scores:
            return  # translations of another search are shown; those of this one are not made yet
    run = found or runs.create(client, experiment, description, {}, seconds)
    is_described = runs.describe(client, run, description)
    is_completed = runs.complete(client, run, content.tags, content.points, content.metrics)
    if not is_finished:
        end = None
        if content.seconds is not None:
            end = run.info.start_time + round(1000 * seconds)
        client.set_terminated(run.info.run_id, FINISHED, end)
    if found is None:
        outcome.done = "made"
    elif is_described or is_completed or not is_finished:
        outcome.done = "completed"
    try:
        _copy_hypotheses(client, run, content.hypotheses)
    except (MlflowException, OSError) as error:
        outcome.problem = f"its translations are not among the artifacts: {store.reason(error)}"
        return
    # last, since it says that all else is logged
    client.set_tag(run.info.run_id, OUTPUTS, content.sha256)


def _copy_hypotheses(client: "MlflowClient", run: "MlflowRun", hypotheses: Sequence[Path]) -> None:
    """Copy translations into a run's artifacts.

    MLflow records absolute paths. Of a project that was moved or removed since, the folder is not
    created again; its translations stay in results/.
    """
    address = urlsplit(run.info.artifact_uri)
    if address.scheme in ("", "file"):
        above = Path(unquote(address.path)).parents  # of PROJECT/mlruns/EXPERIMENT/RUN/artifacts
        if len(above) > _PROJECT and not above[_PROJECT].is_dir():
            return
    for path in hypotheses:
        client.log_artifact(run.info.run_id, str(path), _HYPOTHESES)
