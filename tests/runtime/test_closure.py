"""The code of each stage: which files it has, and which edits change its fingerprint."""

import shutil

import pytest

from bleuprint.runtime import closure
from bleuprint.runtime.closure import SourceTree, code_fingerprints
from root import ROOT

FROM = "from bleuprint"
NET = f"def f():\n    {FROM}.text import words, rules_of\n"


@pytest.fixture
def project(tmp_path):
    """A script, what it imports in several ways, and modules that it does not import."""
    files = {
        "stages/train.py": f"{FROM}.model.net import Net\n{FROM}.runtime import files",
        "stages/report.py": "from bleuprint.report import page",
        "model/__init__.py": "",
        "model/net.py": NET,
        "model/table.csv": "1",
        "model/alone.py": "",
        "text/__init__.py": "from bleuprint.rules.one import One",
        "text/words.py": "",
        "text/words.cpp": "int n = 1;  // one",
        "rules/__init__.py": "",
        "rules/one.py": "",
        "rules/users.py": "",
        "runtime/files.py": "from bleuprint.tracking import store",
        "tracking/store.py": "",
        "report/__init__.py": "",
        "report/page.py": f"{FROM}.tracking.store import open\n{FROM}.cli import main",
        "report/templates/page.html": "",
        "cli/main.py": "",
    }
    for name, text in files.items():
        path = tmp_path / (name if name.startswith("stages/") else f"src/bleuprint/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_a_script_imports_directly_and_through_others(project):
    rules = {f"rules/{name}.py" for name in ("__init__", "one", "users")}
    of_text = {"text/__init__.py", "text/words.py", "text/words.cpp"}
    assert SourceTree(project).closure("train") == {
        "model/net.py",
        "model/table.csv",
        *of_text,
        *rules,
    }
    # the report is decided by all packages but the command line
    of_report = {"report/page.py", "report/templates/page.html", "tracking/store.py"}
    assert SourceTree(project).closure("report") == of_report


def test_the_text_of_the_phrasebook_decides_what_download_writes():
    closures = {name: SourceTree(ROOT).closure(name) for name in ("download", "clean", "train")}
    text = "corpus/phrasebook/phrasebook.tar.xz"
    assert [name for name, files in closures.items() if text in files] == ["download"]


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("model/net.py", NET.replace("\n", "\n    '''Doc.'''\n", 1), ""),
        ("text/words.py", "MORE = 1", "train"),
        ("model/table.csv", "2", "train"),
        ("text/words.cpp", "// a comment\nint n = 1;", ""),
        ("text/words.cpp", "int n = 2;", "train"),
        ("rules/new.py", "NEW = 1", "train"),
        ("model/alone.py", "MORE = 1", ""),
        ("runtime/files.py", "MORE = 1", ""),
        ("tracking/store.py", "MORE = 1", "report"),
        ("report/templates/page.html", "<p>", "report"),
        ("cli/main.py", "MORE = 1", ""),
    ],
)
def test_an_edit_changes_the_fingerprint_of_what_it_decides(project, file, text, changes):
    before = code_fingerprints(project)
    left = (".net.py.swp", "net.py~", "net.py.orig", "#net.py#.rej")
    for name in left:
        (project / "src/bleuprint/model" / name).write_text("x")
    (project / "stages/.#train.py").symlink_to("me@host.1")  # Emacs' lock
    assert code_fingerprints(project) == before
    (project / "src/bleuprint" / file).write_text(text)
    after = code_fingerprints(project)
    assert "".join(name for name in before if before[name] != after[name]) == changes


def test_the_real_training_is_decided_by_its_own_packages(tmp_path):
    code = SourceTree(ROOT)
    train = code.closure("train")
    assert {"model/transformer.py", "training/trainer.py", "dataset/batching.py"} <= train
    packages = {path.partition("/")[0] for path in train}
    assert packages == {"dataset", "model", "native", "scoring", "text", "training"}
    scripts = {path.stem for path in (ROOT / "stages").glob("*.py")}
    assert code_fingerprints(ROOT).keys() == scripts - {"resolve"}
    # elsewhere, the same
    for name in ("src", "stages"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    assert code_fingerprints(tmp_path) == code_fingerprints(ROOT)


def paths_of(name, value):
    """The paths that a constant of the module closure names; none of other values."""
    if not name.isupper() or name.startswith("_"):
        return []
    if name.endswith("_SCRIPT"):
        return [ROOT / "stages" / f"{value}.py"]
    paths = [value] if isinstance(value, str) else value
    return [ROOT / "src" / "bleuprint" / path for path in paths]


def test_every_path_that_the_closure_names_exists():
    paths = []
    for name, value in vars(closure).items():
        paths += paths_of(name, value)
    assert ROOT / "src/bleuprint/serving/translator.py" in paths
    assert ROOT / "stages/report.py" in paths
    assert [path for path in paths if not path.exists()] == []
