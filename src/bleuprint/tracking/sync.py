"""Log the outputs of the stages to MLflow: complete the runs that exist, create those that do not.

`sync` is the command `bleuprint sync`; `update_or_note` and `update_in_stage` do the same after a
pipeline and in the stage report, where a failure is only a note.

An MLflow run shows a training with the scores of its translations. If the same training is used
with another search, the other translations have an MLflow run of their own, since the settings of
the search are parameters.

The outputs of the stages contain no time of day. A run that is created from them ends now and
starts earlier by the duration of its training, and the points of its learning curves are spaced
evenly in between.

The tag `outputs` of a run is the fingerprint of what it shows. If all runs have the expected tag,
nothing is logged. This is looked up without loading MLflow, which takes seconds, if the store is
the project's own database.
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
from bleuprint.tracking.run_content import RunContent, collect_content
from bleuprint.tracking.runs import FINISHED, OUTPUTS

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun
    from mlflow.tracking import MlflowClient

# The folder of a run's artifacts for translations, as in results/.
_HYPOTHESES = "hypotheses"
# MLflow puts the artifacts of a run into PROJECT/mlruns/EXPERIMENT/RUN/artifacts. This is the index
# of PROJECT in the list of the folders above `artifacts`, the innermost first.
_PROJECT_INDEX = 3
# How long to wait for another process that logs the same outputs.
_LOCK_SECONDS = 120


@dataclass
class Outcome:
    """What was done in MLflow for one run.

    Attributes:
        run: The system, the corpus and the seed.
        done: "made" or "completed" if the MLflow run has changed; otherwise empty.
        problem: Which results MLflow does not show, and why; otherwise empty.
        is_missing: Whether the run has no results with the present settings.
    """

    run: Run
    done: str = ""
    problem: str = ""
    is_missing: bool = False


@dataclass(frozen=True)
class _RunToLog:
    """A run whose results exist.

    Attributes:
        outcome: Records what is done for the run.
        content: What its MLflow run should show.
    """

    outcome: Outcome
    content: RunContent


def sync(settings: Settings) -> Iterator[str]:
    """Log all outputs to MLflow. A second call changes nothing.

    Args:
        settings: The settings of params.yaml.

    Yields:
        A line for each run that changed, and for each run whose results or scores are not shown.

    Raises:
        UserError: MLflow cannot be reached or used, or fails in any other way.
    """
    try:
        outcomes = log_results(settings)
    except UserError:
        raise
    except Exception as error:
        # An error of the machine, such as a full disk, has a message of its own.
        if describe_machine_error(error) is not None:
            raise
        raise UserError(
            f"MLflow at {mask(store.store_uri())}: {store.summarize_error(error)}"
        ) from error
    for outcome in outcomes:
        if outcome.done:
            run_name = " ".join(str(part) for part in outcome.run)
            yield f"run {run_name}: {outcome.done}"
        if outcome.problem:
            yield f"{outcome.run}: {outcome.problem}"
    for outcome in outcomes:
        if outcome.is_missing:
            yield (
                f"{outcome.run}: no training with these settings in {outcome.run.results_folder}: "
                "dvc pull or make reproduce"
            )


def update_or_note(settings: Settings) -> None:
    """Log all outputs to MLflow; print a note if that fails, whatever the reason.

    The results do not depend on MLflow, so a failure must not stop the program that has made them.

    Args:
        settings: The settings of params.yaml.
    """
    try:
        note_problems(log_results(settings))
    except Exception as error:
        reason = masked_line(str(error)) or type(error).__name__
        print_message(
            f"MLflow does not show these results yet ({reason}). Run: bleuprint sync", "note"
        )


def update_in_stage(settings: Settings) -> None:
    """Log all outputs to MLflow in a stage, as `update_or_note` does.

    The runner of the stages may log the results again at its end and report failures. It says so in
    an environment variable, and then the stage prints no note.

    Args:
        settings: The settings of params.yaml.
    """
    if environment.RUNNER_LOGS not in os.environ:
        update_or_note(settings)
        return
    with suppress(Exception):
        log_results(settings)


def note_problems(outcomes: Sequence[Outcome]) -> None:
    """Print a note for each run whose results exist but are not shown in MLflow."""
    for outcome in outcomes:
        if outcome.problem:
            print_message(f"MLflow, {outcome.run}: {outcome.problem}", "note")


def log_results(settings: Settings) -> list[Outcome]:
    """Log the outputs of all runs to MLflow.

    Args:
        settings: The settings of params.yaml.

    Returns:
        What was done for each run.

    Raises:
        UserError: MLflow cannot be reached or used.
    """
    outcomes = []
    runs_to_log = []
    for run in trained_runs(settings):
        outcome = Outcome(run)
        outcomes.append(outcome)
        content = _read_content(settings, outcome)
        if content is not None:
            runs_to_log.append(_RunToLog(outcome, content))
    if not runs_to_log or _are_shown(settings.experiment, runs_to_log):
        return outcomes
    with (
        show_elapsed_time("MLflow: logging the results"),
        store.name_store_in_errors(),
        _lock_runs(),
    ):
        client = store.open_client()
        experiment_id = store.experiment_id(client, settings.experiment)
        for run_to_log in runs_to_log:
            _log_run(client, experiment_id, run_to_log)
    return outcomes


def _read_content(settings: Settings, outcome: Outcome) -> RunContent | None:
    """Read what the MLflow run of a run should show.

    Args:
        settings: The settings of params.yaml.
        outcome: Names the run. It records missing results, and results that are damaged.

    Returns:
        The content; None if the run has no results, or only damaged ones.
    """
    try:
        results = Results.find(settings, outcome.run)
        if results is None:
            outcome.is_missing = True
            return None
        scores, problem = results.checked_scores()
        if problem:
            outcome.problem = f"its scores are left out: {problem}"
        return collect_content(results, scores)
    except UserError as error:
        # A file is damaged. The results of the other runs are still logged.
        outcome.problem = f"its results are left out: {error}"
        return None


def _are_shown(experiment: str, runs_to_log: Sequence[_RunToLog]) -> bool:
    """Return whether the project's database shows these runs already; False for a server."""
    path = store.database_file()
    if path is None:
        return False
    expected_outputs = {run_to_log.content.sha256 for run_to_log in runs_to_log}
    return expected_outputs <= database.logged_outputs(path, experiment)


