"""However the stages of a clone were run, restored or pulled, MLflow shows the scores of its table.

The results are those of a first clone, which has committed and pushed them: stages whose inputs are
the committed ones do not run. MLflow is asked by its REST interface.
"""

import csv
import json
import re
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

import micro
from servers import free_port


@pytest.fixture(scope="module")
def first_clone(tmp_path_factory):
    """Return the project whose results are committed and pushed.

    It has the systems tiny and wide on the corpora own and other.
    """
    folder = tmp_path_factory.mktemp("first")
    project = micro.make(folder / "project")
    project.edit("params.yaml", "systems:\n", f"{micro.SECOND_CORPUS}systems:\n")
    project.run("dvc", "add", "inputs/a.en", "inputs/a.de")
    project.run("dvc", "remote", "add", "--default", "store", str(folder / "remote"))
    project.commit()
    project.repro()
    # This file hides MLflow; the clones use it.
    (project.root / "src/mlflow.py").unlink()
    project.commit()
    project.run("dvc", "push")
    return project


@pytest.fixture(scope="module")
def clone_without_results(first_clone, tmp_path_factory):
    """Return a clone in which nothing has run: it has the reports and no results."""
    folder = tmp_path_factory.mktemp("without-results") / "clone"
    first_clone.run("git", "clone", "--quiet", str(first_clone.root), str(folder))
    clone = micro.Project(folder)
    clone.run("dvc", "pull", "inputs/a.en.dvc", "inputs/a.de.dvc")
    assert not (clone.root / "results").exists()
    return clone


@pytest.fixture(scope="module")
def clone_with_pulled_results(clone_without_results, tmp_path_factory):
    """Return a clone after `dvc pull`, which gets the results that the first clone has pushed."""
    clone = clone_without_results.copy(tmp_path_factory.mktemp("pulled") / "clone")
    clone.run("dvc", "pull")
    return clone


@pytest.fixture
def clone(clone_without_results, tmp_path):
    """Return a copy of the clone without results, which a test may change."""
    return clone_without_results.copy(tmp_path / "clone")


@pytest.fixture
def pulled_clone(clone_with_pulled_results, tmp_path):
    """Return a copy of the clone with pulled results, which a test may change."""
    return clone_with_pulled_results.copy(tmp_path / "clone")


@pytest.fixture
def server(mlserver, tmp_path):
    """Return the address of an MLflow server that has no runs of the experiment micro.

    A project logs to it if its environment variable MLFLOW_TRACKING_URI is this address.
    """
    yield mlserver.uri
    # The next test gets a new experiment of the name micro.
    new_name = f"experiment of {tmp_path}"
    renaming = {"experiment_id": find_experiment_id(mlserver.uri), "new_name": new_name}
    request_mlflow(mlserver.uri, "experiments/update", renaming)


# What MLflow has.


def request_mlflow(address, path, content=None):
    """Return the answer of an MLflow server.

    Args:
        address: The address of the server.
        path: The path in its REST interface.
        content: The JSON document of a POST request; None for a GET request.
    """
    url = f"{address}/api/2.0/mlflow/{path}"
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def find_experiment_id(address):
    """Return the id that a server has for the experiment micro, the name in params.yaml."""
    answer = request_mlflow(address, "experiments/get-by-name?experiment_name=micro")
    return answer["experiment"]["experiment_id"]


def find_runs(address):
    """Return the runs of the experiment micro that were not deleted."""
    content = {"experiment_ids": [find_experiment_id(address)]}
    return request_mlflow(address, "runs/search", content)["runs"]


def values_by_key(pairs):
    """Return the metrics, parameters or tags of a run, which MLflow lists, as a dictionary."""
    return {pair["key"]: pair["value"] for pair in pairs}


# What a run must have.


def assert_runs_are_complete(project, address, commit):
    """Check that MLflow shows each of a project's four runs once, with its scores and tags.

    Args:
        project: The project.
        address: The address of the MLflow server.
        commit: The commit that the runs should name.
    """
    runs = {}
    for run in find_runs(address):
        tags = values_by_key(run["data"]["tags"])
        system_and_corpus = (tags["system"], tags["corpus"])
        assert system_and_corpus not in runs, "the same run twice"
        runs[system_and_corpus] = run
    assert sorted(runs) == [("tiny", "other"), ("tiny", "own"), ("wide", "other"), ("wide", "own")]

    bleu_names_by_corpus = {"own": set(), "other": set()}
    for (system, corpus), run in runs.items():
        assert run["info"]["status"] == "FINISHED"
        metrics = values_by_key(run["data"]["metrics"])
        tags = values_by_key(run["data"]["tags"])
        assert_scores(metrics, project, system, corpus)
        assert {"train/loss", "valid/bleu", "total/seconds"} <= metrics.keys()
        assert_tags(tags, system, corpus, commit)
        assert_datasets(run, project, corpus)
        # The text has no license that would allow copies, so no translations are uploaded.
        artifacts = f"artifacts/list?run_id={run['info']['run_id']}&path=hypotheses"
        assert "artifacts" not in request_mlflow(address, artifacts)
        for name in metrics:
            if name.startswith("bleu/"):
                bleu_names_by_corpus[corpus].add(name)
    # Otherwise one chart would show scores of both corpora.
    assert not bleu_names_by_corpus["own"] & bleu_names_by_corpus["other"]


