"""Systems that start from the weights of others, and shared vocabularies, in DVC's graph.

Nothing is run.
"""

import networkx
import pytest

import micro
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.rules import make_rules

# System `again` starts from `fine`, which stands below it. System `fine` starts from `tiny`, which
# stands above it.
FINE_TUNED_SYSTEMS = """\
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
    """Make a project with two fine-tuned systems, fine and again; its settings are resolved.

    The corpus other uses the vocabulary of the corpus own. The project has a COMET model, too.
    """
    project = micro.make(tmp_path_factory.mktemp("fine") / "project")
    sections = f"{micro.SECOND_CORPUS}vocabularies: {{other: own}}\n{micro.COMET}"
    project.edit("params.yaml", "systems:\n", f"{sections}systems:\n")
    project.write("params.yaml", project.read("params.yaml") + FINE_TUNED_SYSTEMS)
    write_resolved(project.root)
    return project


@pytest.fixture(scope="module")
def dvc_before(project):
    """Return the names of all stages that DVC runs before a stage, by the stage's name."""
    names_before = {}
    with open_repo(project.root) as repo:
        graph = repo.index.graph
        for stage in graph:
            # An edge of DVC's graph leads from a stage to one that it depends on.
            stages_before = networkx.descendants(graph, stage)
            names_before[stage.name] = {stage_before.name for stage_before in stages_before}
    return names_before


@pytest.fixture(scope="module")
def rules(project, stages):
    """Return the rules of Snakemake by name."""
    return {rule.name: rule for rule in make_rules(stages.values(), root=project.root)}


@pytest.fixture(scope="module")
def snakemake_before(rules, stages):
    """Return the names of the stages whose outputs a job of Snakemake reads, by its stage."""
    writers = {}
    for stage in stages.values():
        for path in stage.outputs:
            writers[path] = stage.name
    names_before = {}
    for rule in rules.values():
        for name, paths in rule.dependencies.items():
            names_before[name] = {writers[path] for path in paths if path in writers}
    return names_before


def test_dvc_trains_a_system_after_the_one_whose_weights_it_starts_with(dvc_before):
    """The system fine starts from tiny on the corpus own: `fine: {system: tiny, corpus: own}`."""
    stages_before = dvc_before["train@fine-other-1"]

    assert {"average@tiny-own-1", "parents@fine", "init_weights@fine-1"} <= stages_before


def test_dvc_trains_a_system_after_one_that_is_below_it_in_params_yaml(dvc_before):
    """The system again starts from fine, which params.yaml names later."""
    assert "train@fine-other-1" in dvc_before["train@again-other-1"]


@pytest.mark.parametrize("run", ["tiny-own-1", "tiny-other-1", "wide-other-1"])
def test_a_system_that_starts_from_random_weights_can_be_trained_first(dvc_before, run):
    """Only the systems fine and again start from the weights of another system.

    The others need none of the stages that copy such weights, parents and init_weights.
    """
    kinds_before = {name.partition("@")[0] for name in dvc_before[f"train@{run}"]}

    assert "fresh" in kinds_before  # It initializes the weights at random.
    assert kinds_before.isdisjoint({"train", "parents", "init_weights"})


@pytest.mark.parametrize("prefix", ["average@", "translate@", "score@", "comet@own-model-"])
def test_a_fine_tuned_system_runs_the_same_stages_as_other_systems(dvc_before, prefix):
    assert "train@fine-other-1" in dvc_before[f"{prefix}fine-other-1"]


@pytest.mark.parametrize("stage", ["score@fine-other-1", "comet@own-model-again-other-1"])
def test_the_report_waits_for_the_scores_of_fine_tuned_systems(dvc_before, stage):
    assert stage in dvc_before["report"]


def test_dvc_binarizes_a_corpus_after_the_vocabulary_that_it_shares(dvc_before):
    """The corpus other uses the vocabulary of own: `vocabularies: {other: own}`."""
    assert {"share_vocabulary@other", "learn_vocabulary@own"} <= dvc_before["binarize@other"]


def test_the_corpus_that_lends_its_vocabulary_does_not_wait_for_the_other(dvc_before):
    """The corpus other uses the vocabulary of own: `vocabularies: {other: own}`."""
    assert "share_vocabulary@other" not in dvc_before["binarize@own"]


@pytest.mark.parametrize(
    "stage", ["binarize@other", "parents@again", "init_weights@again-1", "train@again-other-1"]
)
def test_snakemake_waits_only_for_stages_that_dvc_runs_before_too(
    dvc_before, snakemake_before, stage
):
    """DVC's order is the reference. A stage more would delay the job, or be a circle."""
    assert snakemake_before[stage] <= dvc_before[stage]


def test_snakemake_trains_a_fine_tuned_system_after_its_initial_weights(snakemake_before):
    """The system again starts from fine: init_weights@again-1 copies its averaged weights."""
    assert {"fresh@again-1", "init_weights@again-1"} <= snakemake_before["train@again-other-1"]


def test_snakemake_binarizes_a_corpus_after_the_vocabulary_that_it_shares(snakemake_before):
    """The corpus other uses the vocabulary of own: `vocabularies: {other: own}`."""
    assert "share_vocabulary@other" in snakemake_before["binarize@other"]


def test_the_initial_weights_depend_only_on_the_stage_that_collects_the_parents(snakemake_before):
    """parents@again copies the models of fine, from which the system again starts."""
    assert snakemake_before["init_weights@again-1"] == {"parents@again"}


@pytest.mark.parametrize(
    "stage", ["share_vocabulary@other", "parents@fine", "init_weights@fine-1", "fresh@fine-1"]
)
def test_a_stage_for_initial_weights_or_vocabularies_depends_on_its_code(stages, stage):
    """The parameter code.SCRIPT is a hash of the code that the stage runs."""
    script = stage.partition("@")[0]

    assert f"code.{script}" in stages[stage].parameters


@pytest.mark.parametrize(
    ("rule_name", "folder"),
    [
        ("init_weights", "data/starts/{system}/{seed}/weights"),
        ("parents", "data/parents/{key}"),
        ("share_vocabulary", "data/bpe/{key}/shared"),
    ],
)
def test_the_rules_for_initial_weights_and_vocabularies_write_folders(rules, rule_name, folder):
    """Snakemake has to know whether an output is a file or a folder."""
    assert rules[rule_name].folders == [folder]


def test_the_stage_fresh_writes_a_file(stages):
    """The training itself initializes the weights at random; the file contains their settings."""
    assert stages["fresh@fine-1"].outputs == ("data/starts/fine/1/fresh.json",)


def test_a_fine_tuned_training_differs_from_other_trainings_only_in_its_initial_weights(stages):
    """System fine is like tiny, but starts from weights in data/starts/fine/1."""
    fine_tuned = stages["train@fine-other-1"]
    from_scratch = stages["train@tiny-other-1"]

    assert fine_tuned.dependencies[0] == "data/starts/fine/1"
    assert fine_tuned.dependencies[1:] == from_scratch.dependencies[1:]
    assert fine_tuned.command == from_scratch.command.replace("tiny", "fine")
    assert fine_tuned.gpu == from_scratch.gpu
    assert fine_tuned.threads == from_scratch.threads


def test_a_fine_tuned_system_needs_no_gpu_on_a_corpus_from_which_it_is_excluded(stages):
    """System fine is trained on the corpus other alone: `fine: {corpora: {other: {}}}`."""
    assert stages["train@fine-own-1"].gpu == 0
