"""Systems that start from others, and shared vocabularies, in DVC's graph; nothing is run."""

import networkx
import pytest

import micro
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.rules import make_rules

# `again` starts from a system below it, which starts from one above.
FINE = """\
  again: {like: fine}
  fine:
    like: tiny
    corpora: {other: {}}
init_from:
  again: {system: fine, corpus: other}
  fine: {system: tiny, corpus: own}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = micro.make(tmp_path_factory.mktemp("fine") / "project")
    more = f"{micro.SECOND_CORPUS}vocabularies: {{other: own}}\n{micro.COMET}systems:\n"
    project.edit("params.yaml", "systems:\n", more)
    project.write("params.yaml", project.read("params.yaml") + FINE)
    write_resolved(project.root)
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
    assert {"average@tiny-own-1", "parents@fine", "init_weights@fine-1"} <= before[
        "train@fine-other-1"
    ]
    assert "train@fine-other-1" in before["train@again-other-1"]


def test_what_starts_from_random_weights_waits_for_no_other_training(before):
    for name in ("train@tiny-own-1", "train@tiny-other-1", "train@wide-other-1"):
        kinds = {stage.partition("@")[0] for stage in before[name]}
        assert "fresh" in kinds
        assert not kinds & {"train", "parents", "init_weights"}


def test_a_system_with_a_start_runs_the_stages_of_others(before):
    for kind in ("average@", "translate@", "score@", "comet@own-model-"):
        assert "train@fine-other-1" in before[f"{kind}fine-other-1"]
    assert {"score@fine-other-1", "comet@own-model-again-other-1"} <= before["report"]


def test_dvc_orders_a_vocabulary_before_the_text_that_it_numbers(before):
    assert {"share_vocabulary@other", "learn_vocabulary@own"} <= before["binarize@other"]
    assert "share_vocabulary@other" not in before["binarize@own"]


def test_snakemake_has_the_same_stages(project, before, stages):
    maker = {path: stage.name for stage in stages.values() for path in stage.outputs}
    of_snakemake = {
        name: {maker[path] for path in paths if path in maker}
        for rule in make_rules(stages.values(), root=project.root)
        for name, paths in rule.dependencies.items()
    }
    for name in ("binarize@other", "parents@again", "init_weights@again-1", "train@again-other-1"):
        assert of_snakemake[name] <= before[name]
    assert {"fresh@again-1", "init_weights@again-1"} <= of_snakemake["train@again-other-1"]
    assert of_snakemake["init_weights@again-1"] == {"parents@again"}
    assert "share_vocabulary@other" in of_snakemake["binarize@other"]
    for name in ("share_vocabulary@other", "parents@fine", "init_weights@fine-1", "fresh@fine-1"):
        assert f"code.{name.partition('@')[0]}" in stages[name].parameters
    folders = {rule.name: rule.folders for rule in make_rules(stages.values(), root=project.root)}
    assert folders["init_weights"] == ["data/starts/{system}/{seed}/weights"]
    assert folders["parents"] == ["data/parents/{key}"]
    assert stages["fresh@fine-1"].outputs == ("data/starts/fine/1/fresh.json",)
    assert folders["share_vocabulary"] == ["data/bpe/{key}/shared"]
    fine = stages["train@fine-other-1"]
    scratch = stages["train@tiny-other-1"]
    assert fine.dependencies[0] == "data/starts/fine/1"
    assert fine.dependencies[1:] == scratch.dependencies[1:]
    assert fine.command == scratch.command.replace("tiny", "fine")
    assert (fine.gpu, fine.threads) == (scratch.gpu, scratch.threads)
    assert stages["train@fine-own-1"].gpu == 0  # left out
