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
    """The parameter code.SCRIPT is a hash of stages/SCRIPT.py and all modules that it imports.

    Without it, DVC would keep old results after a bug in the code was fixed. The stages resolve and
    report depend on the whole folder src instead.
    """
    for stage in stages.values():
        script = script_of(stage)
        if script not in ("resolve", "report"):
            assert f"code.{script}" in stage.parameters, stage.name


def test_every_script_in_the_folder_stages_is_run_by_a_stage(stages):
    """A script without an entry in dvc.yaml would never run."""
    scripts_in_folder = {path.stem for path in (micro.ROOT / "stages").glob("*.py")}
    # Only projects with the settings init_from, vocabularies or parts have stages with these
    # scripts: test_init_from_graph.py and test_part_stages.py.
    scripts_for_other_settings = {"share_vocabulary", "parents", "init_weights"}
    scripts_for_other_settings |= {"download_part", "clean_part", "filter_part"}

    scripts_of_stages = {script_of(stage) for stage in stages.values()}

    assert scripts_of_stages | scripts_for_other_settings == scripts_in_folder


def test_every_input_of_a_stage_is_an_output_of_another_stage_or_a_file_of_the_project(
    project, stages
):
    """A misspelled path in dvc.yaml would be neither, and the stage would fail."""
    writers = stage_by_output(stages)

    for name, paths in graph.input_paths(stages.values(), project.root).items():
        for path in paths:
            assert path in writers or (project.root / path).is_file(), (name, path)


def test_a_users_file_is_an_input_of_the_stage_that_reads_it(project, stages):
    inputs = graph.input_paths(stages.values(), project.root)

    assert "inputs/a.en" in inputs["download@own"]


def test_a_dependency_on_a_folder_counts_its_files_except_compiled_python(project, stages):
    """The stage resolve depends on the folder src.

    Python writes compiled files into __pycache__ whenever it runs. If they counted, the stage would
    never be up to date.
    """
    python_cache = project.root / "src/bleuprint/corpus/phrasebook/__pycache__"
    python_cache.mkdir(exist_ok=True)
    (python_cache / "__init__.pyc").touch()

    inputs = graph.input_paths(stages.values(), project.root)["resolve"]

    assert "src/bleuprint/corpus/phrasebook/phrasebook.tar.xz" in inputs
    compiled_files = [path for path in inputs if "__pycache__" in path]
    assert compiled_files == []


def test_a_training_depends_on_its_code_and_the_settings_of_its_run(stages):
    """Settings such as `decode` or `average` may change without a new training."""
    stage = stages["train@wide-own-1"]  # system wide, corpus own, seed 1

    assert set(stage.parameters) == {
        "code.train",
        "runs.wide.own.model",
        "runs.wide.own.train",
        "runs.wide.own.arithmetic",
    }


def test_the_parameters_of_a_stage_include_inherited_settings(stages):
    """In params.yaml, tiny has heads: 2 and d_ff: 48; wide has like: tiny and d_ff: 64."""
    model = stages["train@wide-own-1"].parameters["runs.wide.own.model"]

    assert model["d_ff"] == 64  # its own
    assert model["heads"] == 2  # inherited from tiny


def test_stages_with_different_settings_have_different_digests(stages):
    assert stages["train@wide-own-1"].digest != stages["train@tiny-own-1"].digest


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_a_run_with_portable_arithmetic_asks_for_one_thread_instead_of_a_gpu(project, stages, kind):
    """Portable arithmetic gives the same bits on every machine; it computes on one CPU thread."""
    native_stage = stages[f"{kind}@wide-own-1"]
    assert (native_stage.threads, native_stage.gpu) == (8, 1)
    settings = json.loads((project.root / RESOLVED).read_text())
    settings["runs"]["wide"]["own"]["arithmetic"] = "portable"

    new_stages = {stage.name: stage for stage in graph.load_stages(project.root, settings)}

    portable_stage = new_stages[f"{kind}@wide-own-1"]
    assert (portable_stage.threads, portable_stage.gpu) == (1, 0)
    # The same system keeps native arithmetic on the corpus other.
    assert new_stages[f"{kind}@wide-other-1"] == stages[f"{kind}@wide-other-1"]


