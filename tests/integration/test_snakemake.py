"""Snakemake runs the stages of dvc.yaml: the same outputs as by `dvc repro`, and DVC's records."""

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


@pytest.fixture(scope="module")
def by_snakemake(clean, tmp_path_factory):
    """Return a project after `snakemake -c2`: systems tiny and wide, corpus own, seed 1.

    Not to be changed.
    """
    project = clean.copy(tmp_path_factory.mktemp("snakemake") / "project")
    project.snakemake()
    with left_unchanged(project.root):
        yield project


@pytest.fixture
def project(by_snakemake, tmp_path):
    """Return a copy of the project after `snakemake -c2`, which a test may change."""
    return by_snakemake.copy(tmp_path / "project")


def stages_of_run(system):
    """Return the names of the stages of one system on corpus own with seed 1."""
    return {f"{kind}@{system}-own-1" for kind in ("train", "average", "translate", "score")}


def contents(project, folder):
    """Return the bytes of each file of a folder, by path, without files of DVC and Snakemake."""
    files = {}
    for path in (project.root / folder).rglob("*"):
        is_of_a_tool = path.name.startswith(".") or path.suffix == ".lock"
        if path.is_file() and not is_of_a_tool:
            files[str(path.relative_to(project.root))] = path.read_bytes()
    return files


def test_snakemake_writes_the_same_outputs_and_dvc_lock_as_dvc_repro(by_dvc, by_snakemake):
    """`dvc repro` ran the stages in a copy of the project, in another folder."""
    assert by_snakemake.contents() == by_dvc.contents()
    assert by_snakemake.read("dvc.lock") == by_dvc.read("dvc.lock")


def test_snakemake_stores_the_outputs_in_dvcs_cache(by_dvc, by_snakemake):
    """With them, `dvc push` shares the results, as after `dvc repro`.

    Like `dvc commit`, Snakemake's run also stores the reports, which Git tracks.
    """
    cache_after_dvc = contents(by_dvc, ".dvc/cache")
    cache_after_snakemake = contents(by_snakemake, ".dvc/cache")

    assert cache_after_snakemake.items() > cache_after_dvc.items()


def test_a_copied_project_has_nothing_to_run(project):
    """Neither DVC nor Snakemake depends on the folder in which the stages ran."""
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()
    assert "Nothing to be done" in project.snakemake()


@pytest.mark.slow
def test_snakemake_repeats_a_stage_that_dvc_ran_with_other_settings(project, by_snakemake):
    """Snakemake ran `filter` with max 100, DVC with max 5, and now max is 100 again.

    Snakemake's own records say that nothing has changed since its last run.
    """
    project.edit("params.yaml", "length: {min: 1, max: 100}", "length: {min: 1, max: 5}")
    project.run("dvc", "repro", "filter@own")
    project.edit("params.yaml", "length: {min: 1, max: 5}", "length: {min: 1, max: 100}")

    output = project.snakemake("data/split/own")

    assert "filter@own" in output
    assert contents(project, "data/split") == contents(by_snakemake, "data/split")
    assert "filter@own" not in project.snakemake("--dry-run")


@pytest.mark.slow
def test_snakemakes_report_contains_the_tables_and_the_html_report(project):
    """`snakemake --report` collects the results of a workflow in one archive."""
    output = project.run("snakemake", "--report", "report.zip")

    added_files = []
    for line in output.splitlines():
        if line.startswith("Adding "):
            added_files.append(line.split()[1])
    assert added_files == ["table.md", "table.csv", "index.html"]
    pages = []
    with zipfile.ZipFile(project.root / "report.zip") as archive:
        for name in archive.namelist():
            if name.endswith("/index.html"):
                pages.append(archive.read(name))
    assert (project.root / "reports/index.html").read_bytes() in pages


@pytest.fixture(scope="module")
def run_with_an_input_from_the_future(clean, tmp_path_factory):
    """Return a project whose inputs/a.en is dated one hour ahead, and what Snakemake printed.

    Not to be changed.
    """
    project = clean.copy(tmp_path_factory.mktemp("future") / "project")
    one_hour_ahead = time.time() + 3600
    os.utime(project.root / "inputs/a.en", (one_hour_ahead, one_hour_ahead))
    output = project.snakemake("data/clean/own/together", status=1)
    return project, output


