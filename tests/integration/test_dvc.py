"""The pipeline as users run it with DVC, on a small project (see also tests/pipeline)."""

import json
import re
import shutil

import pytest

import micro
from bleuprint.pipeline import graph
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.files import sha256_of

CELL = ("train", "average", "translate", "score")
WIDE = {f"{stage}@wide-own-1" for stage in CELL}
# What every other setting runs.
ALWAYS = {"resolve", "report"}
UP_TO_DATE = "Data and pipelines are up to date."


def test_repro_writes_the_reports_and_the_scores(by_dvc):
    assert by_dvc.rows() == ["tiny", "wide"]
    records = json.loads(by_dvc.read("reports/results.json"))
    assert [record["lines"] for record in records["runs"]] == [15, 15]
    bleu = [each["value"] for each in records["metrics"] if each["metric"] == "bleu"]
    assert bleu
    assert min(bleu) > 0
    for name in ("table.md", "table.csv", "table.tex"):
        text = by_dvc.read(f"reports/{name}")
        assert "tiny" in text and "wide" in text
    for name in ("results.json", "metrics.json", "table.csv"):
        assert str(by_dvc.root) not in by_dvc.read(f"reports/{name}")


def test_outputs_without_a_suffix_are_the_folders(by_dvc):
    found = list(make_rules(graph.load_stages(by_dvc.root), shards=1, root=by_dvc.root))
    assert found
    for rule in found:
        assert rule.stages
        for stage in rule.stages.values():
            made = [by_dvc.root / path for path in stage.outputs]
            assert all(path.exists() for path in made)
            pairs = zip(rule.outputs, made, strict=True)
            assert rule.folders == [path for path, there in pairs if there.is_dir()]


def test_a_clone_translates_with_the_outputs_of_two_stages(by_dvc, tmp_path):
    """As docs/cache.md says of `dvc pull`; here they come from a copy of the cache."""
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(tmp_path / "clone"))
    clone, whole = micro.Project(tmp_path / "clone"), by_dvc.copy(tmp_path / "whole")
    shutil.copytree(by_dvc.root / ".dvc" / "cache", clone.root / ".dvc" / "cache")
    command = ("bleuprint", "translate", "--system", "wide", "--corpus", "own", "text.txt")
    for project in (clone, whole):
        project.write("text.txt", "ba deo fi\nnu min\n")
    assert "Traceback" not in clone.run(*command, status=1)
    clone.run("dvc", "checkout", "average@wide-own-1", "binarize@own")
    assert not (clone.root / "results" / "wide").exists()
    assert clone.run(*command) == whole.run(*command) != ""


def test_a_clone_without_data_is_up_to_date(by_dvc, tmp_path):
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(tmp_path / "clone"))
    clone = micro.Project(tmp_path / "clone")
    assert not (clone.root / "data").exists()
    shutil.copytree(by_dvc.root / "inputs", clone.root / "inputs", dirs_exist_ok=True)
    assert clone.run("dvc", "repro", "--allow-missing", "--dry").rstrip().endswith(UP_TO_DATE)


def test_a_decoding_setting_trains_nothing_and_is_taken_back_from_the_cache(reproduced):
    before = reproduced.read("reports/results.json")
    reproduced.edit("params.yaml", "{beam: 2,", "{beam: 1,")
    decoded = {f"{stage}@{row}-own-1" for stage in CELL[2:] for row in ("tiny", "wide")}
    assert set(reproduced.repro()) == decoded | ALWAYS
    assert reproduced.read("reports/results.json") != before
    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    output = reproduced.run("dvc", "repro")
    assert "translate@tiny-own-1' is cached - skipping run" in output
    assert reproduced.read("reports/results.json") == before
    assert reproduced.changed() == set()