def test_stages_describe_the_experiment_without_naming_hardware(stages):
    """DVC hashes the command and the parameters of a stage.

    If they contained the number of threads, the stage would be out of date on another machine.
    """
    hardware_word = re.compile(
        "process|worker|thread|core|gpu|cuda|device|node|rank|host", re.IGNORECASE
    )
    # Names such as stages/score.py contain the word core.
    score_word = re.compile(r"(stages/|code\.)?score(\.py|@|\b)")

    for stage in stages.values():
        hashed_text = json.dumps([stage.name, stage.command, stage.parameters])
        text_without_score = score_word.sub("", hashed_text)
        assert hardware_word.search(text_without_score) is None, stage.name


def test_the_jobs_of_snakemake_depend_on_each_other_like_the_stages_of_dvc(
    project, stages, dvc_edges
):
    """An edge is a pair of a stage and a stage that reads its outputs.

    If Snakemake lacked an edge, it could start a stage before its inputs are written.
    """
    writers = stage_by_output(stages)

    job_edges = set()
    for rule in make_rules(stages.values(), root=project.root):
        for name, paths in rule.dependencies.items():
            for path in paths:
                if path in writers:
                    job_edges.add((writers[path], name))

    assert len(dvc_edges) > 60
    assert job_edges == dvc_edges


def test_snakemake_links_its_rules_like_the_entries_of_dvc_yaml(project, dvc_edges):
    """Snakemake prints its graph of rules in the language dot: `1[label = "train"]`, `0 -> 1`.

    An edge of DVC is a pair of stages such as (clean@own, dedup@own); the rules have the names
    before the @. The rule `all`, which is not in dvc.yaml, asks for the outputs of all other rules.
    """
    entry_edges = set()
    for before, after in dvc_edges:
        entry_edges.add((before.partition("@")[0], after.partition("@")[0]))

    dot = project.run("snakemake", "--rulegraph")

    rule_names = dict(re.findall(r'(\d+)\[label = "([^"\\]+)', dot))
    rule_edges = set()
    rules_before_all = set()
    for before, after in re.findall(r"(\d+) -> (\d+)", dot):
        if rule_names[after] == "all":
            rules_before_all.add(rule_names[before])
        else:
            rule_edges.add((rule_names[before], rule_names[after]))
    assert rule_edges == entry_edges
    assert rules_before_all == set(rule_names.values()) - {"all"}


def test_dvc_runs_resolve_before_all_other_stages(project, stages):
    """`resolve` refuses names in params.yaml that contain shell commands, before one can run."""
    with open_repo(project.root) as repo:
        # An edge of DVC's graph leads from a stage to a stage whose outputs it reads.
        edges = list(repo.index.graph.edges)

    stages_after_resolve = {after.name for after, before in edges if before.name == "resolve"}
    assert stages_after_resolve == set(stages) - {"resolve"}


def test_a_synthetic_text_depends_on_its_sources_and_the_averaged_model(stages):
    """System tiny, trained on the corpus own, translates the text `forward` for the corpus other.

    It reads the downloaded text, the vocabulary of its own corpus, and its averaged weights.
    """
    assert stages_before(stages)["back_translate@forward"] == {
        "download@other",
        "binarize@own",
        "average@tiny-own-1",
    }


def test_only_the_stages_of_its_corpus_and_the_report_depend_on_a_synthetic_text(stages):
    """The synthetic text `forward` becomes a part of the corpus other.

    A search along the graph collects all stages that come after the one that writes the text.
    """
    before = stages_before(stages)

    stages_after = set()
    unvisited = ["back_translate@forward"]
    while unvisited:
        visited_stage = unvisited.pop()
        for name in before:
            if visited_stage in before[name] and name not in stages_after:
                stages_after.add(name)
                unvisited.append(name)

    stages_of_corpus = {name for name in stages if "other" in name}
    # `download` runs before: the model translates downloaded text.
    assert stages_after == stages_of_corpus - {"download@other"} | {"report"}


@pytest.mark.parametrize(
    ("rule_name", "folder"),
    [
        ("back_translate", "data/raw/{part_of}/synthetic-{key}"),
        ("train", "models/{system}/{corpus}/{seed}/checkpoints"),
    ],
)
def test_a_rule_of_snakemake_marks_an_output_folder_as_a_folder(project, stages, rule_name, folder):
    """Snakemake has to know whether an output is a file or a folder; DVC finds out by itself."""
    rules = {rule.name: rule for rule in make_rules(stages.values(), root=project.root)}

    assert rules[rule_name].folders == [folder]


def test_the_output_files_of_snakemakes_rules_are_json_files_and_tables(project, stages):
    """Snakemake has to know whether an output is a file or a folder; DVC finds out by itself."""
    suffixes = set()
    for rule in make_rules(stages.values(), root=project.root):
        for path in (*rule.files, *rule.git_outputs):
            suffixes.add(path.rpartition(".")[2])

    # Weights and texts, such as .safetensors or .en, are in output folders.
    assert suffixes == {"json", "csv", "md", "tex"}


