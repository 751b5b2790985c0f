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
    """Log the results of all runs to MLflow, and report what was done. A second call does nothing.

    Args:
        settings: The settings of params.yaml.

    Yields:
        Lines for the user. First one for each MLflow run that was created or completed, and for
        each run whose results or scores could not be logged. Then one for each run without results.

    Raises:
        UserError: MLflow cannot be reached or used, or fails in any other way.
    """
    try:
        outcomes = log_results(settings)
    except UserError:
        raise  # It has a message for the user already.
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
                f"{outcome.run}: {outcome.run.results_folder} contains no training with these "
                "settings. Train it: make reproduce. Or download it: dvc pull"
            )


def update_or_note(settings: Settings) -> None:
    """Log the results of all runs to MLflow; if that fails, print a note instead of an error.

    The results exist without MLflow, too. So the program that has computed them must not fail if
    MLflow does, for whatever reason.

    Args:
        settings: The settings of params.yaml.
    """
    try:
        outcomes = log_results(settings)
        print_problems(outcomes)
    except Exception as error:
        reason = masked_line(str(error)) or type(error).__name__
        print_message(
            f"MLflow does not show these results yet ({reason}). Run: bleuprint sync", "note"
        )


def update_in_stage(settings: Settings) -> None:
    """Log the results of all runs to MLflow at the end of a stage of the pipeline.

    A failure does not stop the stage, which only prints a note about it. The program that runs all
    stages may log the results again at its end, and print the note itself. It then sets an
    environment variable, and the stage prints nothing, so that the user sees one note.

    Args:
        settings: The settings of params.yaml.
    """
    if environment.RUNNER_LOGS not in os.environ:
        update_or_note(settings)
        return
    # The program that runs the stages logs again at its end, and reports a failure then.
    with suppress(Exception):
        log_results(settings)


def print_problems(outcomes: Sequence[Outcome]) -> None:
    """Print a note for each run whose results exist but could not be logged to MLflow.

    Args:
        outcomes: What `log_results` did for each run.
    """
    for outcome in outcomes:
        if outcome.problem:
            print_message(f"MLflow, {outcome.run}: {outcome.problem}", "note")


