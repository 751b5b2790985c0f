"""The same graph by Snakemake: its outputs, and what it records in DVC."""

import json
import os
import shutil
import signal
import time
import zipfile

import pytest

import micro
from bleuprint.pipeline import graph, recording
from shared_folders import left_unchanged

CELL = ("train", "average", "translate", "score")
TINY = {f"{stage}@tiny-own-1" for stage in CELL}
WIDE = {f"{stage}@wide-own-1" for stage in CELL}


@pytest.fixture(scope="module")
def by_snakemake(clean, tmp_path_factory):
    """A project after `snakemake -c2`. Not to be changed."""
    project = clean.copy(tmp_path_factory.mktemp("snakemake") / "project")
    project.snakemake()
    with left_unchanged(project.root):
        yield project


def test_snakemake_gives_what_dvc_gives_and_records_it(by_dvc, by_snakemake, tmp_path):
    """Of two clones in two folders, all outputs, dvc.lock and what DVC keeps are equal."""
    assert by_snakemake.contents() == by_dvc.contents()
    assert by_snakemake.read("dvc.lock") == by_dvc.read("dvc.lock")
    # like `dvc commit`, it also keeps the reports that are in git
    assert contents(by_snakemake, ".dvc/cache").items() > contents(by_dvc, ".dvc/cache").items()
    project = by_snakemake.copy(tmp_path / "project")
    assert project.changed() == set()
    assert "Nothing to be done" in project.snakemake()


@pytest.mark.slow
def test_outputs_that_dvc_has_made_with_other_settings_are_made_again(by_snakemake, tmp_path):
    """The last run of Snakemake itself had the settings of now."""
    project = by_snakemake.copy(tmp_path / "project")
    project.edit("params.yaml", "length: {min: 1, max: 100}", "length: {min: 1, max: 5}")
    project.run("dvc", "repro", "filter@own")
    project.edit("params.yaml", "length: {min: 1, max: 5}", "length: {min: 1, max: 100}")
    assert "filter@own" in project.snakemake("data/split/own")
    assert contents(project, "data/split") == contents(by_snakemake, "data/split")
    assert "filter@own" not in project.snakemake("--dry-run")


