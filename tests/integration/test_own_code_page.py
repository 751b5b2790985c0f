"""docs/own_code.md, "Change the model: a first assignment", followed in a small project."""

import json
import re
from types import SimpleNamespace

import pytest

from contributing import code_blocks
from own_code import own_code_example, write_module
from own_metrics import exact_match_example
from root import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "own_code.md").read_text("utf-8")
(ROW_COMMANDS,) = [block for block in code_blocks(PAGE, "bash") if "tiny-relative:" in block]
(EDIT_COMMANDS,) = [block for block in code_blocks(PAGE, "bash") if "sed -i" in block]
(METRIC_COMMANDS,) = [block for block in code_blocks(PAGE, "bash") if "metrics: [" in block]
MESSAGES = re.findall("^bleuprint: error: .*$", PAGE, re.MULTILINE)
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

    assert "CTranslate2 does not support model.positions own.relative." in output


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

    assert output == f"{MESSAGES[0]}\n"


def micro_row():
    """Return the row of the page, as lines of params.yaml, with four heads."""
    return "  tiny-relative: {like: tiny, model: {positions: own.relative, heads: 4}}\n"


# The commands of the section about metrics, without the last one, which runs DVC.
NAME_METRIC = METRIC_COMMANDS.replace("make reproduce\n", "")


@pytest.fixture(scope="module")
def measured(by_dvc, tmp_path_factory):
    """Return a project in which the section about metrics was followed.

    Attributes of the result: `project`; `check`, what `bleuprint check` printed; `first` and
    `second`, the stages that DVC ran with the metric and after an edit of its code.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("measured") / "project")
    write_module(project.root, "exact_match", exact_match_example())
    check = project.run("bash", "-ec", NAME_METRIC)
    first = project.repro()
    results = project.read("reports/results.json")
    table = project.read("reports/table.md")
    # Most of the translations of such small models differ from their references.
    project.edit("own/exact_match.py", "translation == reference", "translation != reference")
    second = project.repro()
    return SimpleNamespace(
        project=project, check=check, first=first, second=second, results=results, table=table
    )


def exact_matches(results):
    """Return the rows of exact match over all lines in the text of a results.json, by system."""
    rows = {}
    for row in json.loads(results)["metrics"]:
        if row["metric"] == "own.exact_match" and row["group"] == "":
            rows[row["system"]] = row
    return rows


def kinds(stages):
    """Return the kinds of stages, such as `score`."""
    return {stage.partition("@")[0] for stage in stages}


def test_a_metric_is_checked_and_then_only_scored_and_reported(measured):
    assert "params.yaml is valid" in measured.check
    assert kinds(measured.first) == {"resolve", "score", "report"}
    assert stages_of(measured.first, "score") == ["score@tiny-own-1", "score@wide-own-1"]


def test_the_edit_of_a_metric_only_scores_and_reports_again(measured):
    assert kinds(measured.second) == {"resolve", "score", "report"}
    assert measured.project.changed_stages() == set()


@pytest.mark.parametrize("system", ["tiny", "wide"])
def test_exact_match_has_the_value_that_its_definition_says(measured, system):
    project = measured.project
    translations = project.read(f"results/{system}/own/1/hypotheses/test.held-out.de").splitlines()
    references = project.read("data/split/own/test.held-out.de").splitlines()
    equal_count = 0
    for translation, reference in zip(translations, references, strict=True):
        if translation == reference:
            equal_count += 1
    percentage = 100 * equal_count / len(references)

    before = exact_matches(measured.results)[system]
    after = exact_matches(project.read("reports/results.json"))[system]

    assert before["value"] == pytest.approx(percentage, abs=1e-5)
    assert after["value"] == pytest.approx(100 - percentage, abs=1e-5)
    assert before["ci_low"] <= percentage <= before["ci_high"]
    assert re.fullmatch("own.exact_match@[0-9a-f]{16}", before["signature"])
    assert before["signature"] != after["signature"]


def test_the_reports_and_the_table_on_the_screen_show_the_metric(measured):
    page = measured.project.read("reports/index.html")
    assert "Exact match" in page
    assert re.search(r"\| System +\|.* Exact match \|", measured.table)
    explanation = "The percentage of translations that equal their reference. Higher is better."
    assert f"- Exact match: {explanation}" in measured.table
    assert re.search("- Exact match: `own.exact_match@[0-9a-f]{16}`", measured.table)
    assert "Exact match" in measured.project.run("bleuprint", "table")


def test_the_comparison_of_two_systems_shows_the_metric(measured):
    assert "Exact match" in measured.project.run("bleuprint", "compare", "tiny", "wide")


def test_the_table_is_out_of_date_after_an_edit_of_the_metric(measured, tmp_path):
    project = measured.project.copy(tmp_path / "project")
    project.edit("own/exact_match.py", "translation != reference", "translation in reference")

    output = project.run("bleuprint", "table", status=1)

    assert "was computed with another params.yaml. Run: make reproduce" in output


def test_the_mistake_in_a_metric_has_the_message_of_the_page(by_dvc, tmp_path):
    """A mistake: a line has one number, and not a row of two."""
    project = by_dvc.copy(tmp_path / "project")
    module = exact_match_example().replace(
        "(int(translation == reference), 1)", "int(translation == reference)"
    )
    write_module(project.root, "exact_match", module)

    output = project.run("bash", "-ec", NAME_METRIC, status=1)

    assert output == f"{MESSAGES[1]}\n"