def _lock_runs() -> FileLock:
    """Return the lock of processes that log outputs: two at once would create each run twice."""
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    return FileLock(environment.work_folder() / "mlflow-runs.lock", timeout=_LOCK_SECONDS)


def _log_run(client: "MlflowClient", experiment_id: str, run_to_log: _RunToLog) -> None:
    """Create or complete the MLflow run of a training, and record in its outcome what was done.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        run_to_log: The run.
    """
    from mlflow.exceptions import MlflowException

    outcome = run_to_log.outcome
    content = run_to_log.content
    description = content.description
    existing_run = runs.find_run(client, experiment_id, description.tags)
    is_finished = existing_run is not None and existing_run.info.status == FINISHED
    if existing_run and is_finished and existing_run.data.tags.get(OUTPUTS) == content.sha256:
        return
    if existing_run is None and not content.has_scores:
        # If MLflow shows the training with the translations of another search, a run of its own
        # waits until these translations are scored.
        run_of_other_search = runs.find_run(client, experiment_id, description.training)
        if run_of_other_search is not None:
            return
    seconds = content.seconds or 0.0
    run = existing_run or runs.create_run(client, experiment_id, description, {}, seconds)
    is_described = runs.describe_run(client, run, description)
    is_completed = runs.complete_run(client, run, content.tags, content.points, content.metrics)
    if not is_finished:
        end_milliseconds = None
        if content.seconds is not None:
            end_milliseconds = run.info.start_time + round(1000 * seconds)
        client.set_terminated(run.info.run_id, FINISHED, end_milliseconds)
    if existing_run is None:
        outcome.done = "made"
    elif is_described or is_completed or not is_finished:
        outcome.done = "completed"
    try:
        _copy_hypotheses(client, run, content.hypotheses)
    except (MlflowException, OSError) as error:
        outcome.problem = (
            f"its translations are not among the artifacts: {store.summarize_error(error)}"
        )
        return
    # This tag says that everything is logged, so it is set last.
    client.set_tag(run.info.run_id, OUTPUTS, content.sha256)


def _copy_hypotheses(client: "MlflowClient", run: "MlflowRun", hypotheses: Sequence[Path]) -> None:
    """Copy translations into the artifacts of an MLflow run.

    MLflow records absolute paths. If the project was moved or removed since, its old folder is not
    created again, and the translations are not copied.

    Args:
        client: MLflow's client.
        run: The run.
        hypotheses: The files of the translations.
    """
    address = urlsplit(run.info.artifact_uri)
    is_local = address.scheme in ("", "file")
    if is_local:
        outer_folders = Path(unquote(address.path)).parents
        has_project = len(outer_folders) > _PROJECT_INDEX
        if has_project and not outer_folders[_PROJECT_INDEX].is_dir():
            return
    for path in hypotheses:
        client.log_artifact(run.info.run_id, str(path), _HYPOTHESES)
