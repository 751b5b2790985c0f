"""The examples of docs/contributing.md, followed in a copy of a project."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import sacrebleu
from safetensors.numpy import load_file
from scipy.stats import binomtest

import micro
from root import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "contributing.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
RULE = (ROOT / "docs" / "preparation.md").read_text("utf-8")


def blocks(section, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def follow(project, name):
    """Write the files of a section, each named before its block, and apply its differences."""
    section = SECTIONS[name]
    named = re.findall(r"`([\w/]+\.py)`:\n\n```python\n(.*?)^```$", section, re.M | re.S)
    assert len(named) == len(blocks(section, "python"))
    for path, text in named:
        project.write(path, text)
    for patch in blocks(section, "diff"):
        command = ["git", "apply", "-"]
        subprocess.run(command, cwd=project.root, input=patch, text=True, check=True)


def write_schema(project, name):
    """Run the commands of a section, which write the schema for editors."""
    (project.root / "docs").mkdir()
    commands = blocks(SECTIONS[name], "bash")
    assert commands
    for command in commands:
        project.run("bash", "-ec", command)


def test_a_rule_drops_and_counts_pairs_before_anything_is_run(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    (text,) = [block for block in blocks(RULE, "python") if "class Questions" in block]
    assert "`questions.py`" in SECTIONS["A cleaning rule"]
    project.write("src/bleuprint/rules/questions.py", text)
    project.edit("params.yaml", "filter: {length", "filter: {questions: {apart: 0}, length")
    lines = project.read("inputs/a.en").splitlines()
    lines[:3] = [f"{line} ?" for line in lines[:3]]
    project.write("inputs/a.en", "".join(f"{line}\n" for line in lines))
    assert "questions: 3 dropped" in project.run("bleuprint", "inspect", "own")
    write_schema(project, "A cleaning rule")
    assert '"questions"' in project.read("docs/params.schema.json")


def test_a_file_format_is_downloaded_and_cleaned_like_the_plain_text(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    two_files = "source: {path: inputs/a.en}, target: {path: inputs/a.de}"
    project.run("dvc", "repro", "clean@own")
    expected = {side: project.read(f"data/clean/own/train.{side}") for side in ("en", "de")}
    follow(project, "A file format")
    sides = [project.read(f"inputs/a.{side}").splitlines() for side in ("en", "de")]
    lines = [f"{source} ||| {target}\n" for source, target in zip(*sides, strict=True)]
    project.write("inputs/a.txt", "".join(lines))
    project.edit("params.yaml", two_files, "format: fast-align, both: {path: inputs/a.txt}")
    ran = micro.ran(project.run("dvc", "repro", "clean@own"))
    assert ran == ["resolve", "download@own", "clean@own"]
    assert {side: project.read(f"data/clean/own/train.{side}") for side in expected} == expected
    assert expected["en"].count("\n") == 300

    project.write("inputs/a.txt", "".join([*lines[:7], "ba deo\n", *lines[8:]]))
    said = project.run("dvc", "repro", "clean@own", status=None)
    assert "inputs/a.txt:8: not of the form source ||| target" in said

    write_schema(project, "A file format")
    assert "fast-align" in project.read("docs/params.schema.json")


def test_a_stage_runs_in_both_graphs(reproduced):
    follow(reproduced, "A stage")
    output = reproduced.run("dvc", "repro", "longest@own")
    assert micro.ran(output) == ["resolve", "longest@own"]
    text = reproduced.read("data/split/own/train.en").splitlines()
    found = reproduced.read("data/longest/own.txt").splitlines()
    assert found == sorted(text, key=lambda line: -len(line))[:10]
    assert "longest" in reproduced.run("snakemake", "--list-rules").split()
    assert "longest@own" not in reproduced.run("snakemake", "-n", "data/longest/own.txt")


def test_a_setting_changes_a_training_and_is_checked(reproduced):
    facts = "results/wide/own/1/training.json"
    before = json.loads(reproduced.read(facts))
    follow(reproduced, "A setting of a system")
    reproduced.run("dvc", "repro", "train@wide-own-1")
    unset = json.loads(reproduced.read(facts))
    assert (unset["valid_loss"], unset["settings"]) == (before["valid_loss"], before["settings"])
    reproduced.edit("params.yaml", "{lr_schedule: {inv", "{clip_value: 0.001, lr_schedule: {inv")
    reproduced.run("dvc", "repro", "train@wide-own-1")
    assert json.loads(reproduced.read(facts))["valid_loss"] != before["valid_loss"]
    reproduced.edit("params.yaml", "clip_value: 0.001", "clip_value: -1")
    said = reproduced.run("bleuprint", "check", status=1)
    assert re.search(r"params.yaml:\d+: systems\.wide\.train\.clip_value: -1 ", said)
    write_schema(reproduced, "A setting of a system")
    assert "clip_value" in reproduced.read("docs/params.schema.json")


def test_a_model_variation_is_trained_and_shown_and_changes_no_other_row(reproduced):
    follow(reproduced, "A model variation")
    before = {system: weights(reproduced, system) for system in ("tiny", "wide")}
    row = "  squared:\n    like: tiny\n    model: {activation: squared_relu}\n"
    reproduced.write("params.yaml", reproduced.read("params.yaml") + row)
    ran = reproduced.repro()
    assert {"train@tiny-own-1", "train@squared-own-1", "score@squared-own-1", "report"} <= {*ran}
    assert {system: weights(reproduced, system) for system in before} == before
    assert weights(reproduced, "squared") not in before.values()
    description = json.loads(reproduced.read("models/squared/own/1/averaged/model.json"))
    assert description["model"]["activation"] == "squared_relu"
    assert reproduced.rows() == ["tiny", "wide", "squared"]
    assert "squared" in reproduced.read("reports/table.md")
    reproduced.edit("params.yaml", "squared_relu", "squared")
    said = reproduced.run("bleuprint", "check", status=1)
    assert re.search(r"params.yaml:\d+: systems.squared.model.activation: 'squared' ", said)
    write_schema(reproduced, "A model variation")
    assert "squared_relu" in reproduced.read("docs/params.schema.json")


def weights(project, system):
    """The bytes of a system's averaged weights, by name."""
    tensors = load_file(project.root / f"models/{system}/own/1/averaged/model.safetensors")
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def test_a_kind_of_system_has_a_scored_row(reproduced):
    follow(reproduced, "A kind of system")
    (row,) = blocks(SECTIONS["A kind of system"], "yaml")
    reproduced.write("params.yaml", reproduced.read("params.yaml") + row)
    trained = [stage for stage in reproduced.repro() if stage.startswith("train@")]
    assert trained == ["train@capitals-own-1"]  # which writes empty outputs
    sources = reproduced.read("data/split/own/test.held-out.en").splitlines()
    references = reproduced.read("data/split/own/test.held-out.de").splitlines()
    expected = [source.upper() for source in sources]
    hypotheses = reproduced.read("results/capitals/own/1/hypotheses/test.held-out.de")
    assert hypotheses.splitlines() == expected
    (bleu,) = (
        each
        for each in json.loads(reproduced.read("reports/results.json"))["metrics"]
        if (each["system"], each["metric"], each["group"]) == ("capitals", "bleu", "")
    )
    assert bleu["value"] == pytest.approx(sacrebleu.corpus_bleu(expected, [references]).score)
    assert 0 < bleu["ci_low"] < bleu["value"] < bleu["ci_high"]
    table = reproduced.read("reports/table.md")
    assert "capitals" in table and "tr: each letter as a capital" in table
    assert reproduced.repro() == []

    reproduced.edit("params.yaml", "tr a-z A-Z", "head -1")
    said = reproduced.run("dvc", "repro", status=None)
    assert re.search(r"params.yaml:\d+: .*head -1 has 1 line, but the test set held-out", said)
    reproduced.edit("params.yaml", "{command: ", "{path: inputs/external/a.de, command: ")
    said = reproduced.run("bleuprint", "check", status=1)
    assert re.search(r"params.yaml:\d+: .*held-out: needs path and sha256, or a command", said)
    write_schema(reproduced, "A kind of system")
    assert '"command"' in reproduced.read("docs/params.schema.json")


