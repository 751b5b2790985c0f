"""The pipeline as its users run it, with DVC and with Snakemake, on a project in small."""

import json
import os
import re
import shutil
import signal
import time

import pytest

import micro
from bleuprint import graph

CELL = ("train", "average", "translate", "score", "vary")
TINY = {f"{stage}@tiny-own-1" for stage in CELL}
WIDE = {f"{stage}@wide-own-1" for stage in CELL}
UP_TO_DATE = "Data and pipelines are up to date."


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A clone in which nothing has run. Not to be changed."""
    project = micro.make(tmp_path_factory.mktemp("clean") / "project")
    project.commit()
    return project


@pytest.fixture(scope="module")
def by_dvc(clean, tmp_path_factory):
    """A project after `dvc repro`, committed. Not to be changed."""
    project = clean.copy(tmp_path_factory.mktemp("dvc") / "project")
    assert len(project.repro()) == 21
    project.commit()
    return project


@pytest.fixture(scope="module")
def by_snakemake(clean, tmp_path_factory):
    """A project after `snakemake -c2`. Not to be changed."""
    project = clean.copy(tmp_path_factory.mktemp("snakemake") / "project")
    project.snakemake()
    return project


@pytest.fixture
def reproduced(by_dvc, tmp_path):
    return by_dvc.copy(tmp_path / "project")


def test_repro_writes_the_reports_and_the_scores(by_dvc):
    assert by_dvc.rows() == ["tiny", "wide"]
    records = json.loads(by_dvc.read("reports/results.json"))
    assert [record["lines"] for record in records] == [15, 15]
    assert all(record["bleu"]["score"] > 0 for record in records)
    for name in ("table.md", "table.csv", "table.tex"):
        text = by_dvc.read(f"reports/{name}")
        assert "tiny" in text and "wide" in text
    for name in ("results.json", "metrics.json", "table.csv"):
        assert str(by_dvc.root) not in by_dvc.read(f"reports/{name}")


def test_outputs_without_a_suffix_are_the_folders(by_dvc):
    for stage in graph.stages(by_dvc.root):
        folders = [path for path in stage.outputs if (by_dvc.root / path).is_dir()]
        assert stage.folders == folders
        assert all((by_dvc.root / path).exists() for path in stage.outputs)


def test_a_second_repro_has_nothing_to_do(reproduced):
    output = reproduced.run("dvc", "repro")
    assert micro.ran(output) == []
    assert output.rstrip().endswith(UP_TO_DATE)


def test_a_clone_without_data_is_up_to_date(by_dvc, tmp_path):
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(tmp_path / "clone"))
    clone = micro.Project(tmp_path / "clone")
    assert not (clone.root / "data").exists()
    output = clone.run("dvc", "repro", "--allow-missing", "--dry")
    assert output.rstrip().endswith(UP_TO_DATE)


def test_dvc_shows_few_numbers_and_plots_of_two_revisions(reproduced):
    reproduced.run("dvc", "exp", "run", "-n", "other", "-S", "systems.tiny.train.updates=40")
    shown = reproduced.run("dvc", "metrics", "show")
    assert re.findall(r"BLEU\S+", shown) == ["BLEU.tiny.own", "BLEU.wide.own"]
    changes = reproduced.run("dvc", "metrics", "diff", "--all", "HEAD", "other")
    assert re.findall(r"BLEU\S+", changes) == ["BLEU.tiny.own", "BLEU.wide.own"]
    table = reproduced.run(
        *("dvc", "exp", "show", "--only-changed", "--csv"),
        *("--drop", "^(models|results|timings|data)"),
    )
    heads = table.partition("\n")[0].split(",")
    assert "systems.tiny.train.updates" in heads and len(heads) < 12, heads
    reproduced.run("dvc", "plots", "diff", "HEAD", "other", "--out", "work/plots")
    page = reproduced.read("work/plots/index.html")
    specs = [json.loads(text) for text in re.findall(r"var spec = (\{.*\});\n", page)]
    titles = ["Validation BLEU", "Validation loss", "Training loss", "Test BLEU"]
    assert [spec["title"] for spec in specs] == titles
    for spec in specs:
        points = spec["data"]["values"]
        assert {point["rev"] for point in points} == {"HEAD", "other"}
        assert {point["system"] for point in points} == {"tiny", "wide"}
        assert "DVC_METRIC" not in json.dumps(spec)


def test_an_experiment_reruns_its_system_alone_and_reverting_is_served_from_the_cache(reproduced):
    before = reproduced.read("reports/results.json")
    output = reproduced.run("dvc", "exp", "run", "-S", "systems.tiny.train.label_smoothing=0")
    assert set(micro.ran(output)) == TINY | {"report"}
    old, new = (
        {record["system"]: record["fingerprints"]["settings"] for record in json.loads(text)}
        for text in (before, reproduced.read("reports/results.json"))
    )
    assert old["tiny"] != new["tiny"] and old["wide"] == new["wide"]

    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    output = reproduced.run("dvc", "repro")
    assert "train@tiny-own-1' is cached - skipping run" in output
    assert not set(micro.ran(output)) & TINY
    assert reproduced.read("reports/results.json") == before


def test_a_system_is_a_row_while_it_is_in_params(reproduced):
    before, params = reproduced.read("reports/results.json"), reproduced.read("params.yaml")
    reproduced.write("params.yaml", params + micro.THIRD_SYSTEM)
    assert set(reproduced.repro()) == {f"{stage}@deep-own-1" for stage in CELL} | {"report"}
    assert reproduced.rows() == ["tiny", "wide", "deep"]

    reproduced.write("params.yaml", params)
    assert reproduced.repro() == ["report"]
    assert reproduced.read("reports/results.json") == before


def test_a_decoding_setting_trains_nothing(reproduced):
    reproduced.edit("params.yaml", "{beam: 2, alpha: 0.6", "{beam: 1, alpha: 0")
    assert reproduced.changed() >= {"translate@tiny-own-1", "translate@wide-own-1"}
    assert not any(name.startswith(("train", "average")) for name in reproduced.changed())


def test_a_misspelt_setting_is_one_line_and_costs_nothing(reproduced):
    reproduced.edit("params.yaml", "label_smoothing", "lable_smoothing")
    output = reproduced.run("dvc", "repro", status=255)
    assert output.count("bleuprint: error: ") == 1 and "Traceback" not in output
    assert "lable_smoothing: unknown key; did you mean 'label_smoothing'?" in output
    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    reproduced.run("dvc", "checkout")
    assert reproduced.repro() == []


def test_snakemake_gives_what_dvc_gives_and_tells_it(by_dvc, by_snakemake, tmp_path):
    results = "reports/results.json"
    assert by_snakemake.read(results) == by_dvc.read(results)
    project = by_snakemake.copy(tmp_path / "project")
    assert project.changed() == set()
    assert project.run("dvc", "repro").rstrip().endswith(UP_TO_DATE)
    assert "Nothing to be done" in project.snakemake()


def test_what_is_recorded_is_what_dvc_commit_records(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    recorded, runs = project.read("dvc.lock"), contents(project, ".dvc/cache")
    (project.root / "dvc.lock").unlink()
    shutil.rmtree(project.root / ".dvc/cache")
    project.run("dvc", "commit", "--force", "--no-relink")
    assert project.read("dvc.lock") == recorded
    assert contents(project, ".dvc/cache") == runs != {}


def test_snakemake_runs_what_an_edit_changes(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    project.edit("params.yaml", "last: 2}\n    decode: *", "last: 1}\n    decode: *")
    project.snakemake()
    executed = {
        path.stem
        for path in (project.root / "work/snakemake/logs").iterdir()
        if path.stat().st_mtime_ns > (project.root / "params.yaml").stat().st_mtime_ns
    }
    assert executed == WIDE - {"train@wide-own-1"} | {"report"}
    assert project.changed() == set()


def test_an_input_from_the_future_is_told_and_its_stage_not_recorded(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    ahead = time.time() + 3600
    os.utime(project.root / "stages/clean.py", (ahead, ahead))
    output = project.snakemake("data/clean/own", status=1)
    assert "than input stages/clean.py" in output and "clock skew" in output
    assert project.recorded() == {"download@own"}


def test_touch_has_snakemake_take_over_what_dvc_made(reproduced):
    shutil.rmtree(reproduced.root / "data")
    reproduced.run("dvc", "checkout")
    reproduced.snakemake("--touch", "--forceall")
    assert "Nothing to be done" in reproduced.snakemake()
    assert reproduced.changed() == set()
    assert "recorded" not in reproduced.snakemake("--dry-run")


def test_a_failing_stage_is_not_recorded_and_others_are(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    project.edit("params.yaml", "label_smoothing: 0.1", "label_smoothing: 0.2")  # of both
    project.edit("params.yaml", "peak: 0.015", "peak: 1.0e+38")
    output = project.snakemake("--keep-going", status=1)
    assert output.count("bleuprint: error: the loss of update") >= 1
    assert "recorded in DVC: 5 of 21 stages" in output
    # the failed one, and what lacks its output
    lacking = {f"{stage}@wide-own-1" for stage in ("train", "average", "vary")}
    assert project.changed() & (TINY | WIDE) == lacking


def test_reports_are_kept_where_their_stage_fails(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    before = reports(project)
    project.write("results/tiny/own/1/scores.json", "{}")
    output = project.snakemake(status=1)
    assert "bleuprint: error: results/tiny/own/1/scores.json: no test set" in output
    assert len(before) == 7 and reports(project) == before


def reports(project):
    """Those that git keeps; the page is DVC's, and Snakemake removes such outputs of what fails."""
    found = (project.root / "reports").iterdir()
    return {path.name: path.read_bytes() for path in found if path.name != "index.html"}