@pytest.mark.slow
def test_an_experiment_is_compared_by_dvcs_commands(reproduced):
    setting = "++systems.wide.train.label_smoothing=0"
    output = reproduced.run("dvc", "exp", "run", "--temp", "-n", "other", "-S", setting)
    assert set(micro.ran(output)) == WIDE | ALWAYS
    assert reproduced.run("git", "status", "--porcelain") == ""
    for command in (("show",), ("diff", "--all", "HEAD", "other")):
        shown = reproduced.run("dvc", "metrics", *command)
        assert re.findall(r"BLEU\S+", shown) == ["BLEU.tiny.own", "BLEU.wide.own"]
    table = reproduced.run(
        *("dvc", "exp", "show", "--only-changed", "--csv"),
        *("--drop", "^(data|models|results|src|reports)"),
    )
    heads = table.partition("\n")[0].split(",")
    assert "runs.wide.own.train.label_smoothing" in heads and len(heads) < 12, heads
    reproduced.run("dvc", "plots", "diff", "HEAD", "other", "--out", "plots")
    page = reproduced.read("plots/index.html")
    specs = [json.loads(text) for text in re.findall(r"var spec = (\{.*\});\n", page)]
    titles = ["Validation BLEU", "Validation loss", "Training loss", "Test BLEU"]
    assert [spec["title"] for spec in specs] == titles
    for spec in specs:
        points = spec["data"]["values"]
        assert {point["rev"] for point in points} == {"HEAD", "other"}
        assert {point["system"] for point in points} == {"tiny", "wide"}
        assert "DVC_METRIC" not in json.dumps(spec)


@pytest.mark.slow
def test_a_system_is_a_row_while_it_is_in_params(reproduced):
    """Taken back, by hand or by Git, it leaves everything as it was."""
    params, lock = reproduced.read("params.yaml"), reproduced.read("dvc.lock")
    before = reproduced.read("reports/results.json")
    reproduced.write("params.yaml", params + micro.THIRD_SYSTEM)
    assert (
        set(reproduced.repro())
        == {"fresh@deep-1"} | {f"{stage}@deep-own-1" for stage in CELL} | ALWAYS
    )
    assert reproduced.rows() == ["tiny", "wide", "deep"]

    reproduced.write("params.yaml", params)
    assert set(reproduced.repro()) == ALWAYS
    assert reproduced.read("reports/results.json") == before
    assert _without_deep(reproduced.read("dvc.lock")) == _without_deep(lock)

    reproduced.write("params.yaml", params + micro.THIRD_SYSTEM)
    assert set(reproduced.repro()) == ALWAYS
    reproduced.run("git", "checkout", "--quiet", "params.yaml", "dvc.lock", "reports")
    reproduced.run("dvc", "checkout")
    assert reproduced.repro() == []


@pytest.mark.slow
def test_an_external_system_is_a_row_with_the_scores_of_its_file(reproduced):
    """Its file has the translations of a system that was trained here."""
    file = reproduced.root / "inputs/external/a.de"
    file.parent.mkdir()
    shutil.copy(reproduced.root / "results/wide/own/1/hypotheses/test.held-out.de", file)
    entry = micro.EXTERNAL.replace(64 * "a", sha256_of(file))
    reproduced.write("params.yaml", reproduced.read("params.yaml") + entry)
    stages = {"fresh@online-a-1", *(f"{stage}@online-a-own-1" for stage in CELL)}
    assert set(reproduced.repro()) == stages | ALWAYS
    assert reproduced.repro() == []
    records = json.loads(reproduced.read("reports/results.json"))
    scores = {(each["system"], each["metric"]): each["value"] for each in records["metrics"]}
    assert scores["online-a", "bleu"] == scores["wide", "bleu"]
    assert ("online-a", "loss") not in scores
    assert "system A, with its default settings" in reproduced.read("reports/table.md")
    # the file itself is needed no more, as in a clone that has pulled the results
    file.unlink()
    assert reproduced.repro() == []


def _without_deep(lock):
    """The stages in the graph; DVC keeps the entries of others."""
    from dvc.utils.serialize import loads_yaml

    stages = loads_yaml(lock)["stages"]
    return {name: stage for name, stage in stages.items() if "@deep" not in name}


def test_reproduce_ends_with_the_scores_and_what_to_commit(reproduced):
    reproduced.edit("params.yaml", "experiment: micro", "experiment: renamed")
    output = reproduced.run("env", "COLUMNS=100", "bleuprint", "reproduce")
    before, stages, after = output.partition("[1/2] resolve")
    assert before.startswith("renamed: params.yaml is valid\n")
    (_, report, *table, committed, changed, page, _, _) = after.splitlines()
    assert stages and report.startswith("[2/2] report")
    rows = [line.split()[0] for line in table if line.startswith(("tiny", "wide"))]
    assert set(rows) == {"tiny", "wide"} and len(table) <= 40
    assert committed.startswith("Nothing to compare with: no results")
    assert changed.startswith("Changed: ") and "To keep it: git add params.yaml" in changed
    assert page.startswith("Next: open reports/index.html")
