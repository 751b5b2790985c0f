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

CELLS = [("tiny", "own"), ("tiny", "other"), ("wide", "own"), ("wide", "other")]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The project whose results are committed and pushed."""
    folder = tmp_path_factory.mktemp("first")
    project = micro.make(folder / "project")
    project.edit("params.yaml", "systems:\n", f"{micro.SECOND_CORPUS}systems:\n")
    project.run("dvc", "add", "inputs/a.en", "inputs/a.de")
    project.run("dvc", "remote", "add", "--default", "store", str(folder / "remote"))
    project.commit()
    project.repro()
    (project.root / "src/mlflow.py").unlink()  # clones have the real one
    project.commit()
    project.run("dvc", "push")
    return project


@pytest.fixture
def clone(first, tmp_path):
    """A clone in which nothing has run."""
    first.run("git", "clone", "--quiet", str(first.root), str(tmp_path / "clone"))
    clone = micro.Project(tmp_path / "clone")
    clone.run("dvc", "pull", "inputs/a.en.dvc", "inputs/a.de.dvc")
    assert not (clone.root / "results").exists()
    return clone


@pytest.fixture
def server(mlserver, clone):
    """The address of a server that gets the clone's runs; the next test finds none of them."""
    clone.environment["MLFLOW_TRACKING_URI"] = mlserver.uri
    yield mlserver.uri
    found = asked(mlserver.uri, "experiments/get-by-name?experiment_name=micro")["experiment"]
    new = {"experiment_id": found["experiment_id"], "new_name": f"of {clone.root}"}
    asked(mlserver.uri, "experiments/update", new)


def asked(address, path, content=None):
    """What a server answers to a request; to one of the kind POST if it has a content."""
    url = f"{address}/api/2.0/mlflow/{path}"
    data = None if content is None else json.dumps(content).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def runs_at(address):
    """All runs of the experiment micro by system and corpus."""
    experiment = asked(address, "experiments/get-by-name?experiment_name=micro")["experiment"]
    found = asked(address, "runs/search", {"experiment_ids": [experiment["experiment_id"]]})
    runs = {}
    for run in found["runs"]:
        tags = by_key(run["data"]["tags"])
        runs[tags["system"], tags["corpus"]] = run
    assert len(runs) == len(found["runs"])
    return runs


def by_key(pairs):
    return {pair["key"]: pair["value"] for pair in pairs}


def check_runs(project, address, commit):
    """All that the issue asks of each finished run."""
    runs = runs_at(address)
    assert sorted(runs) == sorted(CELLS)
    names = {}
    for (system, corpus), run in runs.items():
        assert run["info"]["status"] == "FINISHED"
        metrics, tags = by_key(run["data"]["metrics"]), by_key(run["data"]["tags"])
        scores = json.loads(project.read(f"results/{system}/{corpus}/1/scores.json"))
        for metric in ("bleu", "chrf2", "ter", "length_ratio"):
            expected = {
                f"{metric}/{corpus}/{test}": each["value"]
                for test, of_test in scores.items()
                for each in of_test["metrics"]
                if each["metric"] == metric and not each["group"]
            }
            logged = {name: metrics[name] for name in metrics if name.startswith(f"{metric}/")}
            assert logged == expected and len(expected) == 1
        names.setdefault(corpus, set()).update(n for n in metrics if n.startswith("bleu/"))
        assert {"train/loss", "valid/bleu", "total/seconds"} <= metrics.keys()
        assert tags["commit"] == commit
        assert tags["mlflow.source.git.commit"] == commit.split()[0].rstrip("+")
        assert re.fullmatch(r"Python 3\.\S+, torch \S+.*", tags["versions"])
        assert tags["device"] == processor()
        assert f"**{system}** of the table for **{corpus}**" in tags["mlflow.note.content"]
        assert "reports/table.md" in tags["mlflow.note.content"]
        assert datasets(run) == {
            (f"{corpus} {name}", context, pairs(project, corpus, name))
            for name, context in (
                ("train", "training"),
                ("valid", "validation"),
                ("test.held-out", "testing"),
            )
        }
        assert "artifacts" not in listed(address, run)  # no license says that copies are allowed
    assert not names["own"] & names["other"]  # or one chart would show both


def datasets(run):
    """Name, context and number of pairs of the datasets of a run; digests are whole."""
    found = set()
    for each in run["inputs"]["dataset_inputs"]:
        dataset = each["dataset"]
        assert re.fullmatch("[0-9a-f]{16}", dataset["digest"])
        context = by_key(each["tags"])["mlflow.data.context"]
        found.add((dataset["name"], context, json.loads(dataset["profile"])["pairs"]))
    return found


def pairs(project, corpus, name):
    """The lines of a set's text."""
    return project.read(f"data/tokens/{corpus}/{name}.en").count("\n")


def processor():
    text = Path("/proc/cpuinfo").read_text("utf-8")
    return re.search(r"(?m)^model name\s*: (.*)$", text)[1].strip()


