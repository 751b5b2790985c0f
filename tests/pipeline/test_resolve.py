"""The stage resolve, and what it makes stale in both graphs.

The project of these tests is the one of stand_ins: its stages compute nothing, but write what
decides their results. System tiny has settings of its own on corpus own (beam: 3) and on corpus
other (label_smoothing: 0.2). System wide is like tiny, and excluded from corpus other. Corpus other
is like own, with fewer merges, and has the files inputs/b.en and .de, too.

The last tests put links in place of folders of outputs.
"""

import json
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from bleuprint.pipeline import graph
from bleuprint.pipeline.resolve import check_no_links, write_resolved
from bleuprint.runtime.errors import UserError
from micro import stages_in_output
from root import ROOT

RESOLVED = "reports/resolved.json"


@pytest.fixture(scope="module")
def project(stand_in, tmp_path_factory):
    """Return a project in which all stages have run; each test takes its edits back."""
    return stand_in.copy(tmp_path_factory.mktemp("resolve") / "project")


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
        stale_for_dvc = project.changed_stages() - {"resolve"}
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
            {"filter@own", "filter@other"},
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
    """A stale stage has to run again. Its name is STAGE@SYSTEM-CORPUS-SEED or STAGE@CORPUS.

    System wide inherits the settings of tiny, and corpus other the settings of corpus own. Stages
    that only become stale when an earlier stage has run are not listed.
    """
    params = project.read("params.yaml")
    assert params.count(old) == 1
    edited_params = params.replace(old, new)

    assert stale_stages(project, {"params.yaml": edited_params}) == expected


def test_a_new_default_makes_only_the_trainings_that_use_it_stale(project):
    """The default label smoothing changes from 0.1 to 0.15 in the code.

    Three runs are trained: tiny on own, tiny on other, and wide on own. params.yaml sets the label
    smoothing of tiny on other to 0.2, so this training stays up to date.
    """
    module = "src/bleuprint/config/system.py"
    code = project.read(module)
    old_default = "label_smoothing: Share = 0.1"
    assert code.count(old_default) == 1
    new_code = code.replace(old_default, "label_smoothing: Share = 0.15")

    stale = stale_stages(project, {module: new_code}, by_project_code=True)

    assert stale == {"train@tiny-own-1", "train@wide-own-1"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("inputs/a.en", {"download@own", "download@other"}, id="own and other name it"),
        pytest.param("inputs/b.en", {"download@other"}, id="the corpus other names it"),
        pytest.param("inputs/c.en", set(), id="no corpus names it"),
    ],
)
def test_a_changed_input_file_makes_only_the_corpora_that_name_it_stale(project, file, expected):
    """inputs/a.en gets one more line; inputs/b.en and inputs/c.en are new files."""
    is_new = not (project.root / file).exists()
    assert is_new == (file != "inputs/a.en")
    old_text = "" if is_new else project.read(file)

    stale = stale_stages(project, {file: f"{old_text}one more line\n"})

    assert stale == expected


@pytest.fixture(scope="module")
def commented_code(project):
    """Return every module of the project with a new comment and a changed docstring, by path."""
    texts = {}
    for folder in ("src/bleuprint", "stages"):
        for path in (project.root / folder).rglob("*.py"):
            documented = path.read_text().replace('"""', '"""Now: ', 1)
            texts[str(path.relative_to(project.root))] = f"{documented}\n\n# a comment\n"
    packages = {Path(name).parent for name in texts}
    assert len(packages) > 15  # The loop has found the code.
    return texts


def test_comments_and_docstrings_make_no_stage_stale(project, commented_code):
    assert stale_stages(project, commented_code) == set()


def test_dvc_runs_only_resolve_after_an_edit_of_comments_and_docstrings(project, commented_code):
    """Every module gets a comment and another docstring.

    The stage resolve depends on the files of code. It computes hashes of the code without comments,
    and all other stages depend on these hashes.
    """
    texts_to_restore = {**commented_code, "dvc.lock": project.read("dvc.lock")}
    with edited(project, texts_to_restore):
        stages_run = project.repro()

    assert stages_run == ["resolve"]


