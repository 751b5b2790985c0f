"""The pipeline as users run it with DVC, on a small project."""

import json
import re
import sys

import pytest

import micro
from bleuprint.pipeline import graph
from bleuprint.pipeline.rules import rules

CELL = ("train", "average", "translate", "score")
TINY = {f"{stage}@tiny-own-1" for stage in CELL}
WIDE = {f"{stage}@wide-own-1" for stage in CELL}
# The stages that depend on the whole of params.yaml.
ALWAYS = {"overrides", "report"}
UP_TO_DATE = "Data and pipelines are up to date."


def test_repro_writes_the_reports_and_the_scores(by_dvc):
    assert by_dvc.rows() == ["tiny", "wide"]
    records = json.loads(by_dvc.read("reports/results.json"))
    assert [record["lines"] for record in records] == [15, 15]
    assert all(record["bleu"] > 0 for record in records)
    for name in ("table.md", "table.csv", "table.tex"):
        text = by_dvc.read(f"reports/{name}")
        assert "tiny" in text and "wide" in text
    for name in ("results.json", "metrics.json", "table.csv"):
        assert str(by_dvc.root) not in by_dvc.read(f"reports/{name}")


def test_outputs_without_a_suffix_are_the_folders(by_dvc):
    for rule in rules(graph.stages(by_dvc.root), shards=1, root=by_dvc.root):
        for stage in rule.stages.values():
            made = [by_dvc.root / path for path in stage.outputs]
            assert all(path.exists() for path in made)
            pairs = zip(rule.outputs, made, strict=True)
            assert rule.folders == [path for path, there in pairs if there.is_dir()]


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


@pytest.mark.slow
def test_an_experiment_reruns_its_system_alone_and_is_compared_and_taken_back(reproduced):
    before = reproduced.read("reports/results.json")
    setting = ("-S", "systems.tiny.train.label_smoothing=0")
    exp = (sys.executable, "-m", "bleuprint", "exp", "run", "-n", "other")
    output = reproduced.run(*exp, *setting)
    assert set(micro.ran(output)) == TINY | ALWAYS
    assert "\nto compare: bleuprint compare tiny@HEAD tiny@other\n" in output
    old, new = (
        {record["system"]: record["settings_sha256"] for record in json.loads(text)}
        for text in (before, reproduced.read("reports/results.json"))
    )
    assert old["tiny"] != new["tiny"] and old["wide"] == new["wide"]

    for command in (("show",), ("diff", "--all", "HEAD", "other")):
        shown = reproduced.run("dvc", "metrics", *command)
        assert re.findall(r"BLEU\S+", shown) == ["BLEU.tiny.own", "BLEU.wide.own"]
    table = reproduced.run(
        *("dvc", "exp", "show", "--only-changed", "--csv"),
        *("--drop", "^(models|results|data)"),
    )
    heads = table.partition("\n")[0].split(",")
    assert "systems.tiny.train.label_smoothing" in heads and len(heads) < 12, heads
    reproduced.run(sys.executable, "-m", "bleuprint", "plots", "HEAD", "other")
    page = reproduced.read("work/plots/index.html")
    specs = [json.loads(text) for text in re.findall(r"var spec = (\{.*\});\n", page)]
    titles = ["Validation BLEU", "Validation loss", "Training loss", "Test BLEU"]
    assert [spec["title"] for spec in specs] == titles
    for spec in specs:
        points = spec["data"]["values"]
        assert {point["rev"] for point in points} == {"HEAD", "other"}
        assert {point["system"] for point in points} == {"tiny", "wide"}
        assert "DVC_METRIC" not in json.dumps(spec)

    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    output = reproduced.run("dvc", "repro")
    assert "train@tiny-own-1' is cached - skipping run" in output
    assert not set(micro.ran(output)) & TINY
    assert reproduced.read("reports/results.json") == before