def test_snakemake_names_an_input_from_the_future(run_with_an_input_from_the_future):
    """The modification time of inputs/a.en is one hour ahead, as with a wrong clock.

    Snakemake then finds the outputs older than this input and fails.
    """
    _, output = run_with_an_input_from_the_future

    assert "than input inputs/a.en" in output
    assert "clock skew" in output


def test_a_stage_whose_input_is_from_the_future_is_not_recorded(
    run_with_an_input_from_the_future,
):
    """Only `resolve` finished; `download`, which reads the file, failed."""
    project, _ = run_with_an_input_from_the_future

    assert project.recorded_stages() == {"resolve"}


def test_snakemake_announces_a_stage_by_its_name_only(run_with_an_input_from_the_future):
    """Snakemake's default adds `input:` and a list of all input files, which fills the screen."""
    _, output = run_with_an_input_from_the_future

    assert ": download@own\n" in output
    assert "input:" not in output


@pytest.mark.slow
def test_touch_makes_snakemake_accept_the_outputs_that_dvc_restored(reproduced):
    """After `dvc checkout`, `snakemake --touch` declares all outputs as up to date.

    `reproduced` is a project whose stages all ran by DVC.
    """
    shutil.rmtree(reproduced.root / "data")
    reproduced.run("dvc", "checkout")

    reproduced.snakemake("--touch", "--forceall")

    assert "Nothing to be done" in reproduced.snakemake()
    stages_out_of_date = reproduced.changed_stages()
    assert stages_out_of_date == set()
    assert "recorded" not in reproduced.snakemake("--dry-run")


@pytest.fixture(scope="module")
def half_failed(by_snakemake, tmp_path_factory):
    """Return a project in which the training of wide has failed, and what Snakemake printed.

    A learning rate of 1e38 makes its loss infinite. The other edit changes the averaging of both
    systems. `--keep-going` runs the stages that do not depend on the failed one. Not to be changed.
    """
    project = by_snakemake.copy(tmp_path_factory.mktemp("half-failed") / "project")
    project.edit("params.yaml", "    average: {last: 2}", "    average: {last: 1}")
    project.edit("params.yaml", "lr: 0.015", "lr: 1.0e+38")
    output = project.snakemake("--keep-going", status=1)
    return project, output


def test_snakemake_runs_the_stages_that_an_edit_concerns(half_failed):
    """The edit changes averaging for tiny and wide, and the learning rate for wide.

    So tiny is averaged, translated and scored again. The training of wide fails, and its later
    stages do not run.
    """
    project, output = half_failed

    edit_time = (project.root / "params.yaml").stat().st_mtime_ns
    stages_run = set()
    for log in (project.root / "work/snakemake/logs").iterdir():
        if log.stat().st_mtime_ns > edit_time:
            stages_run.add(log.stem)
    stages_of_tiny = {"average@tiny-own-1", "translate@tiny-own-1", "score@tiny-own-1"}
    assert stages_run == {"resolve", "train@wide-own-1"} | stages_of_tiny
    assert "bleuprint: error: the loss of update" in output


def test_a_failed_stage_and_the_stages_after_it_stay_out_of_date(half_failed):
    """The training of wide failed. The stages of tiny, and `resolve`, finished and are recorded."""
    project, output = half_failed

    finished = 1 + 3  # resolve; average, translate and score of tiny
    assert f"recorded in DVC: {finished} of 22 stages" in output
    stages_of_runs = stages_of_run("tiny") | stages_of_run("wide")
    # Only these two have changed inputs: translate@wide-own-1 reads the old averaged weights.
    stages_out_of_date = project.changed_stages() & stages_of_runs
    assert stages_out_of_date == {"train@wide-own-1", "average@wide-own-1"}


def report_files(project):
    """Return the bytes of each file in reports/ by name, without index.html, which Git ignores."""
    files = {}
    for path in (project.root / "reports").iterdir():
        if path.name != "index.html":
            files[path.name] = path.read_bytes()
    return files


