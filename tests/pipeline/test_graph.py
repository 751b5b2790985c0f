"""dvc.yaml: the code it names, the graph it spans, and what Snakemake makes of it."""

import ast
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from snakemake.cli import get_argument_parser
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

import micro
from bleuprint.pipeline import graph, snakemake_run
from bleuprint.pipeline.rules import rules as rules_of

PACKAGE = micro.ROOT / "src" / "bleuprint"

# Packages that decide how things are found, run, shown or written, never what: no stage depends on
# them. What the stages of `pipeline` import decides, they themselves do not.
UNDECIDING = ("runtime", "config", "tracking", "serving", "cli", "pipeline.stage_args")
# But these translate a training text, or score translations.
DECIDING = ("serving.made_text", "serving.score_outside", "serving.translator")


def module_of(package, name):
    """The file of the package that `from bleuprint.PACKAGE import NAME` takes something from."""
    place = PACKAGE.joinpath(*package)
    for path in (place / f"{name}.py", place / name / "__init__.py", place.with_suffix(".py")):
        if path.exists():
            return path
    return place / "__init__.py"


def modules(path):
    """The modules of the package that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("bleuprint") for alias in node.names), path
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            top, *package = (node.module or "").split(".")
            if top == "bleuprint":
                yield from (module_of(package, alias.name) for alias in node.names)


def decides(path):
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    if name in DECIDING:
        return True
    return not any(name == part or name.startswith(f"{part}.") for part in UNDECIDING)


def closure(script):
    """The modules that decide what a script does: what it imports, and what they import."""
    found, todo = set(), [script]
    while todo:
        new = {path for path in modules(todo.pop()) if decides(path)} - found
        found |= new
        todo += new
    pipeline = PACKAGE / "pipeline"
    return {path for path in found if pipeline not in path.parents}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Two systems by two corpora, one with a text that a system translates; a row from outside, and
    a COMET model.
    """
    project = micro.make(tmp_path_factory.mktemp("graph") / "project")
    more = f"{micro.SECOND_CORPUS}{micro.MADE_TEXT}{micro.OUTSIDE}{micro.COMET}systems:\n"
    project.edit("params.yaml", "systems:\n", more)
    return project


@pytest.fixture(scope="module")
def stages(project):
    return {stage.name: stage for stage in graph.stages(project.root)}


def test_code_dependencies_in_dvc_yaml_are_the_import_closure(stages):
    """Each module that decides is in a dependency, and each dependency holds one that does."""
    scripts, checked = set(), set()
    for stage in stages.values():
        (script,) = [word for word in stage.command.split() if word.startswith("stages/")]
        scripts.add(script)
        named = [path for path in stage.dependencies if path.startswith(("src/", "stages/"))]
        assert named[0] == script, stage.name
        if (key := (script, *named)) in checked:
            continue
        checked.add(key)
        places = [micro.ROOT / path for path in named[1:]]
        assert all(place.exists() for place in places), stage.name
        missing = closure(micro.ROOT / script)
        for place in places:
            held = {path for path in missing if path == place or place in path.parents}
            assert held, f"{stage.name}: nothing that it imports is in {place}"
            missing -= held
        assert not missing, stage.name
    assert scripts == {f"stages/{path.name}" for path in (micro.ROOT / "stages").glob("*.py")}


def test_dvc_yaml_names_folders_of_code(stages):
    """121 entries at most in all, since reachable BLEU has three of its own; 7 for a training."""
    by_kind = {stage.kind: stage.dependencies for stage in stages.values()}
    code = {
        kind: [path for path in paths if path.startswith(("src/", "stages/"))]
        for kind, paths in by_kind.items()
    }
    assert sum(map(len, code.values())) <= 121
    assert len(code["train"]) <= 7


def test_every_input_is_made_by_a_stage_or_is_there(project, stages):
    made = {path for stage in stages.values() for path in stage.outputs}
    for name, paths in graph.inputs(stages.values(), project.root).items():
        for path in paths:
            assert path in made or (project.root / path).is_file(), (name, path)


