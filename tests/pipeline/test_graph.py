"""dvc.yaml: the code it names, the graph it spans, and what Snakemake makes of it."""

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
    """Make a project of two systems by two corpora, with synthetic text.

    It also has an external system, and a COMET model.
    """
    project = micro.make(tmp_path_factory.mktemp("graph") / "project")
    more = f"{micro.SECOND_CORPUS}{micro.SYNTHETIC}{micro.COMET}systems:\n"
    project.edit("params.yaml", "systems:\n", more)
    project.write("params.yaml", project.read("params.yaml") + micro.EXTERNAL)
    write_resolved(project.root)
    return project


def test_every_stage_but_the_report_names_its_code(stages):
    scripts = set()
    for stage in stages.values():
        (script,) = re.findall(r"stages/(\w+)\.py", stage.command)
        scripts.add(script)
        if script not in ("resolve", "report"):  # which depend on all of it
            assert f"code.{script}" in stage.parameters, stage.name
    of_others = {"share_vocabulary", "parents", "init_weights"}  # test_init_from_graph.py
    assert scripts | of_others == {path.stem for path in (micro.ROOT / "stages").glob("*.py")}


def test_every_input_is_made_by_a_stage_or_is_there(project, stages):
    made = {path for stage in stages.values() for path in stage.outputs}
    for name, paths in graph.input_paths(stages.values(), project.root).items():
        for path in paths:
            assert path in made or (project.root / path).is_file(), (name, path)


def test_a_folder_of_files_is_each_file_in_it(project, stages):
    cache = project.root / "src/bleuprint/corpus/phrasebook/__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "__init__.pyc").touch()
    assert "inputs/a.en" in graph.input_paths(stages.values(), project.root)["download@own"]
    wanted = graph.input_paths(stages.values(), project.root)["resolve"]
    assert "src/bleuprint/corpus/phrasebook/phrasebook.tar.xz" in wanted
    assert not [path for path in wanted if "__pycache__" in path]


def test_parameters_are_those_of_the_stage(stages):
    parameters = stages["train@wide-own-1"].parameters
    sections = [f"runs.wide.own.{name}" for name in ("model", "train", "arithmetic")]
    assert set(parameters) == {"code.train", *sections}
    assert parameters[sections[0]]["d_ff"] == 64
    assert parameters[sections[0]]["heads"] == 2
    assert stages["train@wide-own-1"].digest != stages["train@tiny-own-1"].digest


def test_a_portable_run_takes_one_thread_and_no_gpu(project, stages):
    content = json.loads((project.root / RESOLVED).read_text())
    content["runs"]["wide"]["own"]["arithmetic"] = "portable"
    portable = {stage.name: stage for stage in graph.load_stages(project.root, content)}
    for name in ("train@wide-own-1", "translate@wide-own-1"):
        assert (stages[name].threads, stages[name].gpu) == (8, 1)
        assert (portable[name].threads, portable[name].gpu) == (1, 0)
        other = name.replace("own", "other")
        assert portable[other] == stages[other]


def test_what_dvc_hashes_names_no_machine(stages):
    machine = re.compile("process|worker|thread|core|gpu|cuda|device|node|rank|host", re.IGNORECASE)
    for stage in stages.values():
        hashed = json.dumps([stage.name, stage.command, stage.parameters])
        # the stages whose names hold such a word
        hashed = re.sub(r"(stages/|code\.)?score(\.py|@|\b)", "", hashed)
        assert not machine.search(hashed), stage.name


def test_snakemakes_graph_is_dvcs(project, stages):
    with open_repo(project.root) as repo:
        dvc = {(before.name, stage.name) for stage, before in repo.index.graph.edges}
    # for Snakemake, reports/resolved.json is an input of the report alone
    of_file = {edge for edge in dvc if edge[0] == "resolve" and edge[1] != "report"}
    dvc -= of_file
    assert len(dvc) > 60
    maker = {path: stage.name for stage in stages.values() for path in stage.outputs}
    jobs = {
        (maker[path], name)
        for rule in make_rules(stages.values(), root=project.root)
        for name, paths in rule.dependencies.items()
        for path in paths
        if path in maker
    }
    assert jobs == dvc
    # by rule, as Snakemake resolves its wildcards
    dot = project.run("snakemake", "--rulegraph")
    labels = dict(re.findall(r'(\d+)\[label = "([^"\\]+)', dot))
    edges = r"(\d+) -> (\d+)"
    rules = {(labels[a], labels[b]) for a, b in re.findall(edges, dot)}
    kind = {(a.partition("@")[0], b.partition("@")[0]) for a, b in dvc}
    assert {edge for edge in rules if edge[1] != "all"} == kind
    assert {a for a, b in rules if b == "all"} == set(labels.values()) - {"all"}
    # which comes first, and refuses names with commands (test_hostile_names.py)
    assert {b for _, b in of_file} == {*stages} - {"resolve", "report"}


