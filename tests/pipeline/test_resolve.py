"""The stage resolve, and what it makes stale in both graphs.

The graph is that from `train` on; the scripts of its other stages are replaced by one that writes
their outputs and computes nothing.
"""

import json
import re

import pytest
from ruamel.yaml import YAML

import micro
from bleuprint.pipeline import graph
from bleuprint.runtime.yaml_tree import load_yaml

CORPORA = """\
    corpora:
      own: {decode: {beam: 3}}
      other: {train: {label_smoothing: 0.2}}
"""
STAND_IN = """\
import sys
from pathlib import Path
from bleuprint.pipeline import stage_args
from bleuprint.runtime.yaml_tree import load_yaml

def main():
    kind = Path(sys.argv[0]).stem
    stage = load_yaml(Path("dvc.yaml"))["stages"][kind]
    if "matrix" in stage:
        stage_args.cell(None)  # ends the stage if the cell is left out
    page = ["reports/index.html"] if kind == "report" else []  # of Snakemake's report alone
    for output in (*stage["outs"], *stage.get("metrics", ()), *page):
        path = output if isinstance(output, str) else next(iter(output))
        for name, value in zip(("system", "corpus", "seed"), sys.argv[1:]):
            path = path.replace(f"${{item.{name}}}", value)
        path = Path(path) if Path(path).suffix else Path(path, "file")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(sys.argv))

main()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two systems on two corpora: `tiny` with other settings on each, `wide` on the first alone."""
    project = micro.make(tmp_path_factory.mktemp("resolve") / "project")
    project.edit("params.yaml", "systems:\n", f"{micro.SECOND_CORPUS}systems:\n")
    project.edit("params.yaml", "  wide:\n", f"{CORPORA}  wide:\n")
    project.write(
        "params.yaml", project.read("params.yaml") + "    corpora: {own: {}, other: null}\n"
    )
    for script in ("train", "average", "translate", "score", "report"):
        project.write(f"stages/{script}.py", STAND_IN)
    # data is there, without stages that make it
    pipeline = load_yaml(project.root / "dvc.yaml")
    stages = pipeline["stages"].items()
    pipeline["stages"] = {name: stage for name, stage in stages if "foreach" not in stage}
    with (project.root / "dvc.yaml").open("w") as file:
        YAML().dump(pipeline, file)
    for path in ("binary", "tokens", "split", "tests", "ledgers", "statistics"):
        for corpus in ("own", "other"):
            (folder := project.root / "data" / path / corpus).mkdir(parents=True)
            (folder / "file").touch()
    project.commit()
    return project


@pytest.fixture(scope="module")
def by_dvc(made, tmp_path_factory):
    project = made.copy(tmp_path_factory.mktemp("dvc") / "project")
    project.repro()
    return project


@pytest.fixture(scope="module")
def by_snakemake(made, tmp_path_factory):
    project = made.copy(tmp_path_factory.mktemp("snakemake") / "project")
    project.snakemake()
    return project


def would_run(project):
    """The stages of Snakemake's dry run, without its own target."""
    return set(re.findall(r"^Job \d+: (\S+)$", project.snakemake("-n"), re.M))


