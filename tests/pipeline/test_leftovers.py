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


def test_leftovers_are_searched_in_all_folders_that_the_report_reads():
    """REPORT_FOLDERS_BY_CORPUS lists the folders in data/ that have a folder for each corpus.

    If the report read another folder, it would show results of runs that params.yaml has removed.
    """
    report_stage = load_yaml(ROOT / "dvc.yaml")["stages"]["report"]
    read_folders = {path for path in report_stage["deps"] if path.startswith(("data/", "results"))}

    assert read_folders == {"results", *REPORT_FOLDERS_BY_CORPUS}


def test_only_files_of_removed_runs_that_the_report_would_read_are_moved(project):
    """LEFTOVERS are such files, for example results/deep/own/1/scores.json of a removed system.

    UNREAD are files of removed runs in folders that no stage reads, such as models/deep. NAMED are
    files of the systems and corpora in params.yaml.
    """
    move_leftovers_of(project)

    moved_files = {f"work/removed/{name}" for name in LEFTOVERS}
    assert file_names(project) == moved_files | set(UNREAD) | set(NAMED)


def test_leftovers_replace_the_leftovers_of_the_same_run_that_were_moved_before(project):
    """The same runs were removed from params.yaml, named again, and removed once more.

    LEFTOVERS are files of these runs; UNREAD and NAMED are files that must stay.
    """
    move_leftovers_of(project)
    for name in LEFTOVERS:
        write_file(project / name)

    move_leftovers_of(project)

    moved_files = {f"work/removed/{name}" for name in LEFTOVERS}
    assert file_names(project) == moved_files | set(UNREAD) | set(NAMED)


def test_moving_a_folder_of_version_1_0_keeps_the_run_that_was_moved_into_it_before(project):
    """results/outside/own/1 is a run of a removed system called outside, and is moved first.

    Version 1.0 wrote other results into the same folder, here online-a. The rest of the folder is
    moved afterwards, to the same place in work/removed.
    """
    write_file(project / "results/outside/own/1/scores.json")

    move_leftovers_of(project)

    moved_folder = project / "work/removed/results/outside/own"
    assert (moved_folder / "1/scores.json").exists()
    assert (moved_folder / "online-a/scores.json").exists()


def test_a_broken_link_among_leftovers_is_moved(project):
    """The results of the removed system deep were a link to a folder that was deleted."""
    (project / "results/deep/own/1").rename(project / "elsewhere")
    (project / "results/deep/own/1").symlink_to(project / "elsewhere")
    shutil.rmtree(project / "elsewhere")

    move_leftovers_of(project)

    assert not (project / "results/deep").exists()
    assert (project / "work/removed/results/deep/own/1").is_symlink()


def test_a_moved_folder_replaces_a_file_that_was_moved_before(project):
    """results/deep/own/1 is a folder of a removed run; work/removed has a file of this name."""
    write_file(project / "work/removed/results/deep/own/1")

    move_leftovers_of(project)

    assert (project / "work/removed/results/deep/own/1/scores.json").exists()


def test_an_empty_folder_of_a_removed_system_is_deleted_instead_of_moved(project):
    """DVC leaves empty folders behind; system `gone` is not in params.yaml."""
    (project / "results/gone/own/1/hypotheses").mkdir(parents=True)

    move_leftovers_of(project)

    assert not (project / "results/gone").exists()
    assert not (project / "work/removed/results/gone").exists()


def test_a_note_names_the_folders_that_were_moved(project, capsys):
    """params.yaml has the systems tiny and wide with seed 1.

    The note starts with the results of other systems and seeds. It omits results/gone, which
    contains no file.
    """
    (project / "results/gone/own/1/hypotheses").mkdir(parents=True)

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
    """LEFTOVERS are files of removed runs; here they appear again after they were moved."""
    move_leftovers_of(project)
    first_note = capsys.readouterr().err
    for name in LEFTOVERS:
        write_file(project / name)

    move_leftovers_of(project)

    assert capsys.readouterr().err == first_note


@pytest.mark.parametrize("folder", ["data/ledgers", "data/statistics", "data/tests"])
def test_data_folders_with_their_names_of_version_1_0_are_moved(project, folder):
    """These folders have other names now, so their files are of earlier runs."""
    write_file(project / folder / "own/a.json")

    move_leftovers_of(project)

    assert not (project / folder).exists()
    assert (project / "work/removed" / folder / "own/a.json").read_text() == "12345"