@pytest.mark.slow
def test_snakemakes_report_has_the_tables_and_the_page(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    output = project.run("snakemake", "--report", "report.zip")
    shown = [line for line in output.splitlines() if line.startswith("Adding ")]
    assert [line.split()[1] for line in shown] == ["table.md", "table.csv", "index.html"]
    with zipfile.ZipFile(project.root / "report.zip") as file:
        pages = [name for name in file.namelist() if name.endswith("/index.html")]
        assert project.root.joinpath("reports/index.html").read_bytes() in map(file.read, pages)


def test_an_input_from_the_future_is_named_and_its_stage_not_recorded(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    ahead = time.time() + 3600
    os.utime(project.root / "inputs/a.en", (ahead, ahead))
    output = project.snakemake("data/clean/own", status=1)
    assert "than input inputs/a.en" in output and "clock skew" in output
    # a job that starts is its stage's name, without a page of input files
    assert ": download@own\n" in output and "input:" not in output
    assert project.recorded() == {"resolve"}


@pytest.mark.slow
def test_touch_has_snakemake_take_over_what_dvc_made(reproduced):
    shutil.rmtree(reproduced.root / "data")
    reproduced.run("dvc", "checkout")
    reproduced.snakemake("--touch", "--forceall")
    assert "Nothing to be done" in reproduced.snakemake()
    assert reproduced.changed() == set()
    assert "recorded" not in reproduced.snakemake("--dry-run")


def test_what_an_edit_changes_runs_and_a_failing_stage_is_not_recorded(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    project.edit("params.yaml", "    average: {last: 2}", "    average: {last: 1}")  # of both
    project.edit("params.yaml", "lr: 0.015", "lr: 1.0e+38")  # of wide
    output = project.snakemake("--keep-going", status=1)
    assert output.count("bleuprint: error: the loss of update") >= 1
    executed = {
        path.stem
        for path in (project.root / "work/snakemake/logs").iterdir()
        if path.stat().st_mtime_ns > (project.root / "params.yaml").stat().st_mtime_ns
    }
    assert executed == TINY - {"train@tiny-own-1"} | {"train@wide-own-1", "resolve"}
    assert "recorded in DVC: 4 of 22 stages" in output
    # the failed one, and what lacks its output
    lacking = {f"{stage}@wide-own-1" for stage in ("train", "average")}
    assert project.changed() & (TINY | WIDE) == lacking


@pytest.mark.slow
def test_reports_are_kept_where_their_stage_fails(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    before = reports(project)
    failing = "    raise SystemExit('no report today')\n"
    project.edit("stages/report.py", "    settings = load_resolved_settings()\n", failing)
    assert "no report today" in project.snakemake(status=1)
    before["resolved.json"] = reports(project)["resolved.json"]
    assert "results.json" in before and reports(project) == before
    # nor do they look like those of the inputs as they are now
    assert "no report today" in project.snakemake(status=1)


@pytest.mark.slow
def test_an_edited_output_is_made_again(by_snakemake, tmp_path):
    """By its content: an editor may keep the modification time."""
    project = by_snakemake.copy(tmp_path / "project")
    path = project.root / "results/tiny/own/1/scores.json"
    status = path.stat()
    path.write_text("{}")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ": score@tiny-own-1" in project.snakemake()
    assert project.contents() == by_snakemake.contents()


def reports(project):
    """The contents of reports/ by name, without the page, which git ignores."""
    found = (project.root / "reports").iterdir()
    return {path.name: path.read_bytes() for path in found if path.name != "index.html"}


def wait_for(pattern, project, process):
    """Wait until a file is there, while `process` runs."""
    for _ in range(3000):
        if any(project.root.glob(pattern)):
            return
        assert process.poll() is None
        time.sleep(0.1)
    pytest.fail(f"{pattern} did not appear")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_stopped_half_way_leaves_only_what_finished(by_snakemake, tmp_path, how):
    project = by_snakemake.copy(tmp_path / "project")
    params = project.read("params.yaml")
    project.write("params.yaml", params[: params.index("  wide:\n")])  # one system is enough
    forget(project, ("binarize@own", "corpus_stats@own", "report", *TINY))
    before = project.recorded()
    process = project.start("snakemake", "-c2")
    wait_for("work/snakemake/finished/train@*.begun", project, process)
    micro.kill(process, how)
    try:
        process.communicate(timeout=60)
    finally:
        micro.kill(process)
    assert process.returncode
    finished = project.recorded() - before
    if how == signal.SIGKILL:
        assert finished == set()
    else:  # corpus_stats may come after the first training has begun
        assert {"binarize@own"} <= finished <= {"binarize@own", "corpus_stats@own"}
    project.snakemake()
    assert project.changed() == set()
    assert len(project.recorded() - WIDE - {"fresh@wide-1"}) == 17
    ours = json.loads(project.read("reports/results.json"))
    whole = json.loads(by_snakemake.read("reports/results.json"))
    metrics_of_tiny = [row for row in whole["metrics"] if row["system"] == "tiny"]
    runs_of_tiny = [row for row in whole["runs"] if row["system"] == "tiny"]
    # an error that no system of the experiment has is no metric: `wide` alone may have this one
    expected = [row for row in metrics_of_tiny if row["metric"] != "cut off" or row["value"] > 0]
    assert expected
    assert ours["metrics"] == expected
    assert runs_of_tiny
    assert ours["runs"] == runs_of_tiny


@pytest.mark.slow
def test_what_a_killed_run_has_not_recorded_is_recorded_if_there_is_nothing_to_do(
    by_snakemake, tmp_path
):
    """As after a kill while DVC records: dvc.lock lacks stages, and their marks are left."""
    project = by_snakemake.copy(tmp_path / "project")
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}
    for name in ("report", "score@tiny-own-1"):
        project.edit("dvc.lock", f"  {name}:\n", f"  {name}-not-recorded:\n")
        dependencies = graph.input_paths(stages.values(), project.root)[name]
        recording.mark_started(name, stages[name].digest, *dependencies, root=project.root)
        mark = project.root / stages[name].mark
        mark.with_name(f"{name}.begun").rename(mark)
    assert "recorded" not in project.snakemake("--dry-run")
    output = project.snakemake()
    assert "Nothing to be done" in output and "recorded in DVC: 2 of 22 stages" in output
    assert project.changed() == set()


def forget(project, names):
    """Remove the outputs of some stages, and their entries in dvc.lock."""
    from dvc.utils.serialize import dump_yaml, load_yaml

    lock = project.root / "dvc.lock"
    content = load_yaml(str(lock))
    for stage in graph.load_stages(project.root):
        if stage.name in names:
            del content["stages"][stage.name]
            for path in (project.root / output for output in stage.outputs):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    dump_yaml(str(lock), content)


@pytest.mark.slow
def test_shards_give_what_the_whole_gives(clean, by_dvc, tmp_path):
    project = clean.copy(tmp_path / "project")
    wanted = ("data/corpus_stats/own", "data/filter_stats/own/binarize.json", "data/test_stats/own")
    output = project.snakemake(*wanted, "--set-scatter", "shards=2")
    assert all(f"{stage}@own, shard 2-of-2" in output for stage in ("clean", "dedup", "filter"))
    logs = {path.name for path in (project.root / "work/snakemake/logs").iterdir()}
    assert {f"tokenize@own.log.{number}-of-2" for number in (1, 2)} <= logs
    expected = contents(by_dvc, "data")
    for path in contents(by_dvc, "data/starts"):  # of systems, which were not asked for
        del expected[path]
    assert contents(project, "data") == expected != {}
    assert contents(project, "work/shards") == {}
    data = {stage.name for stage in graph.load_stages(project.root) if stage.name.endswith("@own")}
    assert project.recorded() == data | {"resolve"}
    assert not project.changed() & data


def contents(project, folder):
    """The contents of a folder's files by name, without files of the tools."""
    files = (path for path in (project.root / folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(project.root)): path.read_bytes()
        for path in files
        if not path.name.startswith(".") and path.suffix != ".lock"
    }