def wait_for(pattern, project, process):
    """Wait until a file is there, while `process` runs."""
    for _ in range(600):
        if any(project.root.glob(pattern)):
            return
        assert process.poll() is None
        time.sleep(0.1)
    pytest.fail(f"{pattern} did not appear")


@pytest.mark.parametrize(
    "how",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_run_stopped_half_way_leaves_only_what_finished(clean, by_dvc, tmp_path, how):
    project = clean.copy(tmp_path / "project")
    process = project.start("snakemake", "-c2")
    wait_for("work/snakemake/finished/train@*.begun", project, process)
    micro.kill(process, how)
    try:
        process.communicate(timeout=60)
    finally:
        micro.kill(process)
    assert process.returncode
    data = {stage.name for stage in graph.stages(project.root) if stage.name.endswith("@own")}
    # this one may come after the first training has begun
    later = {"describe_corpus@own"}
    recorded = project.recorded()
    assert recorded == set() if how == signal.SIGKILL else data - later <= recorded <= data
    if how == signal.SIGKILL:
        project.snakemake("--unlock")
    project.snakemake("--rerun-incomplete")
    assert project.changed() == set()
    assert len(project.recorded()) == 21
    assert project.read("reports/results.json") == by_dvc.read("reports/results.json")


def test_shards_give_what_the_whole_gives(clean, by_dvc, tmp_path):
    project = clean.copy(tmp_path / "project")
    wanted = ("data/statistics/own", "data/ledgers/own/binarize.json", "data/tests/own")
    output = project.snakemake(*wanted, "--set-scatter", "shards=3")
    assert all(f"shard_{stage}@own" in output for stage in ("clean", "dedup", "filter"))
    logs = {path.name for path in (project.root / "work/snakemake/logs").iterdir()}
    assert {f"tokenize@own.log.{number}-of-3" for number in (1, 2, 3)} <= logs
    assert contents(project, "data") == contents(by_dvc, "data") != {}
    assert contents(project, "work/shards") == {}
    data = {stage.name for stage in graph.stages(project.root) if stage.name.endswith("@own")}
    assert project.recorded() == data
    assert not project.changed() & data


def test_shards_made_under_other_settings_are_made_again(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    project.edit("params.yaml", "ratio: {max: 3.0}", "ratio: {max: 1.0}")
    shards = ("--set-scatter", "shards=2")
    until = ("--notemp", *shards, "--until", "shard_filter@own")
    project.run("snakemake", "-c2", "data/filter/own", *until)
    assert len(contents(project, "work/shards/filter")) > 0
    project.edit("params.yaml", "ratio: {max: 1.0}", "length: {min: 4, max: 9}")
    project.edit("params.yaml", "length: {min: 1, max: 100}, ", "")
    project.snakemake("data/filter/own", *shards)
    ledger = json.loads(project.read("data/ledgers/own/filter.json"))
    assert list(ledger["sets"]["train"]["dropped"]) == ["length"]
    lengths = {len(line.split()) for line in project.read("data/filter/own/train.en").splitlines()}
    assert lengths == {4, 5, 6}


def contents(project, folder):
    """What the files of a folder hold, by their names; those of the tools aside."""
    files = (path for path in (project.root / folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(project.root)): path.read_bytes()
        for path in files
        if not path.name.startswith(".") and path.suffix != ".lock"
    }
