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
# one without UTF-8, and one in which Python prints ASCII
LOCALES = (
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
)


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """The folder of one with a corpus whose texts and licence are not ASCII."""
    base = tmp_path_factory.mktemp("locales")
    texts = base / "texts"
    long = ("größer " * 200, "større " * 200)
    write_set(TextFolder(texts / "inputs", "de", "no"), "a", [*PAIRS, long])
    bibtex = '"@misc{own, author={Müller, 日本}, title={x}, year={2020}}"'
    params = PARAMS.replace('"@misc{own,}"', bibtex).replace("license: none", "license: für alle")
    (texts / "params.yaml").write_text(params, encoding="utf-8")
    return base


def outputs(roots, **locale):
    kept = {name: text for name, text in os.environ.items() if name not in ("LANG", "LC_ALL")}
    variables = {**kept, **VARIABLES, "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src"), **locale}
    arguments = [text for pair in COMMANDS for text in pair]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, cwd=roots, env=variables, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_data_are_the_same_in_every_locale(roots):
    expected, stderr = outputs(roots, LC_ALL="C.UTF-8")
    for number, (_, command) in enumerate(COMMANDS):
        status = 1 if "grün" in command else 0
        assert f"# {2 * number + 1} {status}\n" in expected.decode(), (command, stderr)
    assert {*"üößø日"} <= {*expected.decode()}
    assert "no corpora entry 'grün'" in stderr.decode()
    for locale in LOCALES:
        stdout, stderr = outputs(roots, **locale)
        assert stdout == expected
        assert b"Traceback" not in stderr and b"no corpora entry" in stderr
