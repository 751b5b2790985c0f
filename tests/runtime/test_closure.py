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


def test_a_training_depends_on_the_modules_and_data_that_it_imports(project):
    """train.py imports model/net.py; net.py imports text inside a function; text imports rules.

    A package that is imported counts with its data (table.csv), C++ sources and user rules.
    """
    assert SourceTree(project).closure("train") == {
        "model/net.py",
        "model/table.csv",
        "text/__init__.py",
        "text/words.py",
        "text/words.cpp",
        "rules/__init__.py",
        "rules/one.py",
        "rules/users.py",
    }


def test_the_report_depends_on_its_templates_and_not_on_the_command_line(project):
    """page.py imports tracking/store.py and cli/main.py; the latter cannot change a report."""
    assert SourceTree(project).closure("report") == {
        "report/page.py",
        "report/templates/page.html",
        "tracking/store.py",
    }


def test_only_the_download_stage_depends_on_the_text_of_the_phrasebook():
    """The phrasebook is a corpus in the package; `download` writes its text as files."""
    phrasebook = "corpus/phrasebook/phrasebook.tar.xz"
    code = SourceTree(ROOT)

    assert phrasebook in code.closure("download")
    assert phrasebook not in code.closure("clean")
    assert phrasebook not in code.closure("train")


@pytest.mark.parametrize(
    ("file", "new_text", "changed_stages"),
    [
        pytest.param(
            "model/net.py", NET.replace("\n", "\n    '''Doc.'''\n", 1), set(), id="docstring"
        ),
        pytest.param("text/words.py", "MORE = 1", {"train"}, id="module imported by train"),
        pytest.param("model/table.csv", "2", {"train"}, id="data of train"),
        pytest.param("text/words.cpp", "// a comment\nint n = 1;", set(), id="comment in C++"),
        pytest.param("text/words.cpp", "int n = 2;", {"train"}, id="C++ code"),
        pytest.param("rules/new.py", "NEW = 1", {"train"}, id="new rule"),
        pytest.param("model/alone.py", "MORE = 1", set(), id="module that no stage imports"),
        pytest.param("runtime/files.py", "MORE = 1", set(), id="runtime"),
        pytest.param("tracking/store.py", "MORE = 1", {"report"}, id="module of the report"),
        pytest.param("report/templates/page.html", "<p>", {"report"}, id="template"),
        pytest.param("cli/main.py", "MORE = 1", set(), id="command line"),
    ],
)
def test_an_edit_changes_the_fingerprints_of_the_stages_it_affects(
    project, file, new_text, changed_stages
):
    """DVC runs a stage again if its fingerprint has changed; a comment must not cost a training."""
    before = code_fingerprints(project)

    (project / "src/bleuprint" / file).write_text(new_text)

    after = code_fingerprints(project)
    assert before.keys() == {"train", "report"}
    assert {stage for stage in before if before[stage] != after[stage]} == changed_stages


@pytest.mark.parametrize("name", [".net.py.swp", "net.py~", "net.py.orig", "#net.py#.rej"])
def test_backup_files_of_editors_do_not_change_fingerprints(project, name):
    """Editors write them beside the module net.py; only the module itself counts."""
    before = code_fingerprints(project)

    (project / "src/bleuprint/model" / name).write_text("x")

    assert code_fingerprints(project) == before


def test_the_lock_of_an_editor_does_not_change_fingerprints(project):
    """Emacs marks a file that is being edited by a link that leads nowhere."""
    before = code_fingerprints(project)

    (project / "stages/.#train.py").symlink_to("me@host.1")

    assert code_fingerprints(project) == before


def test_a_training_of_this_project_depends_on_six_packages():
    """An import of another package would make all trainings stale at each edit of that package."""
    files = SourceTree(ROOT).closure("train")

    assert {"model/transformer.py", "training/trainer.py", "dataset/batching.py"} <= files
    packages = {path.partition("/")[0] for path in files}
    assert packages == {"dataset", "model", "native", "scoring", "text", "training"}


def test_every_stage_but_resolve_has_a_fingerprint():
    """`resolve` runs each time, so it needs none."""
    stages = {path.stem for path in (ROOT / "stages").glob("*.py")}

    assert code_fingerprints(ROOT).keys() == stages - {"resolve"}


def test_a_copy_of_the_project_has_the_same_fingerprints(tmp_path):
    """Results of one machine are valid on another, whatever the path of the project is."""
    for folder in ("src", "stages"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)

    assert code_fingerprints(tmp_path) == code_fingerprints(ROOT)


def paths_of(name, value):
    """Return the paths that a constant of the module closure contains.

    Args:
        name: The name of an attribute of the module; only constants have capital letters.
        value: The value of the attribute: the name of a script, a path, or several paths.

    Returns:
        The paths below the project's root; an empty list for an attribute that is not a constant.
    """
    if not name.isupper() or name.startswith("_"):
        return []
    if name.endswith("_SCRIPT"):
        return [ROOT / "stages" / f"{value}.py"]
    paths = [value] if isinstance(value, str) else value
    return [ROOT / "src" / "bleuprint" / path for path in paths]


def test_every_path_in_the_constants_of_the_module_exists():
    """A path of a file that was renamed would silently drop the file from all fingerprints."""
    paths = []
    for name, value in vars(closure).items():
        paths += paths_of(name, value)

    # Two constants, to make sure that paths_of finds them.
    assert ROOT / "src/bleuprint/serving/translator.py" in paths
    assert ROOT / "stages/report.py" in paths
    assert [path for path in paths if not path.exists()] == []