@pytest.mark.slow
def test_the_reports_survive_a_failure_of_the_report_stage(project):
    """Snakemake deletes the outputs of a failed stage; these are the user's committed results."""
    files_before = report_files(project)
    failing_line = "    raise SystemExit('no report today')\n"
    project.edit("stages/report.py", "    settings = load_resolved_settings()\n", failing_line)

    output = project.snakemake(status=1)

    assert "no report today" in output
    files_after = report_files(project)
    assert "results.json" in files_before
    # The edited code changes resolved.json, which contains a hash of the code of each stage.
    files_before["resolved.json"] = files_after["resolved.json"]
    assert files_after == files_before


@pytest.mark.slow
def test_a_failed_report_stage_runs_again_next_time(project):
    """The kept reports are of the old inputs; Snakemake must not accept them as up to date."""
    failing_line = "    raise SystemExit('no report today')\n"
    project.edit("stages/report.py", "    settings = load_resolved_settings()\n", failing_line)
    project.snakemake(status=1)

    second_output = project.snakemake(status=1)

    assert "no report today" in second_output


@pytest.mark.slow
def test_an_output_that_the_user_edited_is_computed_again(project, by_snakemake):
    """The edit keeps the file's modification time, so it is found by its content."""
    path = project.root / "results/tiny/own/1/scores.json"
    times = path.stat()
    path.write_text("{}")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    output = project.snakemake()

    assert ": score@tiny-own-1" in output
    assert project.contents() == by_snakemake.contents()


def wait_for_file(pattern, project, process):
    """Wait until a file of the project matches a pattern; fail if the process ends before."""
    for _ in range(3000):
        if any(project.root.glob(pattern)):
            return
        assert process.poll() is None
        time.sleep(0.1)
    pytest.fail(f"{pattern} did not appear")


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


def stop_snakemake_in_training(project, stop_signal):
    """Start Snakemake, and send it and its stages a signal once the training has begun."""
    process = project.start("snakemake", "-c2")
    wait_for_file("work/snakemake/finished/train@*.begun", project, process)
    micro.kill(process, stop_signal)
    try:
        process.communicate(timeout=60)
    finally:
        micro.kill(process)
    assert process.returncode != 0


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def stopped_and_continued(by_snakemake, tmp_path_factory, request):
    """Stop a run of Snakemake by a signal, and run Snakemake again.

    The project has one system, tiny, whose stages from `binarize` on have to run.

    Returns:
        The signal, the names of the stages that the stopped run recorded, and the project after the
        second run, not to be changed.
    """
    project = by_snakemake.copy(tmp_path_factory.mktemp("stopped") / "project")
    params = project.read("params.yaml")
    start_of_wide = params.index("  wide:\n")
    project.write("params.yaml", params[:start_of_wide])
    forget(project, {"binarize@own", "corpus_stats@own", "report"} | stages_of_run("tiny"))
    recorded_before = project.recorded_stages()
    stop_snakemake_in_training(project, request.param)
    recorded_by_stopped_run = project.recorded_stages() - recorded_before
    project.snakemake()
    return request.param, recorded_by_stopped_run, project


@pytest.mark.slow
def test_a_stopped_run_records_only_the_finished_stages(stopped_and_continued):
    """The signal arrives in the training. `binarize` has finished before.

    `corpus_stats` runs beside the training and may have finished. After SIGKILL, a process cannot
    record anything.
    """
    stop_signal, recorded_by_stopped_run, _ = stopped_and_continued

    if stop_signal == signal.SIGKILL:
        assert recorded_by_stopped_run == set()
    else:
        assert "binarize@own" in recorded_by_stopped_run
        assert recorded_by_stopped_run <= {"binarize@own", "corpus_stats@own"}


@pytest.mark.slow
def test_after_a_stopped_run_is_continued_all_stages_are_recorded(stopped_and_continued):
    """The project first had the systems tiny and wide, with 22 stages; then wide was removed."""
    _, _, project = stopped_and_continued

    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()
    entries_of_wide = stages_of_run("wide") | {"fresh@wide-1"}  # five stages
    assert len(project.recorded_stages() - entries_of_wide) == 22 - 5


