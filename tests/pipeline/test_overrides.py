"""Systems with other settings on one corpus, or trained on some corpora only, in both graphs.

The graph is that from `overrides` on; the scripts of its other stages are replaced by one that
writes their outputs and computes nothing.
"""

import json
import re

import pytest
from ruamel.yaml import YAML

import micro
from bleuprint.config.experiment import load
from bleuprint.pipeline import graph
from bleuprint.pipeline.leftovers import leftovers
from bleuprint.runtime.schema import load_yaml

CORPORA = """\
    corpora:
      own: {decode: {<<: *decode, beam: 3}}
      other: {train: {<<: *train, label_smoothing: 0.2}}
"""
STAND_IN = """\
import sys
from pathlib import Path
from bleuprint.pipeline import stage_args
from bleuprint.runtime.schema import load_yaml

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
    """Two systems on two corpora: `tiny` with overrides, `wide` on the first corpus only."""
    project = micro.make(tmp_path_factory.mktemp("overrides") / "project")
    project.edit("params.yaml", "systems:\n", f"{micro.SECOND_CORPUS}systems:\n")
    project.edit("params.yaml", "  wide:\n", f"{CORPORA}  wide:\n")
    project.write("params.yaml", project.read("params.yaml") + "    corpora: {own: {}}\n")
    for script in ("train", "average", "translate", "score", "contrast", "report"):
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


EDITS = {
    "an override": ("label_smoothing: 0.2", "label_smoothing: 0.3", {"train@tiny-other-1"}),
    "of decoding": ("beam: 3", "beam: 4", {"translate@tiny-own-1"}),
    "a cell comes": (
        "    corpora: {own: {}}",
        "    corpora: {own: {}, other: {}}",
        {f"{kind}@wide-other-1" for kind in ("train", "average", "translate")},
    ),
    "a cell goes": (
        "      own: {decode: {<<: *decode, beam: 3}}\n",
        "",
        {f"{kind}@tiny-own-1" for kind in ("train", "average", "translate")},
    ),
}
DOWNSTREAM = ("train", "average", "contrast", "translate", "score")


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "stale"), EDITS.values(), ids=EDITS)
def test_an_edit_reruns_its_cell_alone(by_dvc, by_snakemake, tmp_path, old, new, stale):
    project = by_dvc.copy(tmp_path / "dvc")
    project.edit("params.yaml", old, new)
    project.run("dvc", "repro", "overrides")
    assert project.changed() == stale | {"report"}
    # Snakemake shows also what depends on it
    project = by_snakemake.copy(tmp_path / "snakemake")
    project.edit("params.yaml", old, new)
    (first,) = {name.partition("@")[2] for name in stale}
    begin = min(DOWNSTREAM.index(name.partition("@")[0]) for name in stale)
    later = {f"{kind}@{first}" for kind in DOWNSTREAM[begin:]}
    assert would_run(project) == later | {"overrides", "report"}


@pytest.mark.slow
def test_both_run_and_record_the_same(by_dvc, by_snakemake):
    assert by_snakemake.changed() == by_dvc.changed() == would_run(by_snakemake) == set()
    for name in ("reports/overrides.json", "results/wide/own/1/scores.json"):
        assert by_snakemake.read(name) == by_dvc.read(name) != ""


@pytest.mark.slow
def test_a_stage_is_recorded_with_the_override_it_ran_with(by_snakemake, tmp_path):
    project = by_snakemake.copy(tmp_path / "project")
    project.edit("params.yaml", "label_smoothing: 0.2", "label_smoothing: 0.3")
    project.snakemake("results/tiny/other/1/training.json")  # without the stage overrides
    project.run("dvc", "repro", "overrides")
    assert project.changed() == {"report"}


def test_overrides_are_the_values_of_params_yaml(by_dvc):
    written = json.loads(by_dvc.read("reports/overrides.json"))
    train = written["tiny"]["other"].pop("train")
    assert (train["label_smoothing"], train["max_updates"]) == (0.2, 60)
    decode = written["tiny"]["own"].pop("decode")
    assert (decode["beam"], decode["length_penalty"]) == (3, {"kind": "gnmt", "alpha": 0.6})
    sections = ("model", "train", "average", "decode")
    assert written["tiny"]["own"] == dict.fromkeys(("model", "train", "average"), True)
    assert written["tiny"]["other"] == dict.fromkeys(("model", "average", "decode"), True)
    assert written["wide"]["own"] == dict.fromkeys(sections, True)
    assert written["wide"]["other"] == dict.fromkeys(sections, False)


def test_a_cell_left_out_has_empty_outputs_and_no_gpu(by_dvc):
    stages = {stage.name: stage for stage in graph.stages(by_dvc.root)}
    for kind in DOWNSTREAM:
        stage = stages[f"{kind}@wide-other-1"]
        for path in stage.outputs:
            place = by_dvc.root / path
            file = place / "empty" if place.is_dir() else place
            assert file.read_text() == "{}\n"
    for kind in ("train", "translate", "contrast"):
        gpus = [stages[f"{kind}@{cell}-1"].gpu for cell in ("wide-other", "wide-own")]
        assert gpus == [0, 1], kind
    # which are outputs of the graph, and no leftovers; a training of before is one
    folder = "work/trainings/wide.other.1.0123456789abcdef"
    (by_dvc.root / folder).mkdir(parents=True)
    found = leftovers(load(by_dvc.root / "params.yaml"), by_dvc.root)
    assert [str(path) for path, _ in found] == [folder]


def test_a_command_for_a_cell_left_out_is_one_line(by_dvc):
    cell = ("--system", "wide", "--corpus", "other")
    message = (
        "bleuprint: error: params.yaml: wide is not trained on other; systems.wide.corpora has: "
        "own\n"
    )
    assert by_dvc.run("bleuprint", "translate", *cell, status=1) == message
    assert by_dvc.run("bleuprint", "train", "wide", "other", "1", status=1) == message