CELL = ("train", "average", "translate")
EDITS = {
    "a setting on a corpus": (
        "params.yaml",
        "label_smoothing: 0.2",
        "label_smoothing: 0.3",
        {"train@tiny-other-1"},
    ),
    "of decoding, which wide inherits": (
        "params.yaml",
        "beam: 3",
        "beam: 4",
        {"translate@tiny-own-1", "translate@wide-own-1"},
    ),
    "of a row and those like it": (
        "params.yaml",
        "clip_norm: 1.0",
        "clip_norm: 2.0",
        {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"},
    ),
    "of a row alone": ("params.yaml", "d_ff: 64", "d_ff: 32", {"train@wide-own-1"}),
    "a cell comes": (
        "params.yaml",
        "{own: {}, other: null}",
        "{own: {}}",
        {f"{kind}@wide-other-1" for kind in CELL},
    ),
    "a cell goes": (
        "params.yaml",
        "      own: {decode: {beam: 3}}\n",
        "      own: null\n",
        {f"{kind}@tiny-own-1" for kind in CELL} | {"translate@wide-own-1"},
    ),
    "a comment": ("params.yaml", "seeds: [1]", "seeds: [1] # one", set()),
    "a default": (
        "src/bleuprint/config/system.py",
        "label_smoothing: Share = 0.1",
        "label_smoothing: Share = 0.15",
        {"train@tiny-own-1", "train@wide-own-1"},
    ),
    "a docstring of the model": (
        "src/bleuprint/model/transformer.py",
        '"""',
        '"""Now: ',
        set(),
    ),
    "code of the report": (
        "src/bleuprint/report/grid.py",
        "\nNONE = ",
        "\nMORE = 1\nNONE = ",
        set(),
    ),
    "code of training": (
        "src/bleuprint/training/lr_schedule.py",
        "\n\n\ndef ",
        "\n\n\nMORE = 1\n\n\ndef ",
        {f"train@{cell}-1" for cell in ("tiny-own", "tiny-other", "wide-own", "wide-other")},
    ),
}
DOWNSTREAM = ("train", "average", "translate", "score")


@pytest.mark.parametrize(("path", "old", "new", "stale"), EDITS.values(), ids=EDITS)
def test_an_edit_makes_stale_what_it_changes(by_dvc, tmp_path, path, old, new, stale):
    project = by_dvc.copy(tmp_path / "dvc")
    before = project.read("reports/resolved.json")
    text = project.read(path)
    assert old in text
    project.write(path, text.replace(old, new, 1))
    assert project.changed() == {"resolve"}
    project.run("dvc", "repro", "resolve")
    report = {"report"} if project.read("reports/resolved.json") != before else set()
    assert project.changed() == stale | report


@pytest.mark.slow
def test_snakemake_runs_it_with_all_that_depends_on_it(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "snakemake")
    project.edit("params.yaml", "label_smoothing: 0.2", "label_smoothing: 0.3")
    later = {f"{kind}@tiny-other-1" for kind in DOWNSTREAM}
    assert would_run(project) == later | {"resolve", "report"}


@pytest.mark.slow
def test_both_run_and_record_the_same(by_dvc, by_snakemake):
    assert by_snakemake.changed() == by_dvc.changed() == would_run(by_snakemake) == set()
    for name in ("dvc.lock", "reports/resolved.json", "results/wide/own/1/scores.json"):
        assert by_snakemake.read(name) == by_dvc.read(name) != ""


def test_the_file_has_what_each_cell_computes_with(by_dvc):
    written = json.loads(by_dvc.read("reports/resolved.json"))
    tiny, wide = (written["cells"][name] for name in ("tiny", "wide"))
    assert tiny["other"]["train"]["label_smoothing"] == 0.2
    assert tiny["own"]["train"]["label_smoothing"] == 0.1  # the default
    assert (tiny["own"]["decode"]["beam"], tiny["other"]["decode"]["beam"]) == (3, 2)
    assert (tiny["own"]["model"]["d_k"], wide["own"]["model"]["d_ff"]) == (16, 64)
    assert set(wide["other"].values()) == {False}
    assert [*written["inputs"]["own"]] == ["inputs/a.de", "inputs/a.en"]


def test_a_cell_left_out_has_empty_outputs_and_no_gpu(by_dvc):
    stages = {stage.name: stage for stage in graph.stages(by_dvc.root)}
    for kind in DOWNSTREAM:
        stage = stages[f"{kind}@wide-other-1"]
        for path in stage.outputs:
            place = by_dvc.root / path
            file = place / "empty" if place.is_dir() else place
            assert file.read_text() == "{}\n"
    for kind in ("train", "translate"):
        gpus = [stages[f"{kind}@{cell}-1"].gpu for cell in ("wide-other", "wide-own")]
        assert gpus == [0, 1], kind


def test_a_command_for_a_cell_left_out_is_one_line(by_dvc):
    cell = ("--system", "wide", "--corpus", "other")
    message = (
        "bleuprint: error: params.yaml: wide is not trained on other; systems.wide.corpora has: "
        "own\n"
    )
    assert by_dvc.run("bleuprint", "translate", *cell, status=1) == message
