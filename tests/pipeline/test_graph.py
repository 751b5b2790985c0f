"""dvc.yaml: the code it names, the graph it spans, and the rules that Snakemake gets of it."""

import json
import re

import pytest

import micro
from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline import graph
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a project of two systems, tiny and wide, on two corpora, own and other.

    Corpus other is extended by the synthetic text forward: tiny translates the text of own. The
    project also has the external system online-a, and the COMET model own-model. Nothing has run.
    """
    project = micro.make(tmp_path_factory.mktemp("graph") / "project")
    sections = f"{micro.SECOND_CORPUS}{micro.SYNTHETIC}{micro.COMET}"
    project.edit("params.yaml", "systems:\n", f"{sections}systems:\n")
    project.write("params.yaml", project.read("params.yaml") + micro.EXTERNAL)
    write_resolved(project.root)
    return project


def stage_by_output(stages):
    """Return the name of the stage that writes a path, by path."""
    writers = {}
    for stage in stages.values():
        for path in stage.outputs:
            writers[path] = stage.name
    return writers


def stages_before(stages):
    """Return the names of the stages whose outputs a stage reads, by the stage's name."""
    writers = stage_by_output(stages)
    before = {}
    for name, paths in graph.input_paths(stages.values()).items():
        before[name] = {writers[path] for path in paths if path in writers}
    return before


@pytest.fixture(scope="module")
def dvc_edges(project):
    """Return the edges of DVC's graph: pairs of a stage and one that depends on it.

    The edges from the stage resolve are omitted, except to the stage report: Snakemake has no such
    edges, since it resolves the settings before it starts any job.
    """
    with open_repo(project.root) as repo:
        edges = {(before.name, after.name) for after, before in repo.index.graph.edges}
    only_in_dvc = {
        (before, after) for before, after in edges if before == "resolve" and after != "report"
    }
    return edges - only_in_dvc


def script_of(stage):
    """Return the name of the script in stages/ that a stage runs."""
    (script,) = re.findall(r"stages/(\w+)\.py", stage.command)
    return script


def test_every_stage_depends_on_the_code_of_its_script(stages):
    """The stages resolve and report depend on all code."""
    for stage in stages.values():
        script = script_of(stage)
        if script not in ("resolve", "report"):
            assert f"code.{script}" in stage.parameters, stage.name


def test_every_script_in_stages_is_run_by_a_stage(stages):
    # These have stages only in a project with init_from or vocabularies: test_init_from_graph.py.
    other_scripts = {"share_vocabulary", "parents", "init_weights"}

    scripts = {script_of(stage) for stage in stages.values()}

    assert scripts | other_scripts == {path.stem for path in (micro.ROOT / "stages").glob("*.py")}


def test_every_input_of_a_stage_is_an_output_of_another_or_an_existing_file(project, stages):
    writers = stage_by_output(stages)

    for name, paths in graph.input_paths(stages.values(), project.root).items():
        for path in paths:
            assert path in writers or (project.root / path).is_file(), (name, path)


def test_a_users_file_is_an_input_of_the_stage_that_reads_it(project, stages):
    inputs = graph.input_paths(stages.values(), project.root)

    assert "inputs/a.en" in inputs["download@own"]


def test_a_folder_of_files_is_listed_file_by_file_without_compiled_files(project, stages):
    """The stage resolve depends on the folder src."""
    python_cache = project.root / "src/bleuprint/corpus/phrasebook/__pycache__"
    python_cache.mkdir(exist_ok=True)
    (python_cache / "__init__.pyc").touch()

    inputs = graph.input_paths(stages.values(), project.root)["resolve"]

    assert "src/bleuprint/corpus/phrasebook/phrasebook.tar.xz" in inputs
    assert not [path for path in inputs if "__pycache__" in path]


def test_a_training_depends_on_its_code_and_the_settings_of_its_run(stages):
    stage = stages["train@wide-own-1"]

    assert set(stage.parameters) == {
        "code.train",
        "runs.wide.own.model",
        "runs.wide.own.train",
        "runs.wide.own.arithmetic",
    }


def test_the_parameters_of_a_stage_include_inherited_settings(stages):
    """System wide is like tiny, which has 2 heads, and sets its own d_ff."""
    model = stages["train@wide-own-1"].parameters["runs.wide.own.model"]

    assert model["d_ff"] == 64
    assert model["heads"] == 2