def test_a_metric_is_scored_and_shown(reproduced):
    follow(reproduced, "A metric")
    ran = reproduced.repro()
    assert {name.partition("@")[0] for name in ran} <= {
        "resolve",
        "score",
        "report",
    }
    reference, hypothesis = "data/split/own/test.held-out.de", "hypotheses/test.held-out.de"
    for system in ("tiny", "wide"):
        sides = [
            reproduced.read(path).splitlines()
            for path in (reference, f"results/{system}/own/1/{hypothesis}")
        ]
        expected = 100 * sum(map(str.__eq__, *sides)) / len(sides[0])
        (row,) = (
            each
            for each in json.loads(reproduced.read("reports/results.json"))["metrics"]
            if (each["system"], each["metric"]) == (system, "exact")
        )
        assert row["value"] == round(expected, 6) and row["ci_low"] <= expected <= row["ci_high"]
        assert row["p"] is None  # the test set has too few sentences to compare the systems
    for name in ("table.md", "index.html"):
        assert "Exact match" in reproduced.read(f"reports/{name}")


# Prints the metrics of the example in the records of two systems on a test set of 100 lines.
MEASURED = """
import json, sys
from pathlib import Path
import result_trees as trees
from bleuprint.report.records import collect
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set, measured_scores
root = Path(sys.argv[1])
settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
trees.write_all(root, settings)
records = collect(settings, root)
scores = score_frame(records)
(table,) = tables_by_test_set(scores, measured_scores(scores)).values()
of_example = records.metrics[records.metrics.metric == "exact"]
heads = [column.label for column in table.columns]
print(json.dumps({"metrics": json.loads(of_example.to_json(orient="records")), "heads": heads}))
"""