@pytest.mark.slow
def test_a_system_is_a_row_while_it_is_in_params(reproduced):
    """Taken back, by hand or by Git, it leaves everything as it was."""
    params, lock = reproduced.read("params.yaml"), reproduced.read("dvc.lock")
    before = reproduced.read("reports/results.json")
    reproduced.write("params.yaml", params + micro.THIRD_SYSTEM)
    assert set(reproduced.repro()) == {f"{stage}@deep-own-1" for stage in CELL} | ALWAYS
    assert reproduced.rows() == ["tiny", "wide", "deep"]

    reproduced.write("params.yaml", params)
    assert set(reproduced.repro()) == ALWAYS
    assert reproduced.read("reports/results.json") == before
    assert _without_times(reproduced.read("dvc.lock")) == _without_times(lock)
    assert "models/deep/own/1" in reproduced.run("bleuprint", "clean")

    reproduced.write("params.yaml", params + micro.THIRD_SYSTEM)
    assert set(reproduced.repro()) == ALWAYS
    reproduced.run("git", "checkout", "--quiet", "params.yaml", "dvc.lock", "reports")
    reproduced.run("bleuprint", "settle")
    reproduced.run("dvc", "checkout")
    assert reproduced.repro() == []
    reproduced.run("bleuprint", "clean", "--yes")
    assert not (reproduced.root / "models/deep").exists()
    assert reproduced.changed() == set()


def _without_times(lock):
    """Stages in the graph, by name; the page contains measured times."""
    from dvc.utils.serialize import loads_yaml

    stages = loads_yaml(lock)["stages"]
    report = stages["report"]
    report["outs"] = [out for out in report["outs"] if out["path"] != "reports/index.html"]
    return {name: stage for name, stage in stages.items() if "@deep" not in name}


def test_a_decoding_setting_trains_nothing(reproduced):
    reproduced.edit(
        "params.yaml",
        "{beam: 2, length_penalty: {kind: gnmt, alpha: 0.6",
        "{beam: 1, length_penalty: {kind: gnmt, alpha: 0",
    )
    assert reproduced.changed() >= {"translate@tiny-own-1", "translate@wide-own-1"}
    assert not any(name.startswith(("train", "average")) for name in reproduced.changed())


def test_reproduce_ends_with_the_scores_and_what_to_commit(reproduced):
    experiment = re.search("^experiment: .*", reproduced.read("params.yaml"), re.MULTILINE)[0]
    reproduced.edit("params.yaml", experiment, "experiment: renamed")
    output = reproduced.run("env", "COLUMNS=100", "bleuprint", "reproduce")
    before, stages, after = output.partition("[1/2] overrides\n")
    assert before.startswith("renamed: params.yaml is valid\n")
    (report, *table, page, changed) = after.splitlines()
    assert stages and report == "[2/2] report"
    rows = [line.split()[0] for line in table if line.startswith(("tiny", "wide"))]
    assert rows == ["tiny", "wide"] and len(table) < 10
    assert page == "page of all results: reports/index.html; all tables: bleuprint table"
    assert changed.startswith("changed: ") and "to keep it: git add params.yaml" in changed


def test_a_misspelt_setting_is_one_line_and_costs_nothing(reproduced):
    reproduced.edit("params.yaml", "label_smoothing:", "lable_smoothing:")
    output = reproduced.run("dvc", "repro", status=255)
    assert output.count("bleuprint: error: ") == 1 and "Traceback" not in output
    assert "lable_smoothing: unknown key; did you mean 'label_smoothing'?" in output
    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    exp = (sys.executable, "-m", "bleuprint", "exp", "run", "--temp", "-S")
    for value, message in (
        (
            "systems.tiny.decode.baem=4",
            "bleuprint: error: -S systems.tiny.decode.baem=4: params.ya",
        ),
        ("systems.tiny.decode.beam=x", "params.yaml: systems.tiny.decode.beam: 'x' is not a whole"),
    ):
        output = reproduced.run(*exp, value, status=1 if "baem" in value else 255)
        assert message in output and "stage" not in output, output
    reproduced.run("git", "checkout", "--quiet", "params.yaml")
    reproduced.run("dvc", "checkout")
    assert reproduced.repro() == []
