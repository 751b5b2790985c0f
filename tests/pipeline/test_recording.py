"""Marks of finished stages: when they are valid, and how the stages are recorded in DVC."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import micro
from bleuprint.pipeline import graph, recording
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.runtime.errors import UserError


@dataclass(frozen=True)
class FinishedStages:
    """A project in which Snakemake has finished two stages, which have marks.

    The stage clean reads data/raw/own and writes data/clean/own/together. The stage dedup, which
    comes next, reads data/clean/own and writes data/dedup/own. All files were written where the
    clock was an hour ahead.

    Attributes:
        root: The project's folder.
        clean: The stage clean@own.
        dedup: The stage dedup@own.
        inputs: The input files of all stages, by name.
    """

    root: Path
    clean: graph.Stage
    dedup: graph.Stage
    inputs: dict[str, list[str]]

    def stages_with_valid_mark(self):
        """Return the names of those of the two stages whose marks are valid."""
        lock = LockFile.read(self.root)
        names = []
        for stage in (self.clean, self.dedup):
            if recording._is_finished(stage, self.inputs[stage.name], lock, self.root):
                names.append(stage.name)
        return names

    def invalidate_mark(self, stage):
        """Replace the mark of a stage by one of a killed run, which fits no state of its inputs."""
        (self.root / stage.mark).write_text("of a killed run")


@pytest.fixture
def finished(project, tmp_path, stages):
    """Return a project with two finished stages."""
    root = project.copy(tmp_path / "project").root
    clean = stages["clean@own"]
    dedup = stages["dedup@own"]
    an_hour_later = time.time() + 3600
    for output in (*stages["download@own"].outputs, *clean.outputs, *dedup.outputs):
        is_file = bool(Path(output).suffix)
        file = root / output if is_file else root / output / "train" / "a.en"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("two\nlines\n")
        for path in (file, root / output):
            os.utime(path, (an_hour_later, an_hour_later))
    inputs = graph.input_paths(stages.values(), root)
    for stage in (clean, dedup):
        recording.mark_started(stage.name, stage.digest, *inputs[stage.name], root=root)
        (root / f"{stage.mark}.begun").rename(root / stage.mark)
    return FinishedStages(root, clean, dedup, inputs)


def test_marks_are_valid_while_nothing_changes(finished):
    assert finished.stages_with_valid_mark() == ["clean@own", "dedup@own"]


@pytest.mark.parametrize("seconds", [-7200, 7200])
@pytest.mark.parametrize(
    ("file", "still_valid"),
    [
        pytest.param("data/raw/own/given/train/a.en", ["dedup@own"], id="an input of clean"),
        pytest.param("data/clean/own/together/train/a.en", ["clean@own"], id="an input of dedup"),
        pytest.param(
            "data/dedup/own/train/a.en", ["clean@own", "dedup@own"], id="an output of dedup"
        ),
    ],
)
def test_another_modification_time_of_an_input_invalidates_the_mark_of_its_stage(
    finished, file, still_valid, seconds
):
    """A mark is a file that says: this stage has finished with its inputs in this state.

    The stages clean and dedup of the corpus own have marks. A time two hours earlier counts, too: a
    user may restore a file from a backup.
    """
    path = finished.root / file
    new_time = path.stat().st_mtime + seconds

    os.utime(path, (new_time, new_time))

    assert finished.stages_with_valid_mark() == still_valid


def test_a_new_file_in_an_input_folder_invalidates_the_mark_of_its_stage(finished):
    """The stage dedup reads the folder data/clean/own."""
    (finished.root / "data/clean/own/together/train/a.de").touch()

    assert finished.stages_with_valid_mark() == ["clean@own"]


def test_a_mark_is_valid_again_after_the_new_file_in_the_input_folder_is_deleted(finished):
    """A mark is a file that says: this stage has finished with its inputs in this state.

    The stages clean and dedup have marks. The stage dedup reads the folder data/clean/own.
    """
    new_file = finished.root / "data/clean/own/together/train/a.de"
    new_file.touch()

    new_file.unlink()

    assert finished.stages_with_valid_mark() == ["clean@own", "dedup@own"]


def test_another_size_of_an_input_invalidates_the_mark_although_its_time_is_the_same(finished):
    """A mark is a file that says: this stage has finished with its inputs in this state.

    The stages clean and dedup have marks. The stage dedup reads the folder data/clean/own.
    """
    file = finished.root / "data/clean/own/together/train/a.en"
    old_times = file.stat()

    file.write_text("another two\nlines\n")
    os.utime(file, ns=(old_times.st_atime_ns, old_times.st_mtime_ns))

    assert finished.stages_with_valid_mark() == ["clean@own"]


def test_deleting_an_input_invalidates_the_mark_of_its_stage(finished):
    """The stage dedup reads the folder data/clean/own."""
    (finished.root / "data/clean/own/together/train/a.en").unlink()

    assert finished.stages_with_valid_mark() == ["clean@own"]


def test_the_time_stamp_that_snakemake_writes_into_a_folder_does_not_count(finished):
    (finished.root / "data/clean/own/together/.snakemake_timestamp").touch()

    assert finished.stages_with_valid_mark() == ["clean@own", "dedup@own"]


def test_a_missing_output_invalidates_the_mark_of_its_stage(finished):
    (finished.root / "data/filter_stats/own/clean.json").unlink()

    assert finished.stages_with_valid_mark() == ["dedup@own"]


def test_other_settings_invalidate_the_mark_of_a_stage(finished):
    clean_with_other_settings = replace(finished.clean, parameters={})
    project_with_other_settings = replace(finished, clean=clean_with_other_settings)

    assert project_with_other_settings.stages_with_valid_mark() == ["dedup@own"]


def test_a_mark_of_a_stage_that_began_with_another_command_is_invalid(finished):
    """A mark is a file that says that a stage has finished; it contains a digest of the command.

    Here the mark of clean gets the digest of the stage dedup.
    """
    mark = finished.root / finished.clean.mark

    mark.write_text(mark.read_text().replace(finished.clean.digest, finished.dedup.digest))

    assert finished.stages_with_valid_mark() == ["dedup@own"]


@pytest.mark.parametrize(
    ("recorded_stage", "still_valid"),
    [
        pytest.param("clean@own", ["dedup@own"], id="the same stage"),
        pytest.param(
            "clean@owner", ["clean@own", "dedup@own"], id="a stage whose name starts with clean@own"
        ),
    ],
)
def test_a_later_run_of_a_stage_by_dvc_invalidates_the_mark_of_the_stage(
    finished, recorded_stage, still_valid
):
    """Snakemake has finished clean@own and dedup@own, and written a file, the mark, for each.

    Then `dvc repro` runs a stage, perhaps with other settings, and records it in dvc.lock.
    """
    entry = f"  {recorded_stage}:\n    cmd: a\n    outs:\n    - path: b\n"
    (finished.root / "dvc.lock").write_text(f"schema: '2.0'\nstages:\n{entry}")

    assert finished.stages_with_valid_mark() == still_valid


def test_no_note_is_printed_if_all_marks_are_valid(finished, capsys):
    recording.record_finished(finished.root)

    assert "not recorded" not in capsys.readouterr().err


def test_an_invalid_mark_of_a_stage_in_dvc_lock_is_ignored_without_a_note(finished, capsys):
    """The stage is recorded in DVC and up to date, so a killed later run of it does not matter."""
    recording.record_finished(finished.root)
    finished.invalidate_mark(finished.clean)

    recording.record_finished(finished.root)

    assert "not recorded" not in capsys.readouterr().err


def test_a_note_names_the_finished_stages_whose_inputs_were_edited_while_they_ran(finished, capsys):
    """Such a stage has computed its outputs from the old inputs, so it has to run again."""
    recording.record_finished(finished.root)
    # An output of clean and input of dedup.
    (finished.root / "data/clean/own/together/train/a.en").write_text("another\n")
    finished.invalidate_mark(finished.clean)
    finished.invalidate_mark(finished.dedup)

    recording.record_finished(finished.root)

    note = (
        "did not record these stages, since an input changed after they started: clean@own, "
        "dedup@own. "
    )
    assert note in capsys.readouterr().err


def test_an_error_of_dvc_is_one_line_that_says_how_to_try_again(finished):
    """DVC cannot store the outputs of finished stages: its cache is a file instead of a folder."""
    (finished.root / ".dvc" / "cache").write_text("a file in place of the folder")

    message = r"^DVC did not record .*cache.*\. To try again: bleuprint sync"
    with pytest.raises(UserError, match=message):
        recording.record_finished(finished.root)

    assert not (finished.root / "dvc.lock").exists()


def test_stages_are_recorded_once_the_cause_of_an_error_is_removed(finished, capsys):
    """Snakemake has finished two stages. DVC's cache is first a file instead of a folder."""
    cache = finished.root / ".dvc" / "cache"
    cache.write_text("a file in place of the folder")
    with pytest.raises(UserError):
        recording.record_finished(finished.root)
    cache.unlink()

    recording.record_finished(finished.root)

    number_of_stages = len(graph.load_stages(finished.root))
    message = f"recorded in DVC: 2 of {number_of_stages} stages\n"
    assert capsys.readouterr().err.endswith(message)
    assert micro.Project(finished.root).recorded_stages() == {"clean@own", "dedup@own"}


def test_a_second_call_has_no_stages_left_to_record(finished, capsys):
    """Recording again would compute the hashes of all outputs, which takes minutes."""
    recording.record_finished(finished.root)
    capsys.readouterr()  # Discards the messages of the first call.

    recording.record_finished(finished.root)

    assert "recorded in DVC: 0 of" in capsys.readouterr().err
