"""What changes while a stage runs is not recorded as what it has computed with."""

import shutil

import pytest

from bleuprint.pipeline.dvc_yaml import entry_running
from bleuprint.pipeline.edit_check import edit_check
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json
from root import ROOT

MODULE = "src/bleuprint/training/averaging.py"
DVC_YAML = """\
stages:
  # a comment
  average:
    matrix: {system: "${systems}", corpus: "${corpora}", seed: "${seeds}"}
    cmd: env PYTHONPATH=src python stages/average.py ${item.system} ${item.corpus} ${item.seed}
    deps: [models]
    params:
      - lr
      - mine.yaml: [x]
      - reports/resolved.json:
          - code.average
          - "runs.${item.system}.${item.corpus}.average"
          - "custom.${item.part}.x"
    meta: {memory_gb: 16}
metrics: []
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project with the stage average, its code, and the resolved settings of one run."""
    (tmp_path / "dvc.yaml").write_text(DVC_YAML)
    for name in (MODULE, "stages/average.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    run = {"average": {"last": 1}, "decode": {"beam": 2}}
    content = {
        "runs": {"micro": {"toy": run}},
        "custom": {"a": 1},
        "code": {"average": code_fingerprint("average"), "train": "x"},
    }
    write_json(tmp_path / "reports/resolved.json", content)
    return tmp_path


def begin_average():
    """Begin the stage average of system micro on corpus toy with seed 1.

    Returns:
        The function that the stage calls at its end. It raises UserError if settings or code were
        edited since.
    """
    return edit_check(entry_running("average.py"), "average.py", ["micro", "toy", "1"])


def edit(path, old, new):
    """Replace a text in a file once."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("dvc.yaml", "comment", "other comment", id="comment in dvc.yaml"),
        pytest.param(
            "reports/resolved.json", '"beam": 2', '"beam": 1', id="setting of another stage"
        ),
        pytest.param(MODULE, '"""', '"""Another docstring. ', id="docstring"),
        pytest.param(MODULE, "\n\n\n", "\n\n\n# a comment\n", id="comment in code"),
    ],
)
def test_a_stage_ends_without_error_if_an_edit_meanwhile_does_not_concern_it(
    project, file, old, new
):
    """The stage `average` begins; then the user edits a file; then the stage ends.

    Another setting or comment cannot have changed its result.
    """
    check_for_edits_at_the_end = begin_average()

    edit(project / file, old, new)

    check_for_edits_at_the_end()  # An edit that concerns the stage would raise UserError.


def test_a_stage_fails_at_its_end_if_its_setting_was_edited_while_it_ran(project):
    """The stage averaged 1 checkpoint, then the user edits the setting to 2.

    Without the error, DVC would record the result as computed with 2.
    """
    check_for_edits_at_the_end = begin_average()

    edit(project / "reports/resolved.json", '"last": 1', '"last": 2')

    message = r"^reports/resolved.json \(runs.micro.toy.average\) was edited while"
    with pytest.raises(UserError, match=message):
        check_for_edits_at_the_end()


def test_a_stage_fails_if_any_value_of_a_section_was_edited_whose_key_it_cannot_know(project):
    """In dvc.yaml, the stage depends on the setting `custom.${item.part}.x`.

    Its arguments are a system, a corpus and a seed: they do not give a value for item.part. So an
    edit of any value in the section `custom` counts, here of {"custom": {"a": 1}}.
    """
    check_for_edits_at_the_end = begin_average()

    edit(project / "reports/resolved.json", '"a": 1', '"a": 2')

    with pytest.raises(UserError, match=r"^reports/resolved.json \(custom\) was edited while"):
        check_for_edits_at_the_end()


def test_a_stage_fails_at_its_end_if_its_code_was_edited_while_it_ran(project):
    """DVC would record the hash of the new code, but the old code has computed the result."""
    check_for_edits_at_the_end = begin_average()

    edit(project / "src/bleuprint/training/averaging.py", "\n\n\n", "\n\n\nX = 1\n")

    with pytest.raises(UserError, match=r"^the code of stages/average.py was edited"):
        check_for_edits_at_the_end()


def test_a_stage_fails_if_its_code_was_edited_between_resolve_and_its_start(project):
    """`resolve` runs first and writes the hash of each stage's code; DVC records this hash."""
    edit(project / "src/bleuprint/training/averaging.py", "\n\n\n", "\n\n\nX = 1\n")

    check_for_edits_at_the_end = begin_average()
    with pytest.raises(UserError, match=r"^the code"):
        check_for_edits_at_the_end()


def test_the_check_for_edits_does_not_write_resolved_json(project):
    """It contains a hash of each stage's code, here "x" for `train`; only `resolve` updates it."""
    edit(project / "src/bleuprint/training/averaging.py", "\n\n\n", "\n\n\nX = 1\n")

    check_for_edits_at_the_end = begin_average()
    with pytest.raises(UserError, match=r"^the code"):
        check_for_edits_at_the_end()

    assert read_json(project / "reports/resolved.json")["code"]["train"] == "x"


def test_each_script_in_stages_belongs_to_an_entry_of_dvc_yaml_that_says_its_memory(monkeypatch):
    monkeypatch.chdir(ROOT)

    for script in (ROOT / "stages").glob("*.py"):
        assert entry_running(script.name).memory_gb > 0, script.name
