"""What changes while a stage runs is not recorded as what it has computed with."""

import shutil

import pytest

from bleuprint.pipeline.dvc_yaml import entry_running
from bleuprint.pipeline.edit_check import edit_check
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from root import ROOT

SCRIPT = "average.py"
MODULE = "src/bleuprint/training/averaging.py"
GRAPH = """\
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
          - "made.${item.part}.x"
    meta: {memory_gb: 16}
metrics: []
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "dvc.yaml").write_text(GRAPH)
    for name in (MODULE, f"stages/{SCRIPT}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    run = {"average": {"last": 1}, "decode": {"beam": 2}}
    code = {"average": code_fingerprint("average"), "train": "x"}
    content = {"runs": {"micro": {"toy": run}}, "made": {"a": 1}, "code": code}
    write_json(tmp_path / "reports/resolved.json", content)
    return tmp_path


def begun():
    return edit_check(entry_running(SCRIPT), SCRIPT, ["micro", "toy", "1"])


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("dvc.yaml", "comment", "other comment"),
        ("reports/resolved.json", '"beam": 2', '"beam": 1'),  # which this stage does not read
        (MODULE, '"""', '"""Another docstring. '),
        (MODULE, "\n\n\n", "\n\n\n# a comment\n"),
    ],
)
def test_comments_and_what_the_stage_does_not_use_may_be_edited(project, path, old, new):
    check = begun()
    edit(project / path, old, new)
    check()


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"last": 1', '"last": 2', "runs.micro.toy.average"),
        ('"a": 1', '"a": 2', "made"),  # which the arguments do not tell counts as a whole
    ],
)
def test_another_value_for_dvc_is_refused(project, old, new, key):
    check = begun()
    edit(project / "reports/resolved.json", old, new)
    with pytest.raises(UserError, match=rf"^reports/resolved.json \({key}\) was edited while"):
        check()


def test_edited_code_is_refused_though_resolve_has_not_seen_it(project):
    check = begun()
    edit(project / MODULE, "\n\n\n", "\n\n\nX = 1\n")
    with pytest.raises(UserError, match=r"^the code of stages/average.py was edited"):
        check()
    with pytest.raises(UserError, match=r"^the code"):  # before it began, too
        begun()()
    assert read_json(project / "reports/resolved.json")["code"]["train"] == "x"


def test_each_stage_of_the_graph_is_found_by_its_script(monkeypatch):
    monkeypatch.chdir(ROOT)
    for script in (ROOT / "stages").glob("*.py"):
        assert entry_running(script.name).memory_gb > 0