def test_leftovers_are_moved_to_another_disk_if_work_is_a_link_to_it(project):
    """A file cannot be renamed from one disk to another, so it has to be copied and deleted.

    Here the other disk is /dev/shm, a file system in memory.
    """
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
    """The stage binarize reads all files in data/bpe/own.

    The corpus own uses its own vocabulary, data/bpe/own/own; params.yaml names no shared one.
    """
    folder = project / "data/bpe/own"
    write_file(folder / "own/vocabulary.de")
    write_file(folder / name)

    move_leftovers_of(project)

    assert (folder / "own/vocabulary.de").exists()
    assert not (folder / name).exists()
    assert (project / "work/removed/data/bpe/own" / name).exists()


def test_a_shared_vocabulary_that_params_yaml_names_stays(project):
    """The corpus own uses the vocabulary of the corpus other: `vocabularies: {own: other}`."""
    new_sections = f"{micro.SECOND_CORPUS}vocabularies: {{own: other}}\nsystems:\n"
    (project / "params.yaml").write_text(micro.PARAMS.replace("systems:\n", new_sections))
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
    """data/raw/own/given contains the user's texts; each synthetic text has a folder beside it.

    This params.yaml defines no synthetic text, so the corpus must not be trained on one.
    """
    given_text = project / "data/raw/own/given/a"
    synthetic_text = project / "data/raw/own" / name / "a"
    write_file(given_text)
    write_file(synthetic_text)

    move_leftovers_of(project)

    assert given_text.exists()
    assert not synthetic_text.parent.exists()
    assert (project / "work/removed/data/raw/own" / name / "a").exists()


def test_text_that_was_cleaned_by_an_earlier_version_is_moved_out_of_the_folder_of_dedup(project):
    """In 1.0.0 the text was in data/clean/own itself. Now the stages of parts write there, too."""
    present_text = project / "data/clean/own/together/train.en"
    earlier_text = project / "data/clean/own/train.en"
    write_file(present_text)
    write_file(earlier_text)

    move_leftovers_of(project)

    assert present_text.exists()
    assert not earlier_text.exists()
    assert (project / "work/removed/data/clean/own/train.en").exists()


def test_models_of_an_unnamed_seed_are_moved_out_of_the_folder_that_parents_reads(project):
    """System mine starts from the weights of tiny; the stage parents reads the models of tiny.

    The only seed in params.yaml is 1, so the model of seed 2 is of an earlier run.
    """
    fine_tuned = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{fine_tuned}")
    write_file(project / "models/tiny/own/2/averaged/model")

    move_leftovers_of(project)

    assert (project / "models/tiny/own/1/averaged/model").exists()
    assert not (project / "models/tiny/own/2/averaged/model").exists()
    assert (project / "work/removed/models/tiny/own/2/averaged/model").exists()
    # No stage reads the folder of an unnamed system.
    assert (project / "models/deep/own/1").exists()


def test_results_of_an_external_system_whose_name_is_a_number_stay(tmp_path):
    """params.yaml names the external system '2024', which is a number in YAML without quotes.

    The system gone is not in params.yaml.
    """
    external_system = micro.EXTERNAL.replace("online-a", "'2024'")
    (tmp_path / "params.yaml").write_text(f"{micro.PARAMS}{external_system}")
    named_scores = tmp_path / "results/2024/own/1/scores.json"
    unnamed_scores = tmp_path / "results/gone/own/1/scores.json"
    write_file(named_scores)
    write_file(unnamed_scores)

    move_leftovers_of(tmp_path)

    assert named_scores.exists()
    assert not unnamed_scores.exists()


def test_initial_weights_that_a_system_no_longer_uses_are_moved_away(project):
    """System tiny started from another system's weights before; now it starts at random.

    The stage train reads the folder data/starts/tiny/1. Only fresh.json may stay, which describes
    the random weights. An earlier version wrote the file `model` beside it.
    """
    start_folder = project / "data/starts/tiny/1"
    for name in ("fresh.json", "weights/model", "model"):
        write_file(start_folder / name)

    move_leftovers_of(project)

    assert [path.name for path in start_folder.iterdir()] == ["fresh.json"]
    assert (project / "work/removed/data/starts/tiny/1/weights/model").exists()


def test_the_initial_weights_of_a_fine_tuned_system_stay(project):
    """The system mine starts from the weights of tiny, as init_from in params.yaml says."""
    fine_tuned = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{fine_tuned}")
    weights = project / "data/starts/mine/1/weights/model"
    write_file(weights)

    move_leftovers_of(project)

    assert weights.exists()