def test_a_folder_of_outputs_is_each_output_in_it(stages):
    wanted = graph.inputs(stages.values())["report"]
    assert "results/wide/other/1/hypotheses" in wanted
    assert "data/ledgers/other/clean.json" in wanted
    assert {"results", "data/ledgers", "data/split"} & set(wanted) == set()


def test_something_inside_an_output_is_that_output(stages):
    inside = replace(
        stages["clean@own"], dependencies=("data/raw/own/given/train.en", "stages/clean.py")
    )
    wanted = graph.inputs([stages["download@own"], inside])
    assert wanted["clean@own"] == ["data/raw/own/given", "stages/clean.py"]


def test_a_folder_of_files_is_each_file_in_it(project, stages):
    cache = project.root / "src/bleuprint/corpus/phrasebook/__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "grammar.pyc").touch()
    wanted = graph.inputs(stages.values(), project.root)["download@own"]
    assert {"inputs/a.en", "src/bleuprint/corpus/phrasebook/grammar.py"} <= set(wanted)
    assert not [path for path in wanted if "__pycache__" in path]


def test_dicts_and_lists_are_iterated_by_key_and_item(stages):
    # DVC does not document this for dicts: it holds for the pinned version.
    corpora, systems = ("own", "other"), ("tiny", "wide")
    assert [name for name in stages if name.startswith("clean")] == [f"clean@{c}" for c in corpora]
    cells = {f"train@{system}-{corpus}-1" for system in systems for corpus in corpora}
    assert {name for name in stages if name.startswith("train")} == cells
    assert stages["train@wide-other-1"].command.endswith(" stages/train.py wide other 1")


def test_parameters_are_those_of_the_stage_with_merge_keys_resolved(stages):
    parameters = stages["train@wide-own-1"].parameters
    overrides = {"wide.own.model": True, "wide.own.train": True}
    assert parameters.items() >= overrides.items()
    assert set(parameters) == {"systems.wide.model", "systems.wide.train", *overrides}
    assert parameters["systems.wide.model"]["d_ff"] == 64
    assert parameters["systems.wide.model"]["heads"] == 2
    assert stages["train@wide-own-1"].digest != stages["train@tiny-own-1"].digest


def test_what_dvc_hashes_names_no_machine(stages):
    machine = re.compile("process|worker|thread|core|gpu|cuda|device|node|rank|host", re.IGNORECASE)
    for stage in stages.values():
        hashed = json.dumps([stage.name, stage.command, stage.parameters])
        # the stages whose names hold such a word
        hashed = re.sub(r"stages/score(_outside)?\.py|score(_outside)?@", "", hashed)
        assert not machine.search(hashed), stage.name


def test_snakemakes_graph_is_dvcs(project, stages):
    edges = r'"?([^"\s]+)"? -> "?([^";\s]+)"?'
    dvc = set(re.findall(edges, project.run("dvc", "dag", "--dot")))
    # Snakemake does not read the params files that stages write
    of_file = {edge for edge in dvc if edge[0] in ("overrides", "inputs")}
    dvc -= of_file
    assert len(dvc) > 60
    maker = {path: stage.name for stage in stages.values() for path in stage.outputs}
    jobs = {
        (maker[path], name)
        for rule in rules_of(stages.values(), root=project.root)
        for name, paths in rule.dependencies.items()
        for path in paths
        if path in maker
    }
    assert jobs == dvc
    # by rule, as Snakemake resolves its wildcards
    dot = project.run("snakemake", "--rulegraph")
    labels = dict(re.findall(r'(\d+)\[label = "([^"\\]+)', dot))
    rules = {(labels[a], labels[b]) for a, b in re.findall(edges, dot)}
    kind = {(a.partition("@")[0], b.partition("@")[0]) for a, b in dvc}
    assert {edge for edge in rules if edge[1] != "all"} == kind
    assert {a for a, b in rules if b == "all"} == set(labels.values()) - {"all"}
    # docs/running.md's picture, without the arrows to `all`
    dot = project.run("snakemake", "report", "--rulegraph")
    labels = dict(re.findall(r'(\d+)\[label = "([^"\\]+)', dot))
    assert {(labels[a], labels[b]) for a, b in re.findall(edges, dot)} == kind
    kinds = ("train@", "average@", "translate@", "make_text@")
    later = {b for _, b in dvc if b.startswith(kinds)}
    assert {b for _, b in of_file} == later | {"download@own", "download@other"}


