"""Rows that start from other rows, and shared vocabularies, in DVC's graph; nothing is run."""

import networkx
import pytest

import micro
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.resolve import resolve
from bleuprint.pipeline.rules import rules as rules_of

TUNED = """\
tuned:
  tuned:
    like: tiny
    corpora: {other: {}}
    train: {from: {system: tiny, corpus: own}}
  again:
    like: tuned
    train: {from: {system: tuned, corpus: other}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = micro.make(tmp_path_factory.mktemp("tuned") / "project")
    more = f"{micro.SECOND_CORPUS}vocabularies: {{other: own}}\n{micro.COMET}systems:\n"
    project.edit("params.yaml", "systems:\n", more)
    project.write("params.yaml", project.read("params.yaml") + TUNED)
    resolve(project.root)
    return project


@pytest.fixture(scope="module")
def before(project):
    """By stage, all that DVC runs before it."""
    with open_repo(project.root) as repo:
        graph = repo.index.graph
        return {
            stage.name: {each.name for each in networkx.descendants(graph, stage)}
            for stage in graph
        }


def test_dvc_orders_a_start_before_what_starts_there(before):
    wanted = before["train_tuned@tuned-other-1"]
    assert {"average@tiny-own-1", "start@tuned"} <= wanted
    assert "train_tuned@tuned-other-1" in before["train_tuned@again-other-1"]
    # what starts from random weights waits for no other training
    for name in ("train@tiny-own-1", "train@tiny-other-1", "train@wide-other-1"):
        assert not {stage for stage in before[name] if stage.startswith(("train", "start"))}
    for kind in ("average", "translate", "score", "comet"):
        model = "own-model-" if kind == "comet" else ""
        assert "train_tuned@tuned-other-1" in before[f"{kind}_tuned@{model}tuned-other-1"]
    tables = {stage for stage in before["report"] if "tuned@" in stage}
    assert {"score_tuned@tuned-other-1", "comet_tuned@own-model-again-other-1"} <= tables


def test_dvc_orders_a_vocabulary_before_the_text_that_it_numbers(before):
    assert {"share_vocabulary@other", "learn_vocabulary@own"} <= before["binarize@other"]
    assert "share_vocabulary@other" not in before["binarize@own"]


def test_snakemake_has_the_same_stages(project, before, stages):
    maker = {path: stage.name for stage in stages.values() for path in stage.outputs}
    of_snakemake = {
        name: {maker[path] for path in paths if path in maker}
        for rule in rules_of(stages.values(), root=project.root)
        for name, paths in rule.dependencies.items()
    }
    for name in ("binarize@other", "start@again", "train_tuned@again-other-1"):
        assert of_snakemake[name] <= before[name]
    assert "start@again" in of_snakemake["train_tuned@again-other-1"]
    assert "share_vocabulary@other" in of_snakemake["binarize@other"]
    for name in ("share_vocabulary@other", "start@tuned"):
        assert f"code.{name.partition('@')[0]}" in stages[name].parameters
    folders = {rule.name: rule.folders for rule in rules_of(stages.values(), root=project.root)}
    assert folders["start"] == ["data/starts/{key}"]
    assert folders["share_vocabulary"] == ["data/bpe/{key}/shared"]
    tuned = stages["train_tuned@tuned-other-1"]
    assert (tuned.kind, tuned.entry) == ("train", "train_tuned")
    assert tuned.dependencies[0] == "data/starts/tuned/1"
    scratch = stages["train@tiny-other-1"]
    assert tuned.dependencies[1:] == scratch.dependencies
    assert tuned.command == scratch.command.replace("tiny", "tuned")
    assert (tuned.gpu, tuned.threads) == (scratch.gpu, scratch.threads)
    assert stages["train_tuned@tuned-own-1"].gpu == 0  # left out
