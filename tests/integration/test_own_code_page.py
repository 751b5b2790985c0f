"""docs/own_code.md, "Change the model: a first assignment", followed in a small project."""

import json
import re
from types import SimpleNamespace

import pytest

from contributing import code_blocks
from own_code import own_code_example, write_module
from root import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "own_code.md").read_text("utf-8")
(ROW_COMMANDS,) = [block for block in code_blocks(PAGE, "bash") if "params.yaml <<" in block]
(EDIT_COMMANDS,) = [block for block in code_blocks(PAGE, "bash") if "sed -i" in block]
(EDIT,) = re.findall("^sed .*$", EDIT_COMMANDS, re.MULTILINE)


@pytest.fixture(scope="module")
def assignment(by_dvc, tmp_path_factory):
    """Return a project in which the page was followed.

    Attributes of the result: `project`; `check`, what `bleuprint check` printed; `first` and
    `second`, the stages that DVC ran with the new row and after the edit of its code.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("own") / "project")
    write_module(project.root, "relative", own_code_example())
    check = project.run("bash", "-ec", ROW_COMMANDS)
    first = project.repro()
    project.run("bash", "-ec", EDIT)
    second = project.repro()
    return SimpleNamespace(project=project, check=check, first=first, second=second)


def stages_of(stages, kind):
    """Return the stages of a kind, such as `train`."""
    return [stage for stage in stages if stage.startswith(f"{kind}@")]


def test_the_new_row_is_checked_and_trained_and_nothing_else(assignment):
    assert "params.yaml is valid" in assignment.check
    assert stages_of(assignment.first, "train") == ["train@tiny-relative-own-1"]
    assert not stages_of(assignment.first, "clean")


def test_the_edit_of_the_page_trains_the_row_again_and_not_the_baseline(assignment):
    assert stages_of(assignment.second, "train") == ["train@tiny-relative-own-1"]
    assert stages_of(assignment.second, "score") == ["score@tiny-relative-own-1"]


def test_all_is_up_to_date_after_the_assignment(assignment):
    assert assignment.project.changed_stages() == set()


def test_the_table_compares_the_row_with_the_baseline(assignment):
    assert assignment.project.rows() == ["tiny", "wide", "tiny-relative"]


def test_the_weights_of_the_part_were_trained(assignment):
    """They are 0 before the training, and 2 * 16 + 1 distances after the edit."""
    from safetensors.numpy import load_file

    path = "models/tiny-relative/own/1/averaged/model.safetensors"
    weights = load_file(assignment.project.root / path)

    for side in ("source", "target"):
        bias = weights[f"{side}_positions.own.bias"]
        assert bias.shape == (33, 2)
        assert abs(bias).max() > 0


def test_a_sentence_is_translated_by_the_model_with_own_code(assignment):
    output = assignment.project.run(
        "bash", "-ec", "echo 'ba fi leon' | bleuprint translate --system tiny-relative --corpus own"
    )

    assert output.strip()


def test_the_export_says_that_own_code_is_not_supported(assignment):
    output = assignment.project.run(
        "bash", "-ec", "bleuprint export --system tiny-relative --corpus own exported", status=1
    )

    assert "CTranslate2 does not support model.positions own.relative@" in output


def test_the_model_names_its_code_and_is_not_used_with_other_code(assignment, tmp_path):
    project = assignment.project.copy(tmp_path / "project")
    description = json.loads(project.read("models/tiny-relative/own/1/averaged/model.json"))
    assert re.fullmatch("own.relative@[0-9a-f]{16}", description["model"]["positions"])

    project.edit("own/relative.py", "MAX_DISTANCE = 16", "MAX_DISTANCE = 4")
    command = "echo 'ba fi' | bleuprint translate --system tiny-relative --corpus own"
    output = project.run("bash", "-ec", command, status=1)

    last_line = output.splitlines()[-1]
    assert last_line.startswith("bleuprint: error: own/relative.py has changed: own.relative@")
    assert "Traceback" not in output


def test_the_mistake_of_the_page_has_the_message_of_the_page(by_dvc, tmp_path):
    """A mistake: the heads are the columns, not the first dimension."""
    project = by_dvc.copy(tmp_path / "project")
    module = own_code_example().replace(
        "self.bias[rows].permute(2, 0, 1)", "self.bias[rows].permute(2, 0, 1)[:2]"
    )
    write_module(project.root, "relative", module)
    project.write("params.yaml", project.read("params.yaml") + micro_row())

    output = project.run("bleuprint", "check", status=1)

    (message,) = re.findall("^bleuprint: error: .*$", PAGE, re.MULTILINE)
    assert output == f"{message}\n"


def micro_row():
    """Return the row of the page, as lines of params.yaml, with four heads."""
    return "  tiny-relative: {like: tiny, model: {positions: own.relative, heads: 4}}\n"