def test_stages_with_different_settings_have_different_digests(stages):
    assert stages["train@wide-own-1"].digest != stages["train@tiny-own-1"].digest


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_a_run_with_portable_arithmetic_takes_one_thread_and_no_gpu(project, stages, kind):
    settings = json.loads((project.root / RESOLVED).read_text())
    settings["runs"]["wide"]["own"]["arithmetic"] = "portable"

    portable_stages = {stage.name: stage for stage in graph.load_stages(project.root, settings)}

    native_stage = stages[f"{kind}@wide-own-1"]
    assert (native_stage.threads, native_stage.gpu) == (8, 1)
    portable_stage = portable_stages[f"{kind}@wide-own-1"]
    assert (portable_stage.threads, portable_stage.gpu) == (1, 0)
    # The same system on the other corpus keeps native arithmetic.
    assert portable_stages[f"{kind}@wide-other-1"] == stages[f"{kind}@wide-other-1"]


def test_what_dvc_hashes_of_a_stage_names_no_hardware(stages):
    """Otherwise a stage would be out of date on another machine."""
    hardware = re.compile(
        "process|worker|thread|core|gpu|cuda|device|node|rank|host", re.IGNORECASE
    )
    # The name of the stage score contains the word core.
    score = re.compile(r"(stages/|code\.)?score(\.py|@|\b)")

    for stage in stages.values():
        hashed_text = json.dumps([stage.name, stage.command, stage.parameters])
        assert not hardware.search(score.sub("", hashed_text)), stage.name


def test_the_jobs_of_snakemake_depend_on_each_other_like_the_stages_of_dvc(
    project, stages, dvc_edges
):
    writers = stage_by_output(stages)

    job_edges = set()
    for rule in make_rules(stages.values(), root=project.root):
        for name, paths in rule.dependencies.items():
            job_edges.update((writers[path], name) for path in paths if path in writers)

    assert len(dvc_edges) > 60
    assert job_edges == dvc_edges


def test_snakemake_links_its_rules_like_the_entries_of_dvc_yaml(project, dvc_edges):
    """Snakemake draws its graph of rules in the language dot: `1[label = "train"]`, `0 -> 1`."""
    entry_edges = set()
    for before, after in dvc_edges:
        entry_edges.add((before.partition("@")[0], after.partition("@")[0]))

    dot = project.run("snakemake", "--rulegraph")
    rule_names = dict(re.findall(r'(\d+)\[label = "([^"\\]+)', dot))
    rule_edges = set()
    for before, after in re.findall(r"(\d+) -> (\d+)", dot):
        rule_edges.add((rule_names[before], rule_names[after]))

    # The rule `all`, which is not in dvc.yaml, asks for the outputs of all the other rules.
    edges_to_all = {(before, after) for before, after in rule_edges if after == "all"}
    assert rule_edges - edges_to_all == entry_edges
    assert {before for before, _ in edges_to_all} == set(rule_names.values()) - {"all"}


def test_dvc_runs_resolve_before_all_other_stages(project, stages):
    """The stage resolve refuses names that contain shell commands (test_hostile_names.py)."""
    with open_repo(project.root) as repo:
        edges = {(before.name, after.name) for after, before in repo.index.graph.edges}

    assert {after for before, after in edges if before == "resolve"} == set(stages) - {"resolve"}


def test_a_synthetic_text_depends_on_its_sources_and_the_averaged_model(stages):
    """System tiny, trained on corpus own, translates the text `forward` for the corpus other."""
    assert stages_before(stages)["back_translate@forward"] == {
        "download@other",
        "binarize@own",
        "average@tiny-own-1",
    }


def test_only_the_stages_of_its_corpus_and_the_report_depend_on_a_synthetic_text(stages):
    """The text `forward` becomes a part of the corpus other."""
    before = stages_before(stages)

    stages_after = set()
    unvisited = ["back_translate@forward"]
    while unvisited:
        present = unvisited.pop()
        next_stages = {name for name in before if present in before[name]} - stages_after
        stages_after |= next_stages
        unvisited += next_stages

    stages_of_corpus = {name for name in stages if "other" in name}
    assert stages_after == stages_of_corpus - {"download@other"} | {"report"}


