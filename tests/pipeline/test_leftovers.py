"""What params.yaml no longer names is moved to work/removed, out of the folders that stages read.

The params.yaml of these tests has the systems tiny and wide, the corpus own, and the seed 1.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import micro
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline.leftovers import REPORT_FOLDERS_BY_CORPUS, move_leftovers
from bleuprint.runtime.yaml_tree import load_yaml
from root import ROOT

# Files that the report would read although params.yaml does not name their run or corpus.
LEFTOVERS = [
    "results/deep/own/1/scores.json",
    "results/tiny/own/2/scores.json",
    "results/online-a/own/1/scores.json",
    "results/outside/own/online-a/scores.json",  # An external system of version 1.0.
    "data/filter_stats/other/clean.json",
]
# Files that params.yaml does not name, in folders that no stage reads.
UNREAD = [
    "models/deep/own/1/averaged/model",
    "data/raw/other/train.en",
    "work/trainings/deep.own.1.0123456789abcdef/1.safetensors",
    "work/trainings/tiny.own.1.fedcba9876543210/1.safetensors",  # Of earlier settings.
    f"work/downloads/{64 * 'a'}",
    "work/shards/clean/other/1-of-2/train.en",
]
# Files of runs and corpora in params.yaml, and a user's notes.
NAMED = [
    "models/tiny/own/1/averaged/model",
    "results/wide/own/1/scores.json",
    "results/notes/of/mine.txt",
    "data/filter_stats/own/clean.json",
    "work/trainings/tiny.own.1.0123456789abcdef/1.safetensors",
    "work/downloads/downloads.guard",
]


def write_file(path):
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("12345")


def move_leftovers_of(project):
    """Move the leftovers of the project in a folder, by its params.yaml."""
    move_leftovers(load_settings(project / "params.yaml"), project)


@pytest.fixture
def project(tmp_path):
    """Return the folder of a project with files of today's settings and of earlier ones."""
    (tmp_path / "params.yaml").write_text(micro.PARAMS)
    (tmp_path / "dvc.yaml").write_bytes((micro.ROOT / "dvc.yaml").read_bytes())
    for name in LEFTOVERS + UNREAD + NAMED:
        write_file(tmp_path / name)
    return tmp_path


def file_names(root):
    """Return the paths of all files in a project, without params.yaml, dvc.yaml and locks."""
    names = set()
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            names.add(str(path.relative_to(root)))
    return names - {"params.yaml", "dvc.yaml"}


def test_leftovers_are_looked_for_in_all_folders_that_the_report_reads():
    """The folder `results` has a level for each of system, corpus and seed."""
    dependencies = load_yaml(ROOT / "dvc.yaml")["stages"]["report"]["deps"]
    read_folders = {path for path in dependencies if path.startswith(("data/", "results"))}

    assert read_folders == {"results", *REPORT_FOLDERS_BY_CORPUS}


def test_files_that_the_report_would_read_are_moved_and_all_others_stay(project):
    move_leftovers_of(project)

    moved = {f"work/removed/{name}" for name in LEFTOVERS}
    assert file_names(project) == moved | set(UNREAD) | set(NAMED)


def test_leftovers_may_be_moved_over_earlier_ones(project):
    """The same runs were removed from params.yaml, named again, and removed once more."""
    move_leftovers_of(project)
    for name in LEFTOVERS:
        write_file(project / name)

    move_leftovers_of(project)

    moved = {f"work/removed/{name}" for name in LEFTOVERS}
    assert file_names(project) == moved | set(UNREAD) | set(NAMED)


def test_a_run_in_a_folder_that_is_moved_later_is_kept(project):
    """`outside` was a system; the folder of this name is also one of version 1.0."""
    write_file(project / "results/outside/own/1/scores.json")

    move_leftovers_of(project)

    moved_folder = project / "work/removed/results/outside/own"
    assert (moved_folder / "1/scores.json").exists()
    assert (moved_folder / "online-a/scores.json").exists()


def test_a_link_among_leftovers_is_moved_though_its_target_is_gone(project):
    (project / "results/deep/own/1").rename(project / "elsewhere")
    (project / "results/deep/own/1").symlink_to(project / "elsewhere")
    shutil.rmtree(project / "elsewhere")

    move_leftovers_of(project)

    assert not (project / "results/deep").exists()
    assert (project / "work/removed/results/deep/own/1").is_symlink()


def test_a_folder_is_moved_over_a_file_that_was_moved_earlier(project):
    write_file(project / "work/removed/results/deep/own/1")

    move_leftovers_of(project)

    assert (project / "work/removed/results/deep/own/1/scores.json").exists()


def test_an_empty_folder_of_results_is_removed(project):
    (project / "results/gone/own/1/hypotheses").mkdir(parents=True)

    move_leftovers_of(project)

    assert not (project / "results/gone").exists()
    assert not (project / "work/removed/results/gone").exists()


def test_a_note_names_the_folders_that_were_moved(project, capsys):
    (project / "results/gone/own/1/hypotheses").mkdir(parents=True)  # Empty: not worth a note.

    move_leftovers_of(project)

    (note,) = capsys.readouterr().err.splitlines()
    text_before, _, names = note.partition("moved to work/removed: ")
    assert text_before
    assert names.split(", ")[:4] == [
        "results/deep/own/1",
        "results/online-a/own/1",
        "results/tiny/own/2",
        "results/outside",
    ]


