"""The stage resolve, and what it makes stale in both graphs (with the stages of stand_ins)."""

import json
import re
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from bleuprint.pipeline import graph, recording
from bleuprint.pipeline.resolve import check_no_links, write_resolved
from bleuprint.runtime.errors import UserError
from micro import Project, ran
from root import ROOT

LOCK = "dvc.lock"
RESOLVED = "reports/resolved.json"
CELLS = ("tiny-own", "tiny-other", "wide-own", "wide-other")
LATER = ("average", "translate", "score")


@pytest.fixture(scope="module")
def project(stand_in, tmp_path_factory):
    """A project in which all has run; each test takes its edits back."""
    return stand_in.copy(tmp_path_factory.mktemp("resolve") / "project")


@contextmanager
def edited(project, texts):
    """Files with other texts, put back as they were, as is what resolve writes."""
    paths = [project.root / name for name in (*texts, RESOLVED)]
    before = {path: path.read_text() if path.exists() else None for path in paths}
    try:
        for name, text in texts.items():
            project.write(name, text)
        yield
    finally:
        for path, text in before.items():
            path.unlink() if text is None else path.write_text(text)


@cache
def digests(root, content):
    """Those of the stages, by the text of reports/resolved.json; no test edits dvc.yaml."""
    return {stage.name: stage.digest for stage in graph.load_stages(root, json.loads(content))}


def stale(project, texts, *, own_code=False):
    """The stages that an edit makes stale once resolve has run, without those after them.

    For DVC by its status, and for Snakemake by the digests of its rules: they must agree.
    `own_code`: resolve runs by the project's code, in a process.
    """
    content = project.read(RESOLVED)
    with edited(project, texts):
        project.run("python", "stages/resolve.py") if own_code else write_resolved(project.root)
        found = project.changed() - {"resolve"}
        now = project.read(RESOLVED)
    before, after = (digests(project.root, text) for text in (content, now))
    differ = {name for name in before if before[name] != after[name]}
    # the report depends on the whole file
    assert found == differ | ({"report"} if now != content else set())
    return found - {"report"}


