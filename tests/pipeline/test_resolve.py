"""The stage resolve, and what it makes stale in both graphs.

The project of these tests is the one of stand_ins: its stages compute nothing, but write what
decides their results. System tiny has settings of its own on corpus own (beam: 3) and on corpus
other (label_smoothing: 0.2). System wide is like tiny, and excluded from corpus other. Corpus other
is like own, with fewer merges, and has the files inputs/b.en and .de, too.
"""

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

RESOLVED = "reports/resolved.json"
TRAININGS = {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1", "train@wide-other-1"}
TRANSLATIONS = {name.replace("train@", "translate@") for name in TRAININGS}


@pytest.fixture(scope="module")
def project(stand_in, tmp_path_factory):
    """Return a project in which all stages have run; each test takes its edits back."""
    return stand_in.copy(tmp_path_factory.mktemp("resolve") / "project")


@pytest.fixture
def own_project(stand_in, tmp_path):
    """Return a project in which all stages have run, for one test to change."""
    return stand_in.copy(tmp_path / "project")


@contextmanager
def edited(project, texts):
    """Replace the texts of files; at the end, restore them and what resolve has written.

    Args:
        project: The project.
        texts: The new text of each file, by its path in the project.
    """
    old_texts = {}
    for name in [*texts, RESOLVED]:
        path = project.root / name
        old_texts[path] = path.read_text() if path.exists() else None
    try:
        for name, text in texts.items():
            project.write(name, text)
        yield
    finally:
        for path, text in old_texts.items():
            if text is None:
                path.unlink()
            else:
                path.write_text(text)


@cache
def digest_by_stage(root, resolved_text):
    """Return the hash of each stage's command and settings, by which Snakemake sees changes.

    Args:
        root: The project's folder. No test edits its dvc.yaml, so the result can be kept.
        resolved_text: The text of reports/resolved.json, which contains all settings.
    """
    stages = graph.load_stages(root, json.loads(resolved_text))
    return {stage.name: stage.digest for stage in stages}


def stale_stages(project, texts, *, by_project_code=False):
    """Edit files, run resolve, and return the stages that are stale then; take the edits back.

    DVC says so by its status, Snakemake by the digests of its rules, and they must agree. Stages
    that are stale only since another one will run before them are omitted, and so is the report.

    Args:
        project: The project.
        texts: The new text of each file, by its path in the project.
        by_project_code: Whether resolve runs in a process, by the code in the project's src, which
            an edit may have changed.
    """
    old_resolved = project.read(RESOLVED)
    with edited(project, texts):
        if by_project_code:
            project.run("python", "stages/resolve.py")
        else:
            write_resolved(project.root)
        stale_for_dvc = project.changed() - {"resolve"}
        new_resolved = project.read(RESOLVED)
    old_digests = digest_by_stage(project.root, old_resolved)
    new_digests = digest_by_stage(project.root, new_resolved)
    stale_for_snakemake = {name for name in old_digests if old_digests[name] != new_digests[name]}
    if new_resolved != old_resolved:
        # The report depends on all of reports/resolved.json.
        stale_for_snakemake.add("report")
    assert stale_for_dvc == stale_for_snakemake
    return stale_for_dvc - {"report"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "label_smoothing: 0.2",
            "label_smoothing: 0.3",
            {"train@tiny-other-1"},
            id="a setting of tiny on the corpus other",
        ),
        pytest.param(
            "beam: 3",
            "beam: 4",
            {"translate@tiny-own-1", "translate@wide-own-1"},
            id="a setting of tiny on the corpus own, which wide inherits",
        ),
        pytest.param(
            "clip_norm: 1.0",
            "clip_norm: 2.0",
            {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"},
            id="a setting of tiny, which wide inherits",
        ),
        pytest.param(
            "lr: 0.02,",
            "lr: 0.03,",
            {"train@tiny-own-1", "train@tiny-other-1"},
            id="a setting of tiny, which wide overrides",
        ),
        pytest.param(
            "d_ff: 64", "d_ff: 32", {"train@wide-own-1"}, id="a setting of wide, which is like tiny"
        ),
        pytest.param(
            "{own: {}, other: null}",
            "{own: {}}",
            {"train@wide-other-1", "average@wide-other-1", "translate@wide-other-1"},
            id="wide is no longer excluded from the corpus other",
        ),
        pytest.param(
            "      own: {decode: {beam: 3}}\n",
            "      own: null\n",
            {
                "train@tiny-own-1",
                "average@tiny-own-1",
                "translate@tiny-own-1",
                "translate@wide-own-1",
            },
            id="tiny is excluded from the corpus own, from which wide inherited the beam",
        ),
        pytest.param(
            "length_ratio: {max: 3.0}",
            "length_ratio: {max: 2.0}",
            {"filter@own", "filter@other", "corpus_stats@own", "corpus_stats@other"},
            id="a setting of the corpus own, which other inherits",
        ),
        pytest.param(
            "num_merges: 40",
            "num_merges: 30",
            {"learn_vocabulary@own", "binarize@own"},
            id="a setting of the corpus own, which other overrides",
        ),
        pytest.param("seeds: [1]", "seeds: [1] # one", set(), id="a comment"),
    ],
)
def test_an_edit_of_params_yaml_makes_only_the_stages_that_read_the_setting_stale(
    project, old, new, expected
):
    """System wide is like tiny, and corpus other is like own."""
    text = project.read("params.yaml")
    assert text.count(old) == 1

    assert stale_stages(project, {"params.yaml": text.replace(old, new)}) == expected


