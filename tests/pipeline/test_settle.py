"""Edits of code that compute the same run nothing; all others run what they decide."""

import re
import shutil

from bleuprint.pipeline.settle import _md5, _on_disk, lines, settle

TRAINING = {"train@tiny-own-1", "train@wide-own-1"}
MODEL = "src/bleuprint/model/transformer.py"


def append(project, path, text):
    project.write(path, project.read(path) + text)


def test_a_comment_in_the_model_trains_nothing(reproduced):
    text = reproduced.read(MODEL)
    assert text.startswith('"""')
    code = text[text.index("\nimport") :]
    reproduced.write(MODEL, f'"""Another docstring."""\n# a comment\n{code}')
    assert reproduced.changed() >= TRAINING
    printed = reproduced.run("bleuprint", "settle")
    assert re.search(r"bleuprint/model: comments, docstrings or formatting: \d stages up", printed)
    assert reproduced.changed() == set()
    assert reproduced.repro() == []
    assert reproduced.run("bleuprint", "settle") == ""


def test_a_changed_constant_trains_all_and_a_comment_in_its_folder_does_not_hide_it(reproduced):
    append(reproduced, MODEL, "\n# a comment\n")
    append(reproduced, "src/bleuprint/model/linear.py", "\n_NEW = 1\n")
    printed = reproduced.run("bleuprint", "settle")
    assert re.search(r"bleuprint/model: linear.py has changed: \d stages will run", printed)
    assert reproduced.changed() >= TRAINING


def test_new_and_removed_files_are_not_settled(reproduced):
    reproduced.write("src/bleuprint/model/extra.py", "")
    (reproduced.root / "src/bleuprint/dataset/batch.py").unlink()
    printed = reproduced.run("bleuprint", "settle")
    assert "src/bleuprint/model: extra.py is new" in printed
    assert "src/bleuprint/dataset: batch.py is gone" in printed


def test_a_comment_in_params_yaml_runs_nothing(reproduced):
    append(reproduced, "params.yaml", "# a comment\n")
    assert reproduced.changed() == {"overrides", "report"}
    reproduced.run("bleuprint", "settle")
    assert reproduced.changed() == set()


def test_a_version_that_is_in_no_commit_is_left_to_run(reproduced):
    """The stages ran with code that was never committed: nothing to compare with."""
    shutil.rmtree(reproduced.root / ".git")
    reproduced.run("git", "init", "--quiet")
    append(reproduced, MODEL, "\n# a comment\n")
    (code, *_) = [code for code in settle(reproduced.root) if code.path.endswith("/model")]
    assert code.reasons == ("has changed since a version that git does not have",)
    assert "will run: train@tiny-own-1" in next(lines([code]))


def test_a_repository_of_another_user_is_named(reproduced):
    reproduced.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    output = reproduced.run("bleuprint", "settle", status=1)
    assert "detected dubious ownership in repository" in output
    assert "safe.directory" in output and output.count("\n") == 1


def test_hashes_are_those_of_dvc(by_dvc):
    from dvc.utils.serialize import load_yaml

    lock = load_yaml(str(by_dvc.root / "dvc.lock"))
    for entry in lock["stages"]["train@tiny-own-1"]["deps"]:
        if entry["path"].startswith(("src/", "stages/")):
            files = _on_disk(entry["path"], by_dvc.root)
            assert _md5(files) == entry["md5"], entry["path"]
            assert sum(map(len, files.values())) == entry["size"]


def test_what_an_edit_retrains(reproduced):
    modules = (
        "tracking/tracker",
        "report/report",
        "serving/server",
        "cli/main",
        "runtime/progress",
    )
    for module in modules:
        append(reproduced, f"src/bleuprint/{module}.py", "\n_EDITED = True\n")
    assert not TRAINING & reproduced.changed()
    # of the model, see above
    append(reproduced, "src/bleuprint/training/trainer.py", "\n_EDITED = True\n")
    assert reproduced.changed() >= TRAINING


def test_changed_settings_are_left_to_the_plan(reproduced):
    reproduced.edit("params.yaml", "num_merges: 40,", "num_merges: 41,")
    printed = reproduced.run("bleuprint", "settle")
    assert printed == (
        "params.yaml: settings have changed: bleuprint plan lists the stages that will run\n"
    )