def log_results(settings: Settings) -> list[Outcome]:
    """Log the results of all runs to MLflow, unless it shows them already.

    A run is a system that is trained on a corpus with one seed. MLflow is imported only if there is
    something to log, because the import takes seconds.

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
    """Read the results of a training that its MLflow run should show.

    Args:
        settings: The settings of params.yaml.
        outcome: Which training to read. If its results are missing or damaged, this is recorded
            here: `is_missing` or `problem` is set.

    Returns:
        The content of the MLflow run; None if the training has no results, or a file of them is
        damaged.
    """
    try:
        results = Results.find(settings, outcome.run)
        if results is None:
            outcome.is_missing = True
            return None
        scores, problem = results.checked_scores()
        if problem:
            outcome.problem = f"its scores were not logged: {problem}"
        return collect_content(results, scores)
    except UserError as error:
        # A file is damaged. The results of the other runs are still logged.
        outcome.problem = f"its results were not logged: {error}"
        return None


def _are_shown(experiment: str, runs_to_log: Sequence[_RunToLog]) -> bool:
    """Return whether MLflow's database already shows the present results of all these runs.

    This is quick, because MLflow is not imported: the database contains a hash of the results that
    each MLflow run shows, which is compared with the hash of the present results. Only a database
    in a file can be read like this, so the answer for a server is always False.

    Args:
        experiment: The name of the experiment.
        runs_to_log: The runs that have results.
    """
    path = store.database_file()
    if path is None:
        return False
    present_hashes = {run_to_log.content.sha256 for run_to_log in runs_to_log}
    return present_hashes.issubset(database.logged_outputs(path, experiment))


def _lock_runs() -> FileLock:
    """Return a lock that only one process at a time can hold while it logs results.

    Without it, two processes could both find that an MLflow run is missing, and create it twice.
    """
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    return FileLock(environment.work_folder() / "mlflow-runs.lock", timeout=_LOCK_SECONDS)


def _log_run(client: "MlflowClient", experiment_id: str, run_to_log: _RunToLog) -> None:
    """Create the MLflow run of a training, or log what its existing run lacks.

    What was done, and what has failed, is recorded in the outcome of the run.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        run_to_log: The training, with the content that its MLflow run should show.
    """
    run = runs.find_run(client, experiment_id, run_to_log.content.description.tags)
    if run is None:
        _log_new_run(client, experiment_id, run_to_log)
    else:
        _complete_existing_run(client, run, run_to_log)


def _log_new_run(client: "MlflowClient", experiment_id: str, run_to_log: _RunToLog) -> None:
    """Create the MLflow run of a training that has no MLflow run with its decoding settings.

    Args:
        client: MLflow's client.
        experiment_id: The id of the MLflow experiment.
        run_to_log: The training, with the content that its MLflow run should show.
    """
    content = run_to_log.content
    description = content.description
    if not content.has_scores:
        # The training may have an MLflow run for other decoding settings. A second run, for these
        # settings, is not created before it has scores.
        run_of_training = runs.find_run(client, experiment_id, description.training_tags)
        if run_of_training is not None:
            return
    run = runs.create_run(
        client,
        experiment_id,
        description,
        tags={},
        seconds=content.seconds or 0.0,
    )
    runs.describe_run(client, run, description)
    runs.complete_run(client, run, content.tags, content.points, content.metrics)
    _end_run(client, run, content.seconds)
    run_to_log.outcome.done = "made"
    _finish_log(client, run, run_to_log)


def _complete_existing_run(client: "MlflowClient", run: "MlflowRun", run_to_log: _RunToLog) -> None:
    """Log what the MLflow run of a training lacks, and end it if it was not ended.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        run_to_log: The training, with the content that its MLflow run should show.
    """
    content = run_to_log.content
    is_finished = run.info.status == FINISHED
    shows_all_results = run.data.tags.get(OUTPUTS) == content.sha256
    if is_finished and shows_all_results:
        return
    has_new_description = runs.describe_run(client, run, content.description)
    has_new_results = runs.complete_run(client, run, content.tags, content.points, content.metrics)
    if not is_finished:
        _end_run(client, run, content.seconds)
    if has_new_description or has_new_results or not is_finished:
        run_to_log.outcome.done = "completed"
    _finish_log(client, run, run_to_log)


def _end_run(client: "MlflowClient", run: "MlflowRun", seconds: float | None) -> None:
    """Give an MLflow run the status FINISHED, and a time at which it ended.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        seconds: How long the training took; None if that is not known. The run then ends now.
    """
    end_milliseconds = None
    if seconds is not None:
        end_milliseconds = run.info.start_time + round(1000 * seconds)
    client.set_terminated(run.info.run_id, FINISHED, end_milliseconds)


def _finish_log(client: "MlflowClient", run: "MlflowRun", run_to_log: _RunToLog) -> None:
    """Copy the translations to an MLflow run, and then mark the run as up to date.

    The mark is a tag with a hash of the results. A run without it is logged again at the next call.
    That is why the mark is not set if the translations cannot be copied.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        run_to_log: The content of the run, and its outcome, in which a failure is recorded.
    """
    from mlflow.exceptions import MlflowException

    content = run_to_log.content
    try:
        _copy_hypotheses(client, run, content.hypotheses)
    except (MlflowException, OSError) as error:
        run_to_log.outcome.problem = (
            f"its translations could not be copied to MLflow: {store.summarize_error(error)}"
        )
        return
    client.set_tag(run.info.run_id, OUTPUTS, content.sha256)


def _copy_hypotheses(client: "MlflowClient", run: "MlflowRun", hypotheses: Sequence[Path]) -> None:
    """Copy files with translations to the artifacts of an MLflow run.

    If the artifacts of the run are in a project that has been moved or removed since, nothing is
    copied: MLflow would create the folder of the old project again.

    Args:
        client: MLflow's client.
        run: The MLflow run.
        hypotheses: The files with the translations.
    """
    if _is_project_gone(run):
        return
    for path in hypotheses:
        client.log_artifact(run.info.run_id, str(path), _HYPOTHESES)


def _is_project_gone(run: "MlflowRun") -> bool:
    """Return whether the project in which an MLflow run keeps its artifacts does not exist now.

    MLflow records the absolute path of the artifacts when it creates a run. By default it is
    PROJECT/mlruns/EXPERIMENT/RUN/artifacts. On a server, the artifacts are not in a project.
    """
    address = urlsplit(run.info.artifact_uri)
    is_local = address.scheme in ("", "file")
    if not is_local:
        return False
    # The innermost first: RUN, EXPERIMENT, mlruns, PROJECT.
    outer_folders = Path(unquote(address.path)).parents
    if len(outer_folders) <= _PROJECT_INDEX:
        return False
    project = outer_folders[_PROJECT_INDEX]
    return not project.is_dir()
