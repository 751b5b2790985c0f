"""Own code in the folder own/: which edits change its fingerprint, and how it is imported."""

import json

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import (
    defined_names,
    edited_modules,
    import_own,
    own_errors,
    own_fingerprint,
    pinned_name,
)
from own_code import write_module

MODULE = """\
import torch
from own.helpers import size

def double(x):
    return 2 * x
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Return a project with own/relative.py, which imports own/helpers.py, and own/other.py."""
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, "relative", MODULE)
    write_module(tmp_path, "helpers", "from . import deeper\n\nsize = 3\n")
    write_module(tmp_path, "deeper", "depth = 1\n")
    write_module(tmp_path, "other", "x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("edited", "text"),
    [
        pytest.param("relative", MODULE.replace("2 * x", "3 * x"), id="the module"),
        pytest.param("helpers", "from . import deeper\n\nsize = 4\n", id="a module it imports"),
        pytest.param("deeper", "depth = 2\n", id="a module that this one imports"),
        pytest.param("__init__", "import own.other\n", id="a new __init__.py"),
    ],
)
def test_an_edit_of_code_that_a_module_uses_changes_its_fingerprint(project, edited, text):
    before = own_fingerprint("own.relative", project)

    write_module(project, edited, text)

    assert own_fingerprint("own.relative", project) != before


@pytest.mark.parametrize(
    ("edited", "text"),
    [
        pytest.param("relative", f'"""Doubles."""\n\n# torch\n{MODULE}', id="comments"),
        pytest.param("other", "x = 2\n", id="a module it does not import"),
        pytest.param("new", "y = 1\n", id="a new module"),
    ],
)
def test_other_edits_do_not_change_the_fingerprint_of_a_module(project, edited, text):
    before = own_fingerprint("own.relative", project)

    write_module(project, edited, text)

    assert own_fingerprint("own.relative", project) == before


@pytest.mark.parametrize(
    "statement",
    [
        "import own.other",
        "import own.other as name",
        "from own import other",
        "from own.other import x",
        "from . import other",
        "from .other import x",
        "def later():\n    from own.other import x",
    ],
)
def test_every_form_of_import_counts(project, statement):
    write_module(project, "relative", statement + "\n")
    before = own_fingerprint("own.relative", project)

    write_module(project, "other", "x = 2\n")

    assert own_fingerprint("own.relative", project) != before


def test_the_data_files_of_a_module_that_is_a_folder_count(project):
    write_module(project, "stop/__init__", "WORDS = open('own/stop/words.txt').read()\n")
    words = project / "own" / "stop" / "words.txt"
    words.write_text("the\n")
    before = own_fingerprint("own.stop", project)

    words.write_text("a\n")

    assert own_fingerprint("own.stop", project) != before


def test_a_folder_counts_if_a_file_has_the_same_name(project):
    """Python imports own/relative/__init__.py, and not own/relative.py."""
    write_module(project, "relative/__init__", "size = 4\n")
    before = own_fingerprint("own.relative", project)

    write_module(project, "relative/__init__", "size = 5\n")

    assert own_fingerprint("own.relative", project) != before
    assert import_own("own.relative").size == 5


@pytest.mark.parametrize("statement", ["from own.base import *", "from .base import *"])
def test_a_module_defines_the_names_that_it_imports_with_a_star(project, statement):
    """The modules import each other."""
    write_module(project, "relative", f"{statement}\ny: int = 1\n")
    write_module(project, "base", "from own.relative import *\nclass Positions: ...\n")

    assert defined_names("own.relative", project) == {"*", "Positions", "y"}


def test_modules_that_import_each_other_have_a_fingerprint(project):
    write_module(project, "helpers", "import own.relative\n\nsize = 3\n")

    assert len(own_fingerprint("own.relative", project)) == 64


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param({"own.a@NEW": {"max": 1}, "layer": "own.b@OLD"}, ["own.a"], id="a key"),
        pytest.param({"own.a@OLD": {"max": 1}, "layer": "own.b@NEW"}, ["own.b"], id="a value"),
        pytest.param(
            {"own.a@NEW": {"max": 1}, "layer": "own.b@NEW"}, ["own.b", "own.a"], id="both"
        ),
        pytest.param({"own.a@OLD": {"max": 1}, "layer": "own.b@OLD"}, [], id="nothing"),
        pytest.param({"own.a@NEW": {"max": 2}, "layer": "own.b@OLD"}, [], id="a setting, too"),
        pytest.param({"own.a@OLD": {"max": 1}, "layer": "own.c@NEW"}, [], id="another module"),
    ],
)
def test_edited_modules_are_named_if_nothing_but_their_code_differs(after, expected):
    before = {"own.a@OLD": {"max": 1}, "layer": "own.b@OLD"}

    found = edited_modules(with_digits(before), with_digits(after))

    assert found == expected