def test_the_note_is_repeated_when_leftovers_are_moved_again(project, capsys):
    move_leftovers_of(project)
    first_note = capsys.readouterr().err
    for name in LEFTOVERS:
        write_file(project / name)

    move_leftovers_of(project)

    assert capsys.readouterr().err == first_note


@pytest.mark.parametrize("folder", ["data/ledgers", "data/statistics", "data/tests"])
def test_folders_of_version_1_0_that_have_another_name_now_are_moved(project, folder):
    write_file(project / folder / "own/a.json")

    move_leftovers_of(project)

    assert not (project / folder).exists()
    assert (project / "work/removed" / folder / "own/a.json").read_text() == "12345"


def test_leftovers_are_moved_to_another_disk_if_work_is_a_link_to_it(project):
    """Files cannot be renamed from one disk to another. /dev/shm is another file system."""
    with TemporaryDirectory(dir="/dev/shm") as disk:
        assert Path(disk).stat().st_dev != project.stat().st_dev
        shutil.move(project / "work", disk)
        (project / "work").symlink_to(Path(disk, "work"))

        move_leftovers_of(project)

        moved_file = project / "work/removed/results/deep/own/1/scores.json"
        assert moved_file.read_text() == "12345"
        assert not (project / "results/deep").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("shared/vocabulary.de", id="of another corpus"),
        pytest.param("codes.de", id="of an earlier version"),
    ],
)
def test_unnamed_vocabularies_are_moved_out_of_the_folder_that_binarize_reads(project, name):
    """The vocabulary of the corpus itself is in data/bpe/own/own."""
    folder = project / "data/bpe/own"
    write_file(folder / "own/vocabulary.de")
    write_file(folder / name)

    move_leftovers_of(project)

    assert (folder / "own/vocabulary.de").exists()
    assert not (folder / name).exists()
    assert (project / "work/removed/data/bpe/own" / name).exists()


def test_a_shared_vocabulary_that_params_yaml_names_stays(project):
    sections = f"{micro.SECOND_CORPUS}vocabularies: {{own: other}}\nsystems:\n"
    params = micro.PARAMS.replace("systems:\n", sections)
    (project / "params.yaml").write_text(params)
    shared_vocabulary = project / "data/bpe/own/shared/vocabulary.de"
    write_file(shared_vocabulary)

    move_leftovers_of(project)

    assert shared_vocabulary.exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("synthetic-gone", id="its name today"),
        pytest.param("made.gone", id="its name in version 1.0"),
    ],
)
def test_an_unnamed_synthetic_text_is_moved_out_of_the_folder_that_clean_reads(project, name):
    """The folder data/raw/CORPUS has the user's texts in `given`, and others by name."""
    given_text = project / "data/raw/own/given/a"
    synthetic_text = project / "data/raw/own" / name / "a"
    write_file(given_text)
    write_file(synthetic_text)

    move_leftovers_of(project)

    assert given_text.exists()
    assert not synthetic_text.parent.exists()
    assert (project / "work/removed/data/raw/own" / name / "a").exists()


def test_models_of_an_unnamed_seed_are_moved_out_of_the_folder_that_parents_reads(project):
    """The stage parents reads the models of tiny, with whose weights the system mine starts."""
    fine_tuned = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{fine_tuned}")
    write_file(project / "models/tiny/own/2/averaged/model")

    move_leftovers_of(project)

    assert (project / "models/tiny/own/1/averaged/model").exists()
    assert not (project / "models/tiny/own/2/averaged/model").exists()
    assert (project / "work/removed/models/tiny/own/2/averaged/model").exists()
    # No stage reads the folder of an unnamed system.
    assert (project / "models/deep/own/1").exists()


def test_results_of_an_external_system_stay_while_params_yaml_names_it(tmp_path):
    """Its name, 2024, is a number in YAML."""
    external_system = micro.EXTERNAL.replace("online-a", "'2024'")
    (tmp_path / "params.yaml").write_text(f"{micro.PARAMS}{external_system}")
    named_scores = tmp_path / "results/2024/own/1/scores.json"
    unnamed_scores = tmp_path / "results/gone/own/1/scores.json"
    write_file(named_scores)
    write_file(unnamed_scores)

    move_leftovers_of(tmp_path)

    assert named_scores.exists()
    assert not unnamed_scores.exists()


def test_an_unnamed_start_is_moved_out_of_the_folder_that_train_reads(project):
    """System tiny started from the weights of another one; now it starts from random weights.

    The file `model` beside the weights was written by an earlier version.
    """
    start_folder = project / "data/starts/tiny/1"
    for name in ("fresh.json", "weights/model", "model"):
        write_file(start_folder / name)

    move_leftovers_of(project)

    assert [path.name for path in start_folder.iterdir()] == ["fresh.json"]
    assert (project / "work/removed/data/starts/tiny/1/weights/model").exists()


def test_the_weights_with_which_a_fine_tuned_system_starts_stay(project):
    fine_tuned = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{fine_tuned}")
    weights = project / "data/starts/mine/1/weights/model"
    write_file(weights)

    move_leftovers_of(project)

    assert weights.exists()