def test_a_synthetic_text_depends_on_its_training_and_only_its_corpus_on_it(stages):
    wanted = graph.input_paths(stages.values())
    makers = {path: stage.name for stage in stages.values() for path in stage.outputs}
    before = {
        name: {makers[path] for path in paths if path in makers} for name, paths in wanted.items()
    }
    needed = {"download@other", "binarize@own", "average@tiny-own-1"}
    assert before["back_translate@forward"] == needed
    reached, todo = set(), ["back_translate@forward"]
    while todo:
        last = todo.pop()
        new = {name for name in before if last in before[name]} - reached
        reached |= new
        todo += new
    assert reached == {stage.name for stage in stages.values() if "other" in stage.name} - {
        "download@other"
    } | {"report"}


def test_snakemake_is_told_which_outputs_are_folders(project, stages):
    rules = {rule.name: rule for rule in make_rules(stages.values(), root=project.root)}
    assert rules["back_translate"].folders == ["data/raw/{part_of}/synthetic-{key}"]
    assert rules["train"].folders == ["models/{system}/{corpus}/{seed}/checkpoints"]
    files = [path for rule in rules.values() for path in (*rule.files, *rule.git_outputs)]
    assert {path.rpartition(".")[2] for path in files} == {"json", "csv", "md", "tex"}


def test_an_external_system_runs_the_stages_of_other_systems(stages):
    for kind in ("translate", "score", "comet@own-model"):
        name = kind if "@" in kind else f"{kind}@"
        name = f"{name.rstrip('-')}-" if not name.endswith("@") else name
        external = stages[f"{name}online-a-own-1"]
        trained = stages[f"{name}tiny-own-1"]
        assert external.command == trained.command.replace("tiny", "online-a")
        assert external.dependencies == tuple(
            path.replace("tiny", "online-a") for path in trained.dependencies
        )


def test_copying_files_takes_one_thread_and_no_gpu(stages):
    copying = stages["translate@online-a-own-1"]
    assert (copying.threads, copying.gpu) == (1, 0)
    searching = stages["translate@tiny-own-1"]
    assert (searching.threads, searching.gpu) == (8, 1)


def test_the_files_of_an_external_system_are_settings_of_translate(stages):
    translations = stages["translate@online-a-own-1"].parameters["runs.online-a.own.translations"]
    files = {"held-out": {"path": "inputs/external/a.de", "sha256": 64 * "a"}}
    assert translations == {"seed": 1, "files": files}
    for name in ("train@online-a-own-1", "score@online-a-own-1"):
        assert "runs.online-a.own.translations" not in stages[name].parameters


def test_snakemakes_config_is_refused(project):
    output = project.run("snakemake", "-n", "--config", "beam=2", status=1)
    assert re.fullmatch(
        r"(Using .*\n)?bleuprint: error: --config beam has no effect\. Edit params.yaml, or .*\n",
        output,
    )


def test_a_broken_dvc_yaml_is_one_line(project, tmp_path):
    other = project.copy(tmp_path / "other")
    other.edit("dvc.yaml", "stages/clean.py ${key}", "stages/clean.py ${kex}")
    with pytest.raises(UserError, match=r"^failed to parse [^\n]*'kex'[^\n]*$"):
        graph.load_stages(other.root, {})


def test_a_corpus_of_several_directions_has_the_stages_of_any_other(tmp_path):
    project = micro.make(tmp_path / "project")
    many = (
        "{from: phrasebook, directions: {en-de: {}, de-en: {}}, vocabulary: {bpe: {num_merges: 9}}}"
    )
    project.edit("params.yaml", "systems:\n", f"  many: {many}\nsystems:\n")
    write_resolved(project.root)
    of_stages = {
        stage.name: [stage.command, *stage.dependencies, *stage.outputs, *stage.parameters]
        for stage in graph.load_stages(project.root)
    }
    kept = {
        name: [each for each in entries if not each.startswith("inputs/")]
        for name, entries in of_stages.items()
    }
    names = [name for name in kept if "many" in name]
    assert len(names) == 18
    for name in names:
        assert [each.replace("many", "own") for each in kept[name]] == kept[
            name.replace("many", "own")
        ]
