"""What is edited while a stage runs is not recorded as what it has computed with."""

import os
import time

import pytest

import trainings
from bleuprint.pipeline.edit_check import EditCheck, stage_entry
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from root import ROOT

SCRIPT = "average.py"
MODULE = "src/bleuprint/training/averaging.py"
GRAPH = """\
stages:
  # a comment
  average:
    matrix: {system: "${systems}", corpus: "${corpora}", seed: "${seeds}"}
    cmd: env PYTHONPATH=src python stages/average.py ${item.system} ${item.corpus} ${item.seed}
    deps: [src/bleuprint/training/averaging.py, models]
    params:
      - "systems.${item.system}.average"
      - "made.${item.part}.x"
      - reports/overrides.json: ["${item.system}.${item.corpus}.average"]
    meta: {memory_gb: 16}
metrics: []
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose files are older than this process."""
    trainings.write_params(tmp_path)
    (tmp_path / "dvc.yaml").write_text(GRAPH)
    module = tmp_path / MODULE
    module.parent.mkdir(parents=True)
    module.write_bytes((ROOT / MODULE).read_bytes())
    write_json(tmp_path / "reports/overrides.json", {"micro": {"toy": {"average": True}}})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bleuprint.pipeline.edit_check._began", lambda: time.time() + 60)
    return tmp_path


def begun(*arguments):
    return EditCheck(stage_entry(SCRIPT), SCRIPT, [*(arguments or ("micro", "toy", "1"))])


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.usefixtures("project")
def test_nothing_edited_is_nothing_refused():
    check = begun()
    check()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("params.yaml", "average:", "average: # the last\n "),
        ("params.yaml", "beam: ", "beam: 1"),  # of decode, which this stage does not read
        (MODULE, '"""', '"""Another docstring. '),
        (MODULE, "\n\n\n", "\n\n\n# a comment\n"),
    ],
)
def test_comments_and_what_the_stage_does_not_use_may_be_edited(project, path, old, new):
    check = begun()
    edit(project / path, old, new)
    check()


def test_an_edited_setting_is_refused(project):
    check = begun()
    edit(project / "params.yaml", "average:\n      last: 1", "average:\n      last: 2")
    with pytest.raises(UserError, match=r"^params.yaml \(systems.micro.average\) was edited while"):
        check()


def test_settings_on_one_corpus_that_the_stage_before_has_not_seen_are_refused(project):
    check = begun()
    params = project / "params.yaml"
    edit(
        params,
        "    average:\n",
        "    corpora: {toy: {average: {last: 2, ensemble: false}}}\n    average:\n",
    )
    with pytest.raises(UserError, match=r"params.yaml \(micro.toy.average\) was edited"):
        check()


def test_what_the_arguments_do_not_tell_counts_as_a_whole(project):
    params = project / "params.yaml"
    params.write_text(f"{params.read_text()}made: {{a: 1}}\n")
    check = begun()
    edit(params, "made: {a: 1}", "made: {a: 2}")
    with pytest.raises(UserError, match="was edited"):
        check()


@pytest.mark.parametrize("text", ["systems: [", "", None])
def test_settings_that_cannot_be_read_any_more_are_edited(project, text):
    check = begun()
    (project / "params.yaml").unlink()
    if text is not None:
        (project / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"params.yaml was edited while this ran: run dvc repro"):
        check()


@pytest.mark.parametrize("how", ["edited", "removed"])
def test_edited_code_is_refused(project, how):
    check = begun()
    if how == "removed":
        (project / MODULE).unlink()
    else:
        edit(project / MODULE, "\n\n\n", "\n\n\nX = 1\n")
    with pytest.raises(UserError, match=rf"^{MODULE} was edited while this ran"):
        check()


def test_code_that_was_edited_while_python_imported_it_is_refused(project, monkeypatch):
    monkeypatch.undo()
    os.chdir(project)  # its files are younger than this process
    with pytest.raises(UserError, match=rf"^{MODULE} was edited while this ran"):
        begun()()


def test_each_stage_of_the_graph_is_found_by_its_script(monkeypatch):
    monkeypatch.chdir(ROOT)
    for script in (ROOT / "stages").glob("*.py"):
        assert stage_entry(script.name)["meta"]["memory_gb"] > 0