def test_a_new_default_makes_only_the_trainings_that_use_it_stale(project):
    module = "src/bleuprint/config/system.py"
    code = project.read(module)
    default = "label_smoothing: Share = 0.1"
    assert code.count(default) == 1
    new_code = code.replace(default, "label_smoothing: Share = 0.15")

    stale = stale_stages(project, {module: new_code}, by_project_code=True)

    # params.yaml sets the label smoothing of tiny on the corpus other.
    assert stale == {"train@tiny-own-1", "train@wide-own-1"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("inputs/a.en", {"download@own", "download@other"}, id="of both corpora"),
        pytest.param("inputs/b.en", {"download@other"}, id="of the corpus other"),
        pytest.param("inputs/c.en", set(), id="of no corpus"),
    ],
)
def test_a_changed_text_makes_only_the_corpora_that_name_it_stale(project, file, expected):
    """The file of both corpora exists before; the others are new."""
    is_new = not (project.root / file).exists()
    old_text = "" if is_new else project.read(file)

    assert is_new == (file != "inputs/a.en")
    assert stale_stages(project, {file: f"{old_text}more\n"}) == expected


@pytest.fixture(scope="module")
def commented_code(project):
    """Return every module of the project with a new comment and a changed docstring, by path."""
    texts = {}
    for folder in ("src/bleuprint", "stages"):
        for path in (project.root / folder).rglob("*.py"):
            documented = path.read_text().replace('"""', '"""Now: ', 1)
            texts[str(path.relative_to(project.root))] = f"{documented}\n\n# a comment\n"
    packages = {Path(name).parent for name in texts}
    assert len(packages) > 15
    return texts


def test_comments_and_docstrings_make_no_stage_stale(project, commented_code):
    assert stale_stages(project, commented_code) == set()


def test_dvc_runs_only_resolve_after_an_edit_of_comments_and_docstrings(project, commented_code):
    """The stage resolve depends on the files of code, and compares the code without comments."""
    texts = {**commented_code, "dvc.lock": project.read("dvc.lock")}  # Restored at the end.
    with edited(project, texts):
        assert project.repro() == ["resolve"]


def with_new_constants(project, packages):
    """Return the code of all modules of some packages, each with a new constant, by path."""
    texts = {}
    for package in packages:
        for path in (project.root / "src" / "bleuprint" / package).rglob("*.py"):
            texts[str(path.relative_to(project.root))] = f"{path.read_text()}\nMORE = 1\n"
    return texts


def test_code_that_only_shows_results_makes_no_stage_stale(project):
    texts = with_new_constants(project, ["tracking", "report", "serving", "cli"])

    assert len(texts) > 60
    assert stale_stages(project, texts) == set()


def test_code_of_the_training_makes_all_trainings_and_nothing_else_stale(project):
    module = "src/bleuprint/training/lr_schedule.py"

    stale = stale_stages(project, {module: f"{project.read(module)}\nMORE = 1\n"})

    assert stale == TRAININGS


def test_code_of_the_model_makes_all_trainings_and_translations_stale(project):
    texts = with_new_constants(project, ["model"])

    assert stale_stages(project, texts) >= TRAININGS | TRANSLATIONS


def test_nothing_is_stale_once_all_edits_are_taken_back(project):
    module = "src/bleuprint/training/lr_schedule.py"
    stale_stages(project, {module: f"{project.read(module)}\nMORE = 1\n"})

    assert project.changed() == set()


def test_resolve_keeps_the_modification_time_of_an_unchanged_file(project):
    """Snakemake compares modification times."""
    path = project.root / RESOLVED
    old_time = path.stat().st_mtime_ns

    write_resolved(project.root)

    assert path.stat().st_mtime_ns == old_time


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_an_excluded_run_asks_for_no_gpu(project, kind):
    """System wide is excluded from the corpus other: `wide: {corpora: {other: null}}`."""
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}

    assert stages[f"{kind}@wide-other-1"].gpu == 0
    assert stages[f"{kind}@wide-own-1"].gpu == 1