def listed(address, run):
    return asked(address, f"artifacts/list?run_id={run['info']['run_id']}&path=hypotheses")


def head(project):
    return project.run("git", "rev-parse", "HEAD").strip()


def trained_by(project):
    """The commit that has trained the committed results."""
    (commit,) = {
        row["commit"] for row in csv.DictReader(project.read("reports/costs.csv").splitlines())
    }
    assert commit.rstrip("+") != head(project)
    return commit


def is_unchanged(project):
    """Whether the clone has the committed results, and DVC finds nothing to do."""
    return not project.changed() and not project.run("git", "status", "--porcelain").strip()


def test_reproduce_and_the_page_that_ui_starts(clone, request):
    clone.run("bleuprint", "reproduce")
    assert is_unchanged(clone)
    begun = clone.root / "timings/stages/report.json"
    assert not begun.exists()  # the report was committed: its stage did not run
    port = free_port()
    ui = clone.start("bleuprint", "ui", "--port", str(port))
    request.addfinalizer(lambda: micro.kill(ui))
    address = f"http://127.0.0.1:{port}"
    assert ui.stdout.readline().startswith(f"{address}/#/experiments/")
    wait_for(f"{address}/health", ui)
    check_runs(clone, address, head(clone))


def wait_for(url, process):
    """Until a server answers."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        with suppress(OSError), urllib.request.urlopen(url, timeout=60):
            return
        time.sleep(0.2)
    raise AssertionError("no answer within five minutes")


def test_dvc_repro_and_ui(clone, server):
    assert "report" not in clone.repro()
    assert is_unchanged(clone)
    assert f"{server}/#/experiments/" in clone.run("bleuprint", "ui")
    check_runs(clone, server, head(clone))


def test_dvc_pull_and_ui(clone, server):
    """What was measured is in reports/costs.csv, which is committed with the results."""
    clone.run("dvc", "pull")
    assert f"{server}/#/experiments/" in clone.run("bleuprint", "ui")
    check_runs(clone, server, trained_by(clone))
    assert is_unchanged(clone)


def test_snakemake(clone, server):
    clone.snakemake()
    check_runs(clone, server, head(clone))
    before = runs_at(server)
    # Snakemake has nothing to do, and calls nothing of ours at its end
    experiment = next(iter(before.values()))["info"]["experiment_id"]
    for run in before.values():
        asked(server, "runs/delete", {"run_id": run["info"]["run_id"]})
    assert "Nothing to be done" in clone.snakemake()
    check_runs(clone, server, head(clone))
    assert runs_at(server)["tiny", "own"]["info"]["experiment_id"] == experiment


def test_record(clone, server):
    clone.run("dvc", "pull")
    said = clone.run("bleuprint", "sync")
    assert "run tiny other 1: made" in said
    check_runs(clone, server, trained_by(clone))
    assert ": made" not in clone.run("bleuprint", "sync")


def test_results_that_the_next_run_replaces_are_shown(clone, server):
    """Nobody looks in between: the report stage, which runs where results are new, logs them."""
    clone.run("dvc", "pull")
    for before, beam in ((2, 1), (1, 3)):
        clone.edit("params.yaml", f"{{beam: {before},", f"{{beam: {beam},")
        assert "report" in clone.repro()
    experiment = asked(server, "experiments/get-by-name?experiment_name=micro")["experiment"]
    found = asked(server, "runs/search", {"experiment_ids": [experiment["experiment_id"]]})
    beams = [by_key(run["data"]["params"])["decode.beam"] for run in found["runs"]]
    assert sorted(beams) == ["1"] * 4 + ["3"] * 4
    for run in found["runs"]:
        assert [m for m in by_key(run["data"]["metrics"]) if m.startswith("bleu/")]


@pytest.mark.parametrize("way", ["reproduce", "snakemake", "touch"])
@pytest.mark.parametrize("runs", [False, True], ids=["up to date", "report runs"])
def test_a_failure_of_mlflow_is_one_note(clone, way, runs):
    """Also where the stage report, which logs the results as well, has run."""
    clone.run("dvc", "pull")
    clone.environment["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{free_port()}"
    if runs:
        clone.edit("stages/report.py", '"""Write the report:', '"""Write the whole report:')
    if way == "reproduce":
        said = clone.run("bleuprint", "reproduce")
    elif way == "snakemake":
        said = clone.snakemake("-c1")
    else:
        said = clone.snakemake("--touch", "-F")
    notes = [line for line in said.splitlines() if line.startswith("bleuprint: note: MLflow")]
    assert len(notes) == 1 and notes[0].endswith("Run: bleuprint sync")
    assert "Connection refused" in notes[0]
    assert "Traceback" not in said
    recorded, *errors = clone.run("bleuprint", "sync", status=1).splitlines()
    assert recorded.startswith("recorded in DVC: ")
    address = clone.environment["MLFLOW_TRACKING_URI"]
    assert errors == [f"bleuprint: error: MLflow at {address}: Connection refused"]
