"""Commands that print data print the same bytes, UTF-8, in every locale."""

import os
import subprocess
import sys

import pytest

from bleuprint.runtime.reexec import VARIABLES
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, write_set
from params import PARAMS
from root import ROOT

# In one process, whose streams are prepared by the first of them: root, command.
COMMANDS = [
    ("texts", "cite"),
    ("texts", "check"),
    ("texts", "inspect own"),
    ("texts", "inspect grün"),
    (str(ROOT), "cite"),
]
PROGRAM = """
import os, sys
from bleuprint.cli.main import main
home = os.getcwd()
for number in range(1, len(sys.argv), 2):
    os.chdir(os.path.join(home, sys.argv[number]))
    command = sys.argv[number + 1].split()
    program, sys.argv = sys.argv, ["bleuprint", *command]
    try:
        main()
    except SystemExit as end:
        print("#", number, end.code, flush=True)
    sys.argv = program
"""


@pytest.fixture(scope="module")
def folder_with_project(tmp_path_factory):
    """Return a folder with a project, `texts`, whose text and license contain other scripts."""
    base = tmp_path_factory.mktemp("locales")
    texts = base / "texts"
    long = ("größer " * 200, "større " * 200)
    write_set(TextFolder(texts / "inputs", "de", "no"), "a", [*PAIRS, long])
    bibtex = '"@misc{own, author={Müller, 日本}, title={x}, year={2020}}"'
    params = PARAMS.replace('"@misc{own,}"', bibtex).replace("license: none", "license: für alle")
    (texts / "params.yaml").write_text(params, encoding="utf-8")
    return base


def run_commands(folder, **variables):
    """Run COMMANDS in one process below a folder.

    Args:
        folder: The folder that the paths in COMMANDS are relative to.
        variables: The environment variables that define the locale.

    Returns:
        Standard output and standard error, as bytes.
    """
    environment = {**os.environ, **VARIABLES, "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src")}
    for name in ("LANG", "LC_ALL"):
        environment.pop(name, None)
    arguments = []
    for root, command in COMMANDS:
        arguments += [root, command]
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout, process.stderr


def test_commands_print_text_in_other_scripts_in_a_utf8_locale(folder_with_project):
    """Text and license of the project contain ü, ß, ø and 日. The commands are numbered 1, 3, 5...

    `inspect grün` fails, since there is no corpus of this name; the other commands succeed.
    """
    stdout, stderr = run_commands(folder_with_project, LC_ALL="C.UTF-8")

    output = stdout.decode()
    for number, (_, command) in enumerate(COMMANDS):
        expected_status = 1 if command == "inspect grün" else 0
        assert f"# {2 * number + 1} {expected_status}\n" in output, (command, stderr)
    for character in "üößø日":
        assert character in output
    assert "no corpora entry 'grün'" in stderr.decode()


@pytest.mark.parametrize(
    "locale",
    [
        pytest.param(
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="without UTF-8"
        ),
        pytest.param(
            {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
            id="Python prints ASCII",
        ),
    ],
)
def test_commands_print_the_same_bytes_in_every_locale(folder_with_project, locale):
    """Python would fail to print ü in such a locale, or print it in another encoding."""
    expected_stdout, _ = run_commands(folder_with_project, LC_ALL="C.UTF-8")

    stdout, stderr = run_commands(folder_with_project, **locale)

    assert stdout == expected_stdout
    assert b"Traceback" not in stderr
    assert b"no corpora entry" in stderr  # the message about `inspect grün`