@pytest.mark.parametrize(
    ("rule_name", "folder"),
    [
        ("back_translate", "data/raw/{part_of}/synthetic-{key}"),
        ("train", "models/{system}/{corpus}/{seed}/checkpoints"),
    ],
)
def test_snakemake_is_told_which_outputs_are_folders(project, stages, rule_name, folder):
    rules = {rule.name: rule for rule in make_rules(stages.values(), root=project.root)}

    assert rules[rule_name].folders == [folder]


def test_snakemake_is_told_which_outputs_are_files(project, stages):
    suffixes = set()
    for rule in make_rules(stages.values(), root=project.root):
        for path in (*rule.files, *rule.git_outputs):
            suffixes.add(path.rpartition(".")[2])

    # The weights and the texts are in folders.
    assert suffixes == {"json", "csv", "md", "tex"}


@pytest.mark.parametrize("prefix", ["translate@", "score@", "comet@own-model-"])
def test_an_external_system_runs_the_same_stages_as_a_trained_one(stages, prefix):
    external = stages[f"{prefix}online-a-own-1"]
    trained = stages[f"{prefix}tiny-own-1"]

    assert external.command == trained.command.replace("tiny", "online-a")
    expected_dependencies = [path.replace("tiny", "online-a") for path in trained.dependencies]
    assert list(external.dependencies) == expected_dependencies


@pytest.mark.parametrize(
    ("system", "threads", "gpus"),
    [
        pytest.param("online-a", 1, 0, id="an external system, whose files are copied"),
        pytest.param("tiny", 8, 1, id="a trained system"),
    ],
)
def test_translate_takes_a_gpu_only_for_a_trained_system(stages, system, threads, gpus):
    stage = stages[f"translate@{system}-own-1"]

    assert (stage.threads, stage.gpu) == (threads, gpus)


def test_translate_depends_on_the_files_of_an_external_system(stages):
    """The file and its sum are in the setting `translations` of params.yaml."""
    parameters = stages["translate@online-a-own-1"].parameters

    assert parameters["runs.online-a.own.translations"] == {
        "seed": 1,
        "files": {"held-out": {"path": "inputs/external/a.de", "sha256": 64 * "a"}},
    }


@pytest.mark.parametrize("kind", ["train", "score"])
def test_only_translate_depends_on_the_files_of_an_external_system(stages, kind):
    assert "runs.online-a.own.translations" not in stages[f"{kind}@online-a-own-1"].parameters


def test_the_option_config_of_snakemake_is_refused(project):
    """Settings are in params.yaml alone; `--config beam=2` would have no effect."""
    output = project.run("snakemake", "-n", "--config", "beam=2", status=1)

    # Snakemake itself may print "Using profile ..." first.
    message = r"bleuprint: error: --config beam has no effect\. Edit params.yaml, or .*"
    assert re.fullmatch(rf"(Using .*\n)?{message}\n", output)


def test_an_unknown_variable_in_dvc_yaml_is_an_error_of_one_line(project, tmp_path):
    broken_project = project.copy(tmp_path / "other")
    broken_project.edit("dvc.yaml", "stages/clean.py ${key}", "stages/clean.py ${kex}")

    with pytest.raises(UserError, match=r"^failed to parse [^\n]*'kex'[^\n]*$"):
        graph.load_stages(broken_project.root, {})


def describe_without_inputs(stage):
    """Return command, dependencies, outputs and parameters, without files in inputs/."""
    texts = [stage.command, *stage.dependencies, *stage.outputs, *stage.parameters]
    return [text for text in texts if not text.startswith("inputs/")]


def test_a_corpus_of_several_directions_has_the_same_stages_as_any_other_corpus(tmp_path):
    project = micro.make(tmp_path / "project")
    directions = "directions: {en-de: {}, de-en: {}}"
    many = f"{{from: phrasebook, {directions}, vocabulary: {{bpe: {{num_merges: 9}}}}}}"
    project.edit("params.yaml", "systems:\n", f"  many: {many}\nsystems:\n")
    write_resolved(project.root)

    descriptions = {}
    for stage in graph.load_stages(project.root):
        descriptions[stage.name] = describe_without_inputs(stage)

    names = [name for name in descriptions if "many" in name]
    assert len(names) == 18  # The stages of the corpus and of two systems on it.
    for name in names:
        renamed = [text.replace("many", "own") for text in descriptions[name]]
        assert renamed == descriptions[name.replace("many", "own")]
