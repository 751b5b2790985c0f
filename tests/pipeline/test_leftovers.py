"""What params.yaml no longer names is set aside for the report."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import micro
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline.leftovers import REPORT_FOLDERS_BY_CORPUS, move_leftovers
from bleuprint.runtime.yaml_tree import load_yaml
from root import ROOT

STALE = [
    "models/deep/own/1/averaged/model",
    "results/deep/own/1/scores.json",
    "results/tiny/own/2/scores.json",
    "results/online-a/own/1/scores.json",
    "results/outside/own/online-a/scores.json",
    "data/filter_stats/other/clean.json",
    "data/raw/other/train.en",
    "work/trainings/deep.own.1.0123456789abcdef/1.safetensors",
    "work/trainings/tiny.own.1.fedcba9876543210/1.safetensors",  # of earlier settings
    f"work/downloads/{64 * 'a'}",
    "work/shards/clean/other/1-of-2/train.en",
]
NAMED = [
    "models/tiny/own/1/averaged/model",
    "results/wide/own/1/scores.json",
    "results/notes/of/mine.txt",
    "data/filter_stats/own/clean.json",
    "work/trainings/tiny.own.1.0123456789abcdef/1.safetensors",
    "work/downloads/downloads.guard",
]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "params.yaml").write_text(micro.PARAMS)
    (tmp_path / "dvc.yaml").write_bytes((micro.ROOT / "dvc.yaml").read_bytes())
    for name in (*STALE, *NAMED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12345")
    return tmp_path


def files(root):
    found = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(root)) for path in found} - {"params.yaml", "dvc.yaml"}


def test_the_folders_of_the_report_are_those_of_the_pipeline():
    deps = load_yaml(ROOT / "dvc.yaml")["stages"]["report"]["deps"]
    read_folders = {path for path in deps if path.startswith(("data/", "results"))}
    assert read_folders == {"results", *REPORT_FOLDERS_BY_CORPUS}


def test_what_the_report_would_read_is_set_aside(project, capsys):
    (project / "results/gone/own/1/hypotheses").mkdir(parents=True)
    for _ in range(2):  # the second time over what is there
        move_leftovers(load_settings(project / "params.yaml"), project)
        moved = {name for name in STALE if name.startswith(("results", "data/filter_stats"))}
        expected = {*NAMED, *STALE} - moved | {f"work/removed/{name}" for name in moved}
        assert files(project) == expected
        assert not (project / "results/gone").exists()
        (note,) = capsys.readouterr().err.splitlines()
        moved_to, _, listed = note.partition("moved to work/removed: ")
        assert moved_to
        assert listed.split(", ")[:4] == [
            "results/deep/own/1",
            "results/online-a/own/1",
            "results/tiny/own/2",
            "results/outside",
        ]
        for name in moved:
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("12345")


@pytest.mark.parametrize("folder", ["data/ledgers", "data/statistics", "data/tests"])
def test_folders_of_1_0_that_have_another_name_are_set_aside(project, folder):
    (project / folder / "own").mkdir(parents=True)
    (project / folder / "own/a.json").write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert not (project / folder).exists()
    assert (project / "work/removed" / folder / "own/a.json").read_text() == "12345"


def test_work_may_be_on_another_disk(project):
    with TemporaryDirectory(dir="/dev/shm") as disk:
        assert Path(disk).stat().st_dev != project.stat().st_dev
        shutil.move(project / "work", disk)
        (project / "work").symlink_to(Path(disk, "work"))
        move_leftovers(load_settings(project / "params.yaml"), project)
        moved = project / "work/removed/results/deep/own/1/scores.json"
        assert moved.read_text() == "12345" and not (project / "results/deep").exists()


def test_vocabularies_that_are_not_named_leave_the_folder_that_binarize_depends_on(project):
    # a file of an earlier version, and what a corpus had of another
    names = ["own/vocabulary.de", "shared/vocabulary.de", "codes.de"]
    kept, *removed = (project / "data/bpe/own" / name for name in names)
    for path in (kept, *removed):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert kept.exists() and not any(path.exists() for path in removed)
    assert all((project / "work/removed/data/bpe/own" / name).exists() for name in names[1:])
    more = f"{micro.SECOND_CORPUS}vocabularies: {{own: other}}\nsystems:\n"
    (project / "params.yaml").write_text(micro.PARAMS.replace("systems:\n", more))
    removed[0].parent.mkdir()
    removed[0].write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert removed[0].exists()


@pytest.mark.parametrize("name", ["synthetic-gone", "made.gone"], ids=["now", "in 1.0"])
def test_a_synthetic_text_that_is_not_named_leaves_the_folder_that_clean_depends_on(project, name):
    kept, removed = project / "data/raw/own/given/a", project / "data/raw/own" / name / "a"
    for path in (kept, removed):
        path.parent.mkdir(parents=True)
        path.write_text("12345")
    settings = load_settings(project / "params.yaml")
    move_leftovers(settings, project)
    assert kept.exists() and not removed.parent.exists()
    assert (project / "work/removed/data/raw/own" / name / "a").exists()


def test_seeds_that_are_not_named_leave_the_models_that_parents_depends_on(project):
    row = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{row}")
    kept, removed = (project / f"models/tiny/own/{seed}/averaged/model" for seed in (1, 2))
    removed.parent.mkdir(parents=True)
    removed.write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert kept.exists() and not removed.exists()
    assert (project / "work/removed/models/tiny/own/2/averaged/model").exists()
    assert (project / "models/deep/own/1").exists()


def test_results_of_external_systems_are_kept(tmp_path):
    external = micro.EXTERNAL.replace("online-a", "'2024'")
    (tmp_path / "params.yaml").write_text(f"{micro.PARAMS}{external}")
    kept, removed = (tmp_path / f"results/{name}/own/1/scores.json" for name in ("2024", "gone"))
    for path in (kept, removed):
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    move_leftovers(load_settings(tmp_path / "params.yaml"), tmp_path)
    assert kept.exists()
    assert not removed.exists()


def test_a_start_that_is_not_named_leaves_the_folder_that_train_depends_on(project):
    """As of a system that starts from random weights now, or of an earlier version."""
    starts = project / "data/starts/tiny/1"
    for name in ("fresh.json", "weights/model", "model"):
        (starts / name).parent.mkdir(parents=True, exist_ok=True)
        (starts / name).write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert [path.name for path in starts.iterdir()] == ["fresh.json"]
    assert (project / "work/removed/data/starts/tiny/1/weights/model").exists()


def test_the_weights_of_a_system_that_starts_from_another_stay(project):
    row = "  mine: {like: tiny}\ninit_from: {mine: {system: tiny, corpus: own}}\n"
    (project / "params.yaml").write_text(f"{micro.PARAMS}{row}")
    weights = project / "data/starts/mine/1/weights/model"
    weights.parent.mkdir(parents=True)
    weights.write_text("12345")
    move_leftovers(load_settings(project / "params.yaml"), project)
    assert weights.exists()
