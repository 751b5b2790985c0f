"""A training is stored under a hash of what decides it: runs with the same hash train once."""

import json
from importlib.metadata import version

import pytest

from params import write_resolved
from trainings import make_project, start


@pytest.fixture
def root(tmp_path):
    """Return the folder of an untrained toy project, with the system micro on the corpus toy."""
    return make_project(tmp_path)


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


def test_a_renamed_system_gets_the_outputs_of_its_training_without_training_again(root):
    """System micro is trained, then renamed to other.

    A training is stored in a folder of work/ whose name contains a hash of the settings and data.
    The hash is the same as before, so the stage only copies the outputs.
    """
    wait_for(start(root, system="micro"))
    (folder,) = training_folders(root)
    times_before = modification_times(folder)
    rename_system(root, ["other"])

    wait_for(start(root, system="other"))

    assert training_folders(root) == [folder]
    assert modification_times(folder) == times_before
    outputs = read_outputs(root, "other")
    assert outputs != {}
    assert outputs == read_outputs(root, "micro")


def test_the_duration_of_a_training_is_also_stored_for_the_new_name_of_its_system(root):
    """System micro is trained, then renamed to other, which takes the training over.

    The file in timings/ also lists the versions of the libraries, such as sacremoses.
    """
    wait_for(start(root, system="micro"))
    rename_system(root, ["other"])

    wait_for(start(root, system="other"))

    (old_file,) = root.glob("timings/micro/toy/1/train-*.json")
    (new_file,) = root.glob("timings/other/toy/1/train-*.json")
    assert new_file.name == old_file.name
    versions = json.loads(new_file.read_text())["versions"]
    assert f", sacremoses {version('sacremoses')}" in versions


def test_two_systems_with_equal_settings_that_start_together_train_once(root):
    """One process trains. The other one prints a note, waits, and copies the outputs."""
    rename_system(root, ["micro", "twin"])

    outputs = wait_for(start(root, system="micro"), start(root, system="twin"))

    waiting_note = ": another process is running this training (kill "
    assert "".join(outputs).count(waiting_note) == 1
    assert len(training_folders(root)) == 1
    twin_outputs = read_outputs(root, "twin")
    assert twin_outputs != {}
    assert twin_outputs == read_outputs(root, "micro")


def test_a_training_reads_its_settings_from_resolved_json_instead_of_params_yaml(root):
    """The stage resolve writes reports/resolved.json from params.yaml; DVC records its settings.

    The user edits max_updates in params.yaml from 50 to 40 after `resolve` has run. The training
    must do 50 updates, as DVC records.
    """
    params_file = root / "params.yaml"
    params = params_file.read_text()
    assert "max_updates: 50" in params
    params_file.write_text(params.replace("max_updates: 50", "max_updates: 40"))

    wait_for(start(root))

    training = json.loads((root / "results/micro/toy/1/training.json").read_text())
    assert training["updates"] == 50