def test_a_made_text_depends_on_its_training_and_only_its_corpus_on_it(stages):
    wanted = graph.inputs(stages.values())
    makers = {path: stage.name for stage in stages.values() for path in stage.outputs}
    before = {
        name: {makers[path] for path in paths if path in makers} for name, paths in wanted.items()
    }
    # the overrides are read from params.yaml
    needed = {"download@other", "binarize@own", "average@tiny-own-1"}
    assert before["make_text@forward"] == needed
    reached, todo = set(), ["make_text@forward"]
    while todo:
        last = todo.pop()
        new = {name for name in before if last in before[name]} - reached
        reached |= new
        todo += new
    assert reached == {stage.name for stage in stages.values() if "other" in stage.name} - {
        "download@other"
    } | {"report"}


def test_a_row_from_outside_needs_its_test_sets_alone(stages):
    wanted = graph.inputs(stages.values())
    outputs = {path for path in wanted["score_outside@own"] if not path.startswith(("src", "sta"))}
    assert outputs == {"data/split/own", "data/tests/own"}
    assert "results/outside/own" in wanted["report"]
    assert [name for name in stages if name.startswith("score_outside")] == ["score_outside@own"]
    scored = wanted["comet_outside@own-model-own"]
    assert {path for path in scored if not path.startswith(("src", "sta"))} == {
        "data/split/own",
        "results/outside/own",
    }
    assert "results/outside/own.comet" in wanted["report"]


def test_snakefile_passes_its_linter(project):
    assert "good condition" in project.run("snakemake", "--lint")


def test_only_snakemakes_default_rate_limit_is_lifted():
    """And the default is still the one that is looked for."""
    default = get_argument_parser().parse_args([]).max_jobs_per_timespan
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(default))
    snakemake_run.lift_default_rate_limit(SimpleNamespace(scheduler=scheduler))
    assert scheduler.job_rate_limiter is None

    given = JobRateLimiter(MaxJobsPerTimespan.parse_choice("5/1m"))
    scheduler.job_rate_limiter = given
    snakemake_run.lift_default_rate_limit(SimpleNamespace(scheduler=scheduler))
    assert scheduler.job_rate_limiter is given


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c1"],
        pytest.param(["-n"], marks=pytest.mark.slow),
        pytest.param(["--dag"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_misspelt_setting_is_one_line(project, tmp_path, arguments):
    other = project.copy(tmp_path / "other")
    other.edit("params.yaml", "label_smoothing:", "lable_smoothing:")
    assert re.fullmatch(
        r"(Using workflow specific profile .*\n)?"  # Snakemake's
        r"bleuprint: error: params.yaml:\d+: systems.tiny.train.lable_smoothing: unknown key; "
        r"did you mean 'label_smoothing'\?\n",
        other.run("snakemake", *arguments, status=1),
    )


def test_a_broken_dvc_yaml_is_one_line(project, tmp_path):
    other = project.copy(tmp_path / "other")
    other.edit("dvc.yaml", "stages/clean.py ${key}", "stages/clean.py ${kex}")
    output = other.run("snakemake", "-n", status=1)
    assert re.fullmatch(r"(Using .*\n)?bleuprint: error: failed to parse .*'kex'.*\n", output)