def with_new_constants(project, packages):
    """Return the code of all modules of some packages, each with a new constant, by path."""
    texts = {}
    for package in packages:
        for path in (project.root / "src" / "bleuprint" / package).rglob("*.py"):
            texts[str(path.relative_to(project.root))] = f"{path.read_text()}\nMORE = 1\n"
    return texts


def test_an_edit_of_code_that_only_shows_results_makes_no_stage_stale(project):
    """Every module of four packages gets a new constant; no stage that computes imports them."""
    new_code = with_new_constants(project, ["tracking", "report", "serving", "cli"])
    assert len(new_code) > 60  # modules

    stale = stale_stages(project, new_code)

    assert stale == set()


def test_an_edit_of_training_code_makes_all_trainings_and_no_other_stage_stale(project):
    """The module of the learning-rate schedule gets a new constant."""
    module = "src/bleuprint/training/lr_schedule.py"

    stale = stale_stages(project, {module: f"{project.read(module)}\nMORE = 1\n"})

    assert stale == {
        "train@tiny-own-1",
        "train@tiny-other-1",
        "train@wide-own-1",
        "train@wide-other-1",
    }


def test_an_edit_of_model_code_makes_all_trainings_and_translations_stale(project):
    """Both stages compute with the model. Every module of its package gets a new constant."""
    new_code = with_new_constants(project, ["model"])

    stale = stale_stages(project, new_code)

    for run in ("tiny-own-1", "tiny-other-1", "wide-own-1", "wide-other-1"):
        assert f"train@{run}" in stale
        assert f"translate@{run}" in stale


def test_nothing_is_stale_once_all_edits_are_taken_back(project):
    module = "src/bleuprint/training/lr_schedule.py"
    stale_stages(project, {module: f"{project.read(module)}\nMORE = 1\n"})

    assert project.changed_stages() == set()


def test_resolve_keeps_the_modification_time_of_resolved_json_if_no_setting_changed(project):
    """Snakemake compares modification times: a new time would make it run all stages again."""
    path = project.root / "reports/resolved.json"
    old_time = path.stat().st_mtime_ns

    write_resolved(project.root)

    assert path.stat().st_mtime_ns == old_time


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_a_run_that_params_yaml_excludes_does_not_ask_for_a_gpu(project, kind):
    """params.yaml excludes the system wide from the corpus other: `corpora: {other: null}`.

    The stages of this run exist, but write empty outputs. They must not wait for a GPU.
    """
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}

    assert stages[f"{kind}@wide-other-1"].gpu == 0
    assert stages[f"{kind}@wide-own-1"].gpu == 1


def test_a_dvc_experiment_with_another_decoding_setting_runs_no_training(own_project):
    """`dvc exp run --temp` runs in a copy of the project, so the project itself stays as it was.

    System wide inherits the setting from tiny, so its translations are also computed again.
    """
    setting = "systems.tiny.decode.max_len_b=6"

    output = own_project.run("dvc", "exp", "run", "--temp", "-S", setting)

    expected_stages = {"resolve", "report"}
    for run in ("tiny-own-1", "tiny-other-1", "wide-own-1"):
        expected_stages |= {f"translate@{run}", f"score@{run}"}
    assert set(stages_in_output(output)) == expected_stages
    changes_in_the_project = own_project.run("git", "status", "--porcelain")
    assert changes_in_the_project == ""


def test_git_ignores_links_in_place_of_ignored_folders(tmp_path):
    """In some labs, data/ is a link to another disk.

    Git treats a link as a file, so the pattern `data/` in .gitignore would not match it, but `data`
    does. Only .gitignore itself can be committed here.
    """
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
def test_a_link_in_place_of_a_folder_of_outputs_is_an_error_before_the_first_stage(tmp_path, name):
    """DVC cannot store outputs behind a link, but it finds this out after a stage has run.

    The error tells how to put the cache of DVC on another disk instead.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    link = tmp_path / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(disk)

    message = f"^{name} is a link to {disk}, .*folder: rm {name}\\. .*dvc cache dir --local"
    with pytest.raises(UserError, match=message):
        check_no_links(tmp_path)


def test_a_link_in_place_of_the_folder_work_is_accepted(tmp_path):
    """Checkpoints of running trainings are in work/; outputs of stages, which DVC stores, are not.

    An unaccepted link would raise UserError.
    """
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "work").symlink_to(disk)

    check_no_links(tmp_path)