def test_a_dvc_experiment_runs_only_what_its_setting_changes(own_project):
    """System wide is like tiny, so it runs too; nothing is written into the project itself."""
    setting = "systems.tiny.decode.max_len_b=6"

    output = own_project.run("dvc", "exp", "run", "--temp", "-S", setting)

    runs = ["tiny-own-1", "tiny-other-1", "wide-own-1"]
    translations = {f"translate@{run}" for run in runs}
    scores = {f"score@{run}" for run in runs}
    assert set(ran(output)) == {"resolve", "report"} | translations | scores
    assert own_project.run("git", "status", "--porcelain") == ""


# The section of the system fine, and what makes it start from the weights of tiny.
FINE = "  fine: {like: tiny, corpora: {other: null}}\n"
INIT_FROM = "init_from: {fine: {system: tiny, corpus: own}}\n"


def insert_fine_tuned_system(project):
    """Add a system that starts from the weights of tiny, above tiny in params.yaml."""
    params = project.read("params.yaml")
    with_system = params.replace("systems:\n", f"systems:\n{FINE}")
    project.write("params.yaml", with_system + INIT_FROM)


def test_dvc_runs_a_fine_tuned_system_by_one_edit_and_one_run(own_project):
    """Its parent, the system with whose weights it starts, stands below it in params.yaml."""
    insert_fine_tuned_system(own_project)

    stages_run = set(own_project.repro())

    # On the corpus other the system is excluded: its stages write empty outputs.
    expected = {"resolve", "fresh@fine-1", "parents@fine", "init_weights@fine-1", "report"}
    for kind in ("train", "average", "translate", "score"):
        expected |= {f"{kind}@fine-own-1", f"{kind}@fine-other-1"}
    assert stages_run == expected


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_a_fine_tuned_system_is_trained_from_the_weights_of_its_parent(own_project, engine):
    """Each stage of this project writes the names of the files that it has read."""
    insert_fine_tuned_system(own_project)

    if engine == "dvc":
        own_project.repro()
    else:
        own_project.snakemake()

    assert own_project.changed() == set()
    training_reads = own_project.read("models/fine/own/1/checkpoints/file")
    assert "data/starts/fine/1/weights/file" in training_reads
    start_reads = own_project.read("data/starts/fine/1/weights/file")
    assert "data/parents/fine/1/file" in start_reads
    parents_read = own_project.read("data/parents/fine/1/file")
    assert "models/tiny/own/1/averaged/file" in parents_read


@pytest.fixture(scope="module")
def fine_tuned(stand_in, tmp_path_factory):
    """Return a project that has run with a system that starts from tiny. Not to be changed."""
    project = stand_in.copy(tmp_path_factory.mktemp("fine") / "project")
    project.write("params.yaml", f"{project.read('params.yaml')}{FINE}{INIT_FROM}")
    assert "train@fine-own-1" in project.repro()
    return project


def test_a_system_that_no_longer_starts_from_another_is_trained_again(fine_tuned, tmp_path):
    """Each stage of this project writes the names of the files that it has read."""
    project = fine_tuned.copy(tmp_path / "project")
    params = project.read("params.yaml")
    project.write("params.yaml", params.replace(INIT_FROM, ""))

    stages_run = project.repro()

    assert "train@fine-own-1" in stages_run
    assert "data/starts/fine/1/weights" not in project.read("models/fine/own/1/checkpoints/file")


def test_a_system_that_starts_from_another_corpus_is_trained_again(fine_tuned, tmp_path):
    """Each stage of this project writes the names of the files that it has read."""
    project = fine_tuned.copy(tmp_path / "project")
    project.edit("params.yaml", INIT_FROM, INIT_FROM.replace("own", "other"))

    stages_run = project.repro()

    assert {"parents@fine", "init_weights@fine-1", "train@fine-own-1"} <= set(stages_run)
    assert "models/tiny/other/1/averaged/file" in project.read("data/parents/fine/1/file")
    assert project.changed() == set()


def test_other_seeds_repeat_no_training_that_starts_from_another_system(fine_tuned, tmp_path):
    project = fine_tuned.copy(tmp_path / "project")
    one_seed = project.read("params.yaml")
    assert one_seed.count("seeds: [1]\n") == 1

    trainings_by_seeds = {}
    for seeds in ("[1, 2]", "[2, 1]", "[1]"):
        project.write("params.yaml", one_seed.replace("seeds: [1]\n", f"seeds: {seeds}\n"))
        stages_run = project.repro()
        trainings = {name for name in stages_run if name.startswith("train@")}
        trainings_by_seeds[seeds] = trainings
        assert project.changed() == set()

    assert "train@fine-own-2" in trainings_by_seeds["[1, 2]"]
    assert not any(name.endswith("-1") for name in trainings_by_seeds["[1, 2]"])
    assert trainings_by_seeds["[2, 1]"] == set()
    assert trainings_by_seeds["[1]"] == set()