def test_a_metric_has_an_interval_and_a_test(tmp_path):
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__"))
    follow(micro.Project(checkout), "A metric")
    project = tmp_path / "project"
    path = os.pathsep.join([str(checkout / "src"), str(ROOT / "tests" / "support")])
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(project)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    references = (project / "data/split/news-en-de/test.first.de").read_text("utf-8").splitlines()
    is_right = {}
    for system in ("tiny", "small"):
        hypotheses = project / f"results/{system}/news-en-de/1/hypotheses/test.first.de"
        translations = hypotheses.read_text("utf-8").splitlines()
        is_right[system] = [a == b for a, b in zip(translations, references, strict=True)]
    tiny, small = printed["metrics"]
    assert (tiny["system"], small["system"]) == ("tiny", "small")
    for row in (tiny, small):
        expected = binomtest(sum(is_right[row["system"]]), 100).proportion_ci(method="wilson")
        assert row["value"] == sum(is_right[row["system"]])
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(
            (100 * expected.low, 100 * expected.high), abs=1e-3
        )
    # McNemar's exact test of the lines on which they differ
    pairs = list(zip(is_right["tiny"], is_right["small"], strict=True))
    better = pairs.count((False, True))
    worse = pairs.count((True, False))
    assert better + worse > 5
    expected_p = binomtest(better, better + worse).pvalue
    assert small["p"] == pytest.approx(expected_p, abs=0.02)
    assert tiny["p"] is None
    assert {"Exact match", "Δ Exact match"} <= set(printed["heads"])


def test_a_column_of_the_table_is_in_all_its_forms(reproduced):
    follow(reproduced, "A column of the table")
    ran = micro.ran(reproduced.run("dvc", "repro"))
    assert set(ran) <= {"resolve", "report"}
    runs = json.loads(reproduced.read("reports/results.json"))["runs"]
    shown = f"{runs[0]['source_tokens'] / 1e6:,.2f}M"
    for name in ("table.md", "table.tex", "index.html"):
        text = reproduced.read(f"reports/{name}")
        assert "Source tokens" in text
        assert shown in text
