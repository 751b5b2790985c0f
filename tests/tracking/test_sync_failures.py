"""What stages and `bleuprint sync` print if MLflow fails."""

import sys
from contextlib import nullcontext

import pytest

from bleuprint.cli.main import main
from bleuprint.config.experiment import load_settings
from bleuprint.tracking import store
from bleuprint.tracking.sync import update_in_stage, update_or_note


@pytest.fixture
def broken_store(monkeypatch):
    """Let opening MLflow's store raise ZeroDivisionError."""
    monkeypatch.setattr(store, "open_client", lambda: 1 / 0)


@pytest.mark.usefixtures("root", "broken_store")
def test_a_failure_of_mlflow_is_a_note_of_one_line(capsys):
    """Opening MLflow's database raises an unexpected error here: a division by zero."""
    update_or_note(load_settings())

    assert capsys.readouterr().err == (
        "bleuprint: note: MLflow does not show these results yet (division by zero). Run: "
        "bleuprint sync\n"
    )


@pytest.mark.usefixtures("root", "broken_store")
def test_a_stage_says_nothing_if_its_runner_logs_all_results_at_the_end(monkeypatch, capsys):
    """Opening MLflow's database fails here, but the runner will say so once at the end.

    Runners such as Snakemake set BLEUPRINT_RUNNER_LOGS for their stages.
    """
    monkeypatch.setenv("BLEUPRINT_RUNNER_LOGS", "1")

    update_in_stage(load_settings())

    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("root", "broken_store")
def test_a_stage_reports_the_failure_of_mlflow_if_no_runner_does(monkeypatch, capsys):
    """Opening MLflow's database fails, and `dvc repro`, for example, logs nothing at its end."""
    monkeypatch.delenv("BLEUPRINT_RUNNER_LOGS", raising=False)

    update_in_stage(load_settings())

    assert "MLflow does not show these results yet (division by zero)" in capsys.readouterr().err


@pytest.fixture
def run_sync_command(monkeypatch):
    """Return a function that runs the part of `bleuprint sync` that logs to MLflow.

    The function returns the exit status. The part before, which records stages in DVC, does
    nothing.
    """
    monkeypatch.setattr("bleuprint.pipeline.recording.record_finished", lambda: None)
    monkeypatch.setattr("bleuprint.pipeline.project_lock.hold_project", lambda _: nullcontext())
    monkeypatch.setattr("sys.argv", ["bleuprint", "sync"])

    def run_command():
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    return run_command


@pytest.mark.usefixtures("broken_store")
def test_the_command_sync_reports_a_failure_of_mlflow_in_one_line(root, run_sync_command, capsys):
    """Opening MLflow's database raises an unexpected error here: a division by zero."""
    status = run_sync_command()

    assert status == 1
    error = f"bleuprint: error: MLflow at sqlite:///{root / 'mlflow.db'}: division by zero\n"
    assert capsys.readouterr().err == error


def test_the_command_sync_names_a_module_that_mlflow_cannot_import(
    root, run_sync_command, monkeypatch, capsys
):
    """In place of MLflow, a module of the same name is found, which imports a missing module."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "mlflow":
            monkeypatch.delitem(sys.modules, name)
    (root / "broken").mkdir()
    (root / "broken" / "mlflow.py").write_text("import a_module_that_is_not_installed\n")
    monkeypatch.syspath_prepend(root / "broken")

    assert run_sync_command() == 1

    assert capsys.readouterr().err == (
        f"bleuprint: error: MLflow at sqlite:///{root / 'mlflow.db'}: the Python module "
        "a_module_that_is_not_installed is missing. Install it: pip install "
        "a_module_that_is_not_installed\n"
    )