def result_rows_of_tiny(project, section):
    """Return the rows of system tiny in a section of reports/results.json."""
    results = json.loads(project.read("reports/results.json"))
    return [row for row in results[section] if row["system"] == "tiny"]


@pytest.mark.slow
def test_a_stopped_and_continued_run_gives_the_results_of_an_undisturbed_run(
    stopped_and_continued, by_snakemake
):
    """`by_snakemake` ran undisturbed, with the systems tiny and wide; here tiny is alone."""
    _, _, project = stopped_and_continued

    expected_metrics = []
    for row in result_rows_of_tiny(by_snakemake, "metrics"):
        # If no system has an error of this kind, it has no row. Only wide may have this error.
        if row["metric"] != "cut off" or row["value"] > 0:
            expected_metrics.append(row)
    expected_runs = result_rows_of_tiny(by_snakemake, "runs")
    assert expected_metrics != []
    assert expected_runs != []
    results = json.loads(project.read("reports/results.json"))
    assert results["metrics"] == expected_metrics
    assert results["runs"] == expected_runs


@pytest.mark.slow
def test_the_next_run_records_the_stages_that_a_killed_run_had_finished(project):
    """Snakemake was killed while DVC recorded: two stages have finished, but dvc.lock lacks them.

    A file beside the logs marks each finished stage until it is recorded. The next run has nothing
    to compute, and must record both stages nevertheless.
    """
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}
    for name in ("report", "score@tiny-own-1"):
        project.edit("dvc.lock", f"  {name}:\n", f"  {name}-not-recorded:\n")
        dependencies = graph.input_paths(stages.values(), project.root)[name]
        recording.mark_started(name, stages[name].digest, *dependencies, root=project.root)
        finished_mark = project.root / stages[name].mark
        finished_mark.with_name(f"{name}.begun").rename(finished_mark)
    assert "recorded" not in project.snakemake("--dry-run")

    output = project.snakemake()

    assert "Nothing to be done" in output
    assert "recorded in DVC: 2 of 22 stages" in output
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


@pytest.fixture(scope="module")
def prepared_in_shards(clean, tmp_path_factory):
    """Return a project whose corpus was prepared in two shards, and what Snakemake printed.

    Not to be changed.
    """
    project = clean.copy(tmp_path_factory.mktemp("shards") / "project")
    outputs_of_the_corpus = (
        "data/corpus_stats/own",
        "data/filter_stats/own/binarize.json",
        "data/test_stats/own",
    )
    output = project.snakemake(*outputs_of_the_corpus, "--set-scatter", "shards=2")
    return project, output


@pytest.mark.slow
def test_shards_are_processed_by_separate_jobs(prepared_in_shards):
    """`--set-scatter shards=2` splits the text into two parts, which two jobs can process."""
    project, output = prepared_in_shards

    for kind in ("clean", "dedup", "filter"):
        assert f"{kind}@own, index of its text" in output
        assert f"{kind}@own, shard 2-of-2" in output
    logs = {path.name for path in (project.root / "work/snakemake/logs").iterdir()}
    assert "tokenize@own.log.1-of-2" in logs
    assert "tokenize@own.log.2-of-2" in logs


@pytest.mark.slow
def test_a_corpus_prepared_in_shards_has_the_same_bytes(prepared_in_shards, by_dvc):
    """`dvc repro` prepared the whole corpus in one piece."""
    project, _ = prepared_in_shards

    expected = contents(by_dvc, "data")
    for path in contents(by_dvc, "data/starts"):  # initial weights, which were not requested
        del expected[path]
    assert expected != {}
    assert contents(project, "data") == expected
    assert contents(project, "work/shards") == {}  # The parts are removed.


@pytest.mark.slow
def test_stages_that_ran_in_shards_are_recorded_in_dvc(prepared_in_shards):
    """dvc.yaml knows no shards: each stage is recorded once, for the whole corpus."""
    project, _ = prepared_in_shards

    stages_of_the_corpus = set()
    for stage in graph.load_stages(project.root):
        if stage.name.endswith("@own"):
            stages_of_the_corpus.add(stage.name)
    assert project.recorded_stages() == stages_of_the_corpus | {"resolve"}
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date & stages_of_the_corpus == set()