def entry_of_lock(project, stage):
    """Return the text of a stage's entry in dvc.lock."""
    stages_text = project.read("dvc.lock").partition("\nstages:")[2]
    for entry in re.split(r"\n  (?=\S)", stages_text):
        if entry.partition(":")[0] == stage:
            return entry
    raise AssertionError(f"dvc.lock has no {stage}")


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_a_training_and_its_record_use_the_settings_from_before_an_edit(own_project, engine):
    """While the training runs, clip_norm is edited from 2.0 to 3.0."""
    project = own_project
    project.edit("params.yaml", "clip_norm: 1.0", "clip_norm: 2.0")
    # The stages of this project run the command in this variable while a training runs.
    edit_command = "sed -i 's/clip_norm: 2.0/clip_norm: 3.0/' params.yaml"
    project.environment["WHILE_TRAINING"] = edit_command

    checkpoints = "models/tiny/own/1/checkpoints"
    if engine == "dvc":
        project.run("dvc", "repro", "train@tiny-own-1")
    else:
        shutil.rmtree(project.root / checkpoints)
        project.snakemake(checkpoints)

    assert "clip_norm: 3.0" in project.read("params.yaml")
    # The training has written its settings to its output.
    assert '"clip_norm": 2.0' in project.read(f"{checkpoints}/file")
    assert "clip_norm: 2.0" in entry_of_lock(project, "train@tiny-own-1")
    # The next run trains with the edit.
    assert "resolve" in project.changed()
    write_resolved(project.root)
    edited_trainings = {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"}
    assert edited_trainings <= project.changed()


@pytest.fixture(scope="module")
def pushed(stand_in, tmp_path_factory):
    """Return a project whose outputs are pushed to a DVC remote, a folder beside it."""
    from dvc.repo import Repo

    folder = tmp_path_factory.mktemp("pushed")
    project = stand_in.copy(folder / "project")
    with Repo(str(project.root)) as repo:
        repo.add([f"{project.root}/inputs/a.en", f"{project.root}/inputs/a.de"])
    # The stage resolve depends on the folder inputs/, to which `dvc add` has added files.
    recording._commit({"resolve"}, project.root)
    project.edit(".dvc/config", "[core]\n", "[core]\n    remote = here\n")
    remote_section = f"['remote \"here\"']\n    url = {folder / 'remote'}\n"
    project.write(".dvc/config", f"{project.read('.dvc/config')}\n{remote_section}")
    project.commit()
    with Repo(str(project.root)) as repo:
        number_of_files = repo.push()
    assert number_of_files > 50
    return project


def test_a_clone_is_up_to_date_once_it_has_pulled(pushed, tmp_path):
    from dvc.repo import Repo

    subprocess.run(["git", "clone", "-q", pushed.root, tmp_path / "clone"], check=True)
    clone = Project(tmp_path / "clone")
    assert clone.changed()

    with Repo(str(clone.root)) as repo:
        repo.pull()

    assert clone.changed() == set()
    averaged_model = "models/tiny/own/1/averaged/file"
    assert clone.read(averaged_model) == pushed.read(averaged_model)
    # Resolving the settings in the clone writes what is committed.
    write_resolved(clone.root)
    assert clone.run("git", "status", "--porcelain") == ""


def test_links_in_place_of_ignored_folders_are_not_committed(tmp_path):
    """In some labs, data/ is a link to another disk. Git sees a link as a file."""
    ignored_folders = [
        ".snakemake",
        ".venv",
        "build",
        "comet",
        "data",
        "dvc_plots",
        "mlruns",
        "models",
        "results",
        "timings",
        "work",
    ]
    disk = tmp_path / "disk"
    disk.mkdir()
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", project], check=True)
    shutil.copy(ROOT / ".gitignore", project)
    for name in ignored_folders:
        (project / name).symlink_to(disk)

    subprocess.run(["git", "add", "-A"], cwd=project, check=True)

    staged = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, check=True)
    assert staged.stdout == b".gitignore\n"


@pytest.mark.parametrize("name", ["data", "models", "results", "models/tiny"])
def test_a_link_in_place_of_a_folder_of_outputs_is_refused(tmp_path, name):
    """DVC would say "outside of git repository", after the first stage has run."""
    disk = tmp_path / "disk"
    disk.mkdir()
    link = tmp_path / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(disk)

    message = f"^{name} is a link to {disk}, .*folder: rm {name}\\. .*dvc cache dir --local"
    with pytest.raises(UserError, match=message):
        check_no_links(tmp_path)


def test_a_link_in_place_of_the_folder_work_is_accepted(tmp_path):
    """No output of a stage is in work/."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "work").symlink_to(disk)

    check_no_links(tmp_path)