SETTINGS = {
    "on a corpus": ("label_smoothing: 0.2", "label_smoothing: 0.3", {"train@tiny-other-1"}),
    "of decoding on a corpus, which wide inherits": (
        "beam: 3",
        "beam: 4",
        {"translate@tiny-own-1", "translate@wide-own-1"},
    ),
    "of a row and those like it": (
        "clip_norm: 1.0",
        "clip_norm: 2.0",
        {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"},
    ),
    "of a row, where those like it say otherwise": (
        "lr: 0.02,",
        "lr: 0.03,",
        {"train@tiny-own-1", "train@tiny-other-1"},
    ),
    "of a row alone": ("d_ff: 64", "d_ff: 32", {"train@wide-own-1"}),
    "a run comes": (
        "{own: {}, other: null}",
        "{own: {}}",
        {f"{kind}@wide-other-1" for kind in ("train", "average", "translate")},
    ),
    "a run goes": (
        "      own: {decode: {beam: 3}}\n",
        "      own: null\n",
        {f"{kind}@tiny-own-1" for kind in ("train", "average", "translate")}
        | {"translate@wide-own-1"},
    ),
    "of a corpus and those like it": (
        "length_ratio: {max: 3.0}",
        "length_ratio: {max: 2.0}",
        {f"{kind}@{name}" for kind in ("filter", "corpus_stats") for name in ("own", "other")},
    ),
    "of a corpus, where those like it say otherwise": (
        "num_merges: 40",
        "num_merges: 30",
        {"learn_vocabulary@own", "binarize@own"},
    ),
    "a comment": ("seeds: [1]", "seeds: [1] # one", set()),
}


@pytest.mark.parametrize(("old", "new", "expected"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_makes_stale_what_it_changes(project, old, new, expected):
    text = project.read("params.yaml")
    assert text.count(old) == 1
    assert stale(project, {"params.yaml": text.replace(old, new)}) == expected


def test_a_default_makes_stale_what_it_changes(project):
    name, old = "src/bleuprint/config/system.py", "label_smoothing: Share = 0.1"
    code = project.read(name)
    assert code.count(old) == 1
    texts = {name: code.replace(old, "label_smoothing: Share = 0.15")}
    expected = {"train@tiny-own-1", "train@wide-own-1"}  # tiny on other says otherwise
    assert stale(project, texts, own_code=True) == expected


def test_a_file_in_inputs_makes_its_corpora_stale(project):
    own = project.read("inputs/a.en")
    assert stale(project, {"inputs/a.en": f"{own}more\n"}) == {"download@own", "download@other"}
    assert stale(project, {"inputs/b.en": "more\n"}) == {"download@other"}
    assert stale(project, {"inputs/c.en": "more\n"}) == set()


def test_comments_and_docstrings_make_nothing_stale(project):
    """In each module of each package; DVC's own run of it has resolve alone."""
    texts = {}
    for folder in ("src/bleuprint", "stages"):
        for path in (project.root / folder).rglob("*.py"):
            text = path.read_text()
            documented = text.replace('"""', '"""Now: ', 1)
            texts[str(path.relative_to(project.root))] = f"{documented}\n\n# a comment\n"
    assert len({Path(name).parent for name in texts}) > 15
    assert stale(project, texts) == set()
    with edited(project, {**texts, LOCK: project.read(LOCK)}):
        assert project.repro() == ["resolve"]


def in_packages(project, *packages):
    """A new constant in each module of some packages."""
    package = project.root / "src" / "bleuprint"
    modules = [path for name in packages for path in (package / name).rglob("*.py")]
    return {
        str(path.relative_to(project.root)): f"{path.read_text()}\nMORE = 1\n" for path in modules
    }


def test_code_makes_stale_what_it_decides(project):
    shown = in_packages(project, "tracking", "report", "serving", "cli")
    assert len(shown) > 60 and stale(project, shown) == set()
    trained = {f"train@{run}-1" for run in CELLS}
    schedule = "src/bleuprint/training/lr_schedule.py"
    assert stale(project, {schedule: f"{project.read(schedule)}\nMORE = 1\n"}) == trained
    translated = {f"translate@{run}-1" for run in CELLS}
    assert stale(project, in_packages(project, "model")) >= trained | translated


def test_going_back_runs_nothing(project):
    assert project.changed() == set()


def test_an_unchanged_file_keeps_its_time(project):
    """Snakemake compares modification times."""
    path = project.root / RESOLVED
    before = path.stat().st_mtime_ns
    write_resolved(project.root)
    assert path.stat().st_mtime_ns == before


def test_a_run_left_out_asks_for_no_gpu(project):
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}
    for kind in ("train", "translate"):
        gpus = [stages[f"{kind}@{run}-1"].gpu for run in ("wide-other", "wide-own")]
        assert gpus == [0, 1], kind


def test_an_experiment_runs_its_row_and_those_like_it(stand_in, tmp_path):
    project = stand_in.copy(tmp_path / "project")
    setting = "systems.tiny.decode.max_len_b=6"
    output = project.run("dvc", "exp", "run", "--temp", "-S", setting)
    decoded = {f"{kind}@{run}-1" for kind in LATER[1:] for run in CELLS[:3]}
    assert set(ran(output)) == {"resolve", *decoded, "report"}
    assert project.run("git", "status", "--porcelain") == ""


FINE = "  fine: {like: tiny, corpora: {other: null}}\n"
INIT_FROM = "init_from: {fine: {system: tiny, corpus: own}}\n"


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_a_system_that_starts_from_one_below_it_runs_at_once(stand_in, tmp_path, engine):
    """A single edit of params.yaml adds it, and a single run comes after."""
    project = stand_in.copy(tmp_path / "project")
    before = project.read("params.yaml")
    project.write("params.yaml", before.replace("systems:\n", f"systems:\n{FINE}") + INIT_FROM)
    new = {f"{kind}@fine-{corpus}-1" for kind in ("train", *LATER) for corpus in ("own", "other")}
    if engine == "dvc":
        ran_stages = set(project.repro())
        of_start = {"fresh@fine-1", "parents@fine", "init_weights@fine-1"}
        assert ran_stages == new | of_start | {"resolve", "report"}
    else:
        project.snakemake()
    assert project.changed() == set()
    written = project.read("models/fine/own/1/checkpoints/file")
    assert "data/starts/fine/1/weights/file" in written
    assert "data/parents/fine/1/file" in project.read("data/starts/fine/1/weights/file")
    assert "models/tiny/own/1/averaged/file" in project.read("data/parents/fine/1/file")


def test_another_start_trains_again(stand_in, tmp_path):
    project = stand_in.copy(tmp_path / "project")
    before = project.read("params.yaml")
    project.write("params.yaml", f"{before}{FINE}{INIT_FROM}")
    project.repro()
    # from random weights, and then from another corpus
    project.write("params.yaml", f"{before}{FINE}")
    assert "train@fine-own-1" in project.repro()
    assert "data/starts/fine/1/weights" not in project.read("models/fine/own/1/checkpoints/file")
    project.write("params.yaml", f"{before}{FINE}{INIT_FROM.replace('own', 'other')}")
    assert {"parents@fine", "init_weights@fine-1", "train@fine-own-1"} <= set(project.repro())
    start = project.read("data/parents/fine/1/file")
    assert "models/tiny/other/1/averaged/file" in start
    assert project.changed() == set()


def test_other_seeds_repeat_no_training_that_starts_from_another_system(stand_in, tmp_path):
    project = stand_in.copy(tmp_path / "project")
    first_seed = f"{project.read('params.yaml')}{FINE}{INIT_FROM}"
    assert first_seed.count("seeds: [1]\n") == 1
    project.write("params.yaml", first_seed)
    assert "train@fine-own-1" in project.repro()
    trained = []
    for seeds in ("1, 2", "2, 1", "1"):
        project.write("params.yaml", first_seed.replace("seeds: [1]\n", f"seeds: [{seeds}]\n"))
        ran_stages = project.repro()
        trained.append({name for name in ran_stages if name.startswith("train@")})
        assert project.changed() == set()
    assert "train@fine-own-2" in trained[0]
    assert not any(name.endswith("-1") for name in trained[0])
    assert trained[1:] == [set(), set()]


def entries(lock):
    """The texts of dvc.lock by stage."""
    texts = re.split(r"\n  (?=\S)", lock.partition("\nstages:")[2])[1:]
    return {text.partition(":")[0]: text for text in texts}


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_an_edit_while_a_training_runs_is_of_the_next_run(stand_in, tmp_path, engine):
    """What is computed and what DVC records agree: both are of the settings before the edit."""
    project = stand_in.copy(tmp_path / "project")
    project.edit("params.yaml", "clip_norm: 1.0", "clip_norm: 2.0")
    edit = "sed -i 's/clip_norm: 2.0/clip_norm: 3.0/' params.yaml"
    project.environment["WHILE_TRAINING"] = edit
    outputs = "models/tiny/own/1/checkpoints"
    if engine == "dvc":
        project.run("dvc", "repro", "train@tiny-own-1")
    else:
        (project.root / outputs / "file").unlink()
        (project.root / outputs).rmdir()
        project.snakemake(outputs)
    assert "clip_norm: 3.0" in project.read("params.yaml")
    assert '"clip_norm": 2.0' in project.read(f"{outputs}/file")
    assert "clip_norm: 2.0" in entries(project.read(LOCK))["train@tiny-own-1"]
    assert "resolve" in project.changed()
    write_resolved(project.root)
    assert {f"train@{run}-1" for run in CELLS[:3]} <= project.changed()


def test_a_clone_that_has_pulled_is_up_to_date(stand_in, tmp_path):
    from dvc.repo import Repo

    project = stand_in.copy(tmp_path / "project")
    with Repo(str(project.root)) as repo:
        repo.add([f"{project.root}/inputs/a.{side}" for side in ("en", "de")])
    recording._commit({"resolve"}, project.root)  # which depends on the whole folder
    config = project.read(".dvc/config").replace("[core]\n", "[core]\n    remote = here\n", 1)
    remote = f"['remote \"here\"']\n    url = {tmp_path / 'remote'}\n"
    project.write(".dvc/config", f"{config}\n{remote}")
    project.commit()
    subprocess.run(["git", "clone", "-q", project.root, tmp_path / "clone"], check=True)
    clone = Project(tmp_path / "clone")
    with Repo(str(project.root)) as repo:
        assert repo.push() > 50
    assert clone.changed()
    with Repo(str(clone.root)) as repo:
        repo.pull()
    assert clone.changed() == set()
    assert clone.read("models/tiny/own/1/averaged/file") == project.read(
        "models/tiny/own/1/averaged/file"
    )
    write_resolved(clone.root)
    assert clone.run("git", "status", "--porcelain") == ""


IGNORED = [
    *(".venv", "build", "data", "models", "results", "timings", "work", "comet", "dvc_plots"),
    *("mlruns", ".snakemake"),
]


def test_links_in_place_of_ignored_folders_are_not_committed(tmp_path):
    """As in labs where data/ is on another disk."""
    (tmp_path / "disk").mkdir()
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    project = tmp_path / "project"
    shutil.copy(ROOT / ".gitignore", project)
    for name in IGNORED:
        (project / name).symlink_to(tmp_path / "disk")
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    staged = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, check=True)
    assert staged.stdout == b".gitignore\n"


@pytest.mark.parametrize("name", ["data", "models", "results", "models/tiny"])
def test_a_link_in_place_of_a_folder_of_outputs_is_refused(tmp_path, name):
    """DVC would say "outside of git repository", after the first stage has run."""
    (tmp_path / "disk").mkdir()
    (link := tmp_path / name).parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "disk")
    said = (
        f"^{name} is a link to {tmp_path / 'disk'}, .*folder: rm {name}\\. .*dvc cache dir --local"
    )
    with pytest.raises(UserError, match=said):
        check_no_links(tmp_path)
    link.unlink()
    (tmp_path / "work").symlink_to(tmp_path / "disk")
    check_no_links(tmp_path)