def assert_scores(metrics, project, system, corpus):
    """Fail unless the metrics of a run have the scores that were computed, one of each metric."""
    scores_by_test = json.loads(project.read(f"results/{system}/{corpus}/1/scores.json"))
    for metric in ("bleu", "chrf2", "ter", "length_ratio"):
        expected_scores = {}
        for test, scores in scores_by_test.items():
            for row in scores["metrics"]:
                if row["metric"] == metric and not row["group"]:
                    expected_scores[f"{metric}/{corpus}/{test}"] = row["value"]
        logged_scores = {}
        for name, value in metrics.items():
            if name.startswith(f"{metric}/"):
                logged_scores[name] = value
        assert logged_scores == expected_scores
        assert len(expected_scores) == 1


def assert_tags(tags, system, corpus, commit):
    """Fail unless the tags of a run name its commit, its versions, its processor and its table."""
    processor_information = Path("/proc/cpuinfo").read_text("utf-8")
    processor = re.search(r"(?m)^model name\s*: (.*)$", processor_information)[1].strip()
    assert tags["commit"] == commit
    # The commit of the record may end in a + or a note about changes.
    assert tags["mlflow.source.git.commit"] == commit.split()[0].rstrip("+")
    assert re.fullmatch(r"Python 3\.\S+, torch \S+.*", tags["versions"])
    assert tags["device"] == processor
    assert f"**{system}** of the table for **{corpus}**" in tags["mlflow.note.content"]
    assert "reports/table.md" in tags["mlflow.note.content"]


def assert_datasets(run, project, corpus):
    """Fail unless a run names its three sets of text, how they were used and their pairs."""
    logged_datasets = set()
    for entry in run["inputs"]["dataset_inputs"]:
        dataset = entry["dataset"]
        assert re.fullmatch("[0-9a-f]{16}", dataset["digest"])
        use = values_by_key(entry["tags"])["mlflow.data.context"]
        pair_count = json.loads(dataset["profile"])["pairs"]
        logged_datasets.add((dataset["name"], use, pair_count))

    expected_datasets = set()
    uses = {"train": "training", "valid": "validation", "test.held-out": "testing"}
    for set_name, use in uses.items():
        pair_count = project.read(f"data/tokens/{corpus}/{set_name}.en").count("\n")
        expected_datasets.add((f"{corpus} {set_name}", use, pair_count))
    assert logged_datasets == expected_datasets


def head_commit(project):
    """Return the commit that is checked out."""
    return project.run("git", "rev-parse", "HEAD").strip()


def training_commit(project):
    """Return the commit with which the committed results were trained, an earlier one."""
    rows = csv.DictReader(project.read("reports/costs.csv").splitlines())
    (commit,) = {row["commit"] for row in rows}
    assert commit.rstrip("+") != head_commit(project)
    return commit


def assert_is_unchanged(project):
    """Fail unless a clone has the committed results, and DVC finds nothing to do."""
    assert project.changed_stages() == set()
    assert project.run("git", "status", "--porcelain").strip() == ""