def with_digits(settings):
    """Return settings with fingerprints in place of OLD and NEW."""
    text = json.dumps(settings).replace("OLD", "0" * 16).replace("NEW", "1" * 16)
    return json.loads(text)


def test_an_imported_module_can_import_others_of_the_folder():
    assert import_own("own.relative").size == 3
    assert import_own("own.helpers").deeper.depth == 1


def test_an_edit_is_imported_even_if_the_file_keeps_its_size_and_time(project):
    """Python's own cache of compiled code would not notice this edit within the same second."""
    assert import_own("own.relative").double(1) == 2

    write_module(project, "relative", MODULE.replace("2 * x", "3 * x"))

    assert import_own("own.relative").double(1) == 3
    assert not (project / "own" / "__pycache__").exists()


def test_each_project_imports_its_own_code(tmp_path_factory, monkeypatch):
    import_own("own.relative")
    other_root = tmp_path_factory.mktemp("project")
    write_module(other_root, "relative", "size = 9\n")
    monkeypatch.chdir(other_root)

    assert import_own("own.relative").size == 9


def test_two_imports_of_an_unchanged_module_return_the_same_classes(project):
    write_module(project, "other", "class Rule: ...\n")

    first = import_own("own.other").Rule
    import_own("own.relative")

    assert import_own("own.other").Rule is first


def test_code_is_not_imported_if_it_has_another_fingerprint_than_its_name(project):
    pinned = pinned_name("own.relative", project)
    assert import_own(pinned).size == 3
    write_module(project, "helpers", "size = 4\n")

    with pytest.raises(UserError, match=f"own/relative.py has changed: {pinned} is expected"):
        import_own(pinned)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        pytest.param("def f(:\n", "own/broken.py:1: invalid syntax", id="syntax"),
        pytest.param("x = 1\nx.y\n", "own/broken.py:2: AttributeError: 'int' object", id="error"),
        pytest.param(
            "import own.missing\n",
            "own/broken.py:1: ModuleNotFoundError: No module named 'own.missing'",
            id="missing import",
        ),
        pytest.param("raise SystemError('no')\n", "own/broken.py:1: SystemError: no", id="raised"),
        pytest.param("x = 1\nexit(3)\n", "own/broken.py:2: SystemExit: 3", id="exit"),
        pytest.param(
            "def g():\n    1 / 0\n\n\ng()\n",
            "own/broken.py:2: ZeroDivisionError: division by zero",
            id="the innermost line of own code",
        ),
        pytest.param(
            "import json\n\njson.loads('x')\n",
            "own/broken.py:3: JSONDecodeError: Expecting value",
            id="an error in a library",
        ),
        pytest.param("x = '\0'\n", "own/broken.py", id="a null byte"),
    ],
)
def test_a_failing_import_names_file_and_line_of_own_code(project, module, message):
    write_module(project, "broken", module)

    with pytest.raises(UserError, match=f"^{message}"):
        import_own("own.broken")


def test_a_missing_module_is_named_with_a_similar_one():
    with pytest.raises(UserError, match=r"^own/relativ.py: no such file; .*'own.relative'"):
        import_own("own.relativ")


def test_an_exception_that_own_code_has_not_caused_is_not_changed():
    with pytest.raises(ZeroDivisionError), own_errors():
        raise ZeroDivisionError


def test_a_lack_of_memory_in_own_code_is_not_blamed_on_it(project):
    """A training out of memory advises smaller batches; the line of the code would not help."""
    write_module(project, "other", "def f():\n    raise MemoryError\n")
    module = import_own("own.other")

    with pytest.raises(MemoryError), own_errors():
        module.f()
