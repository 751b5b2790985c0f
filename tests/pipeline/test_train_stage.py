"""A training is stored under a hash of what decides it: runs with the same hash train once."""

import json
from importlib.metadata import version

import pytest

from params import write_resolved
from trainings import project, start


@pytest.fixture
def root(tmp_path):
    """Return the folder of an untrained toy project, with the system micro on the corpus toy."""
    return project(tmp_path)


def rename_system(root, names):
    """Replace the system micro in params.yaml by systems with the same settings.

    Args:
        root: The project's folder.
        names: The names of the systems.
    """
    params_file = root / "params.yaml"
    text_before, settings = params_file.read_text().split("  micro:\n")
    systems = "".join(f"  {name}:\n{settings}" for name in names)
    params_file.write_text(text_before + systems)
    write_resolved(root)


def read_outputs(root, system):
    """Return the bytes of a system's models and results, by path; measured times are elsewhere."""
    contents = {}
    for folder in (root / "models" / system, root / "results" / system):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                contents[str(path.relative_to(folder))] = path.read_bytes()
    return contents


def wait_for(*processes):
    """Wait for processes, which must succeed; return what each of them printed."""
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    for process in processes:
        assert process.returncode == 0, outputs
    return outputs


def training_folders(root):
    """Return the folders of the trainings in work/, without hidden ones."""
    return list((root / "work/trainings").glob("[!.]*"))


def modification_times(folder):
    """Return the modification times of all files and folders below a folder."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_renamed_system_takes_its_training_over_without_training_again(root):
    wait_for(start(root, system="micro"))
    (folder,) = training_folders(root)
    times = modification_times(folder)
    rename_system(root, ["other"])

    wait_for(start(root, system="other"))

    assert training_folders(root) == [folder]
    assert modification_times(folder) == times
    outputs = read_outputs(root, "other")
    assert outputs
    assert outputs == read_outputs(root, "micro")
    # The duration of the training is known under the new name, too, with the versions.
    (time_file,) = root.glob("timings/other/toy/1/train-*.json")
    assert time_file.name == next(root.glob("timings/micro/toy/1/train-*.json")).name
    versions = json.loads(time_file.read_text())["versions"]
    assert f", sacremoses {version('sacremoses')}" in versions


def test_two_systems_with_the_same_training_that_start_together_train_once(root):
    rename_system(root, ["micro", "twin"])

    outputs = wait_for(start(root, system="micro"), start(root, system="twin"))

    waiting_note = ": another process is running this training (kill "
    assert "".join(outputs).count(waiting_note) == 1
    assert len(training_folders(root)) == 1
    twin_outputs = read_outputs(root, "twin")
    assert twin_outputs
    assert twin_outputs == read_outputs(root, "micro")


def test_a_training_does_not_use_an_edit_of_params_yaml_before_the_next_resolve(root):
    """What is trained is what DVC records: the settings of reports/resolved.json."""
    params_file = root / "params.yaml"
    params = params_file.read_text()
    edited_params = params.replace("max_updates: 50", "max_updates: 40")
    assert edited_params != params
    params_file.write_text(edited_params)

    wait_for(start(root))

    training = json.loads((root / "results/micro/toy/1/training.json").read_text())
    assert training["updates"] == 50