def wait_for_answer(url, process):
    """Wait until the server that a process is answers at an address."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        with suppress(OSError), urllib.request.urlopen(url, timeout=60):
            return
        time.sleep(0.2)
    raise AssertionError("no answer within five minutes")


def test_ui_starts_an_mlflow_server_that_shows_the_runs_of_reproduce(clone, request):
    """The clone has the committed report, so the stage report, which logs to MLflow, does not run.

    `bleuprint reproduce` and `bleuprint ui` must log the results nevertheless.
    """
    clone.run("bleuprint", "reproduce")
    assert_is_unchanged(clone)
    assert not (clone.root / "timings/stages/report.json").exists()  # `report` did not run.

    port = free_port()
    ui = clone.start("bleuprint", "ui", "--port", str(port))
    request.addfinalizer(lambda: micro.kill(ui))

    address = f"http://127.0.0.1:{port}"
    assert ui.stdout.readline().startswith(f"{address}/#/experiments/")
    wait_for_answer(f"{address}/health", ui)
    assert_runs_are_complete(clone, address, head_commit(clone))


def test_ui_logs_the_results_of_dvc_repro(clone, server):
    """DVC computes the results without MLflow; the stage report, which logs them, is up to date.

    The runs in MLflow must name the commit that is checked out.
    """
    clone.environment["MLFLOW_TRACKING_URI"] = server
    stages_run = clone.repro()
    assert "report" not in stages_run
    assert_is_unchanged(clone)

    output = clone.run("bleuprint", "ui")

    assert f"{server}/#/experiments/" in output
    assert_runs_are_complete(clone, server, commit=head_commit(clone))


def test_ui_logs_results_that_were_pulled(pulled_clone, server):
    """Training times and the commit of the training come from the committed reports/costs.csv."""
    pulled_clone.environment["MLFLOW_TRACKING_URI"] = server

    output = pulled_clone.run("bleuprint", "ui")

    assert f"{server}/#/experiments/" in output
    assert_runs_are_complete(pulled_clone, server, commit=training_commit(pulled_clone))
    assert_is_unchanged(pulled_clone)


def test_snakemake_logs_its_runs_and_logs_them_again_if_they_were_deleted(clone, server):
    """The second Snakemake has nothing to do. The new runs are in the same MLflow experiment."""
    clone.environment["MLFLOW_TRACKING_URI"] = server
    clone.snakemake()
    assert_runs_are_complete(clone, server, commit=head_commit(clone))
    experiment_id = find_experiment_id(server)
    for run in find_runs(server):
        request_mlflow(server, "runs/delete", {"run_id": run["info"]["run_id"]})

    output = clone.snakemake()

    assert "Nothing to be done" in output
    assert_runs_are_complete(clone, server, commit=head_commit(clone))
    for run in find_runs(server):
        assert run["info"]["experiment_id"] == experiment_id


def test_sync_logs_results_that_were_pulled_once(pulled_clone, server):
    """The output has a line for each run, such as `run tiny other 1: made` for a new one."""
    pulled_clone.environment["MLFLOW_TRACKING_URI"] = server

    first_output = pulled_clone.run("bleuprint", "sync")
    assert_runs_are_complete(pulled_clone, server, training_commit(pulled_clone))
    second_output = pulled_clone.run("bleuprint", "sync")

    assert "run tiny other 1: made" in first_output
    assert ": made" not in second_output


def test_mlflow_keeps_the_results_of_each_beam_that_a_user_tries(pulled_clone, server):
    """The user runs DVC with a beam of 1, then of 3, which replaces the results on disk.

    The stage report logs new results to MLflow, so both are there: two systems on two corpora.
    """
    pulled_clone.environment["MLFLOW_TRACKING_URI"] = server

    pulled_clone.edit("params.yaml", "{beam: 2,", "{beam: 1,")
    assert "report" in pulled_clone.repro()
    pulled_clone.edit("params.yaml", "{beam: 1,", "{beam: 3,")
    assert "report" in pulled_clone.repro()

    beams = []
    for run in find_runs(server):
        beams.append(values_by_key(run["data"]["params"])["decode.beam"])
        metrics = values_by_key(run["data"]["metrics"])
        assert any(name.startswith("bleu/") for name in metrics)
    assert sorted(beams) == ["1", "1", "1", "1", "3", "3", "3", "3"]


@pytest.fixture(params=[False, True], ids=["up to date", "report runs"])
def clone_without_server(pulled_clone, request):
    """Return a clone that has pulled, at whose MLFLOW_TRACKING_URI no server answers.

    It is up to date, or only the stage report will run, which logs the results as well.
    """
    pulled_clone.environment["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{free_port()}"
    does_report_run = request.param
    if does_report_run:
        pulled_clone.edit("stages/report.py", '"""Write the report:', '"""Write the whole report:')
    return pulled_clone


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["bleuprint", "reproduce"], id="reproduce"),
        pytest.param(["snakemake", "-c1"], id="snakemake"),
        pytest.param(["snakemake", "-c2", "--touch", "-F"], id="touch"),
    ],
)
def test_a_command_that_cannot_reach_mlflow_prints_one_note_and_sync_an_error(
    clone_without_server, command
):
    """MLFLOW_TRACKING_URI names an address at which no server answers.

    The results are computed anyway; `bleuprint sync`, which only logs them, fails.
    """
    output = clone_without_server.run(*command)
    sync_output = clone_without_server.run("bleuprint", "sync", status=1)

    (note,) = [line for line in output.splitlines() if line.startswith("bleuprint: note: MLflow")]
    assert note.endswith("Run: bleuprint sync")
    assert "Connection refused" in note
    assert "Traceback" not in output
    first_line, *errors = sync_output.splitlines()
    assert first_line.startswith("recorded in DVC: ")
    address = clone_without_server.environment["MLFLOW_TRACKING_URI"]
    assert errors == [f"bleuprint: error: MLflow at {address}: Connection refused"]