@pytest.mark.parametrize("prefix", ["translate@", "score@", "comet@own-model-"])
def test_the_stages_of_an_external_system_equal_the_stages_of_a_trained_system(stages, prefix):
    """`online-a` is an external system, whose translations are files; `tiny` is trained.

    Their stages differ only in the name, so both kinds of systems are scored in the same way.
    """
    external_stage = stages[f"{prefix}online-a-own-1"]
    trained_stage = stages[f"{prefix}tiny-own-1"]

    assert external_stage.command == trained_stage.command.replace("tiny", "online-a")
    expected_dependencies = []
    for path in trained_stage.dependencies:
        expected_dependencies.append(path.replace("tiny", "online-a"))
    assert list(external_stage.dependencies) == expected_dependencies


@pytest.mark.parametrize(
    ("system", "threads", "gpus"),
    [
        pytest.param("online-a", 1, 0, id="an external system, whose files are copied"),
        pytest.param("tiny", 8, 1, id="a trained system"),
    ],
)
def test_translate_asks_for_a_gpu_only_for_a_trained_system(stages, system, threads, gpus):
    """On a cluster, a job that only copies files must not wait for a GPU."""
    stage = stages[f"translate@{system}-own-1"]

    assert (stage.threads, stage.gpu) == (threads, gpus)


def test_translate_depends_on_the_checksum_of_an_external_systems_file(stages):
    """The setting `translations` of online-a names its file and the SHA-256 sum, here 64 a's.

    If the user puts another file in its place, the sum changes and the stage runs again.
    """
    parameters = stages["translate@online-a-own-1"].parameters

    assert parameters["runs.online-a.own.translations"] == {
        "seed": 1,
        "files": {"held-out": {"path": "inputs/external/a.de", "sha256": 64 * "a"}},
    }


@pytest.mark.parametrize("kind", ["train", "score"])
def test_only_translate_depends_on_the_files_of_an_external_system(stages, kind):
    assert "runs.online-a.own.translations" not in stages[f"{kind}@online-a-own-1"].parameters


def test_snakemakes_option_config_is_an_error_of_one_line(project):
    """All settings are read from params.yaml, so the user's beam=2 would be ignored silently."""
    output = project.run("snakemake", "-n", "--config", "beam=2", status=1)

    message = r"bleuprint: error: --config beam has no effect\. Edit params.yaml, or .*"
    # Snakemake itself may print "Using profile ..." first.
    assert re.fullmatch(rf"(Using .*\n)?{message}\n", output)


def test_an_unknown_variable_in_dvc_yaml_is_an_error_of_one_line(project, tmp_path):
    """In dvc.yaml, ${key} is the name of the corpus; here it is misspelled as ${kex}."""
    broken_project = project.copy(tmp_path / "other")
    broken_project.edit("dvc.yaml", "stages/clean.py ${key}", "stages/clean.py ${kex}")

    with pytest.raises(UserError, match=r"^failed to parse [^\n]*'kex'[^\n]*$"):
        graph.load_stages(broken_project.root, {})


def describe_without_inputs(stage):
    """Return command, dependencies, outputs and parameters, without files in inputs/."""
    texts = [stage.command, *stage.dependencies, *stage.outputs, *stage.parameters]
    return [text for text in texts if not text.startswith("inputs/")]


def test_a_corpus_with_two_directions_has_the_same_stages_as_a_corpus_with_one(tmp_path):
    """The corpus `many` translates from English to German and back; `own` has one direction.

    Their stages may differ only in the name of the corpus and in the user's files in inputs/.
    """
    project = micro.make(tmp_path / "project")
    directions = "directions: {en-de: {}, de-en: {}}"
    many = f"{{from: phrasebook, {directions}, vocabulary: {{bpe: {{num_merges: 9}}}}}}"
    project.edit("params.yaml", "systems:\n", f"  many: {many}\nsystems:\n")
    write_resolved(project.root)

    descriptions = {}
    for stage in graph.load_stages(project.root):
        descriptions[stage.name] = describe_without_inputs(stage)

    names_with_many = [name for name in descriptions if "many" in name]
    assert len(names_with_many) == 18  # The stages of the corpus and of two systems on it.
    for name in names_with_many:
        texts_with_own = [text.replace("many", "own") for text in descriptions[name]]
        assert texts_with_own == descriptions[name.replace("many", "own")]
