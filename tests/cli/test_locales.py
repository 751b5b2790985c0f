"""Commands that print data print the same bytes, UTF-8, in every locale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.cells import settings_sha256
from bleuprint.config.paths import Cell
from bleuprint.runtime.reexec import VARIABLES
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, write_set
from params import PARAMS
from result_rows import TWO_SYSTEMS, frame
from root import ROOT

# In one process, whose streams are prepared by the first of them: root, command.
COMMANDS = [
    ("results", "table"),
    ("results", "table --format markdown"),
    ("results", "table --format csv"),
    ("results", "table --format latex"),
    ("results", "numbers"),
    ("results", "cite"),
    ("texts", "cite"),
    ("texts", "check"),
    ("texts", "inspect own"),
    ("texts", "show grün"),
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
LOCALES = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii": {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"},
    "latin-1": {"LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"},
}


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with results, and with a corpus whose texts and licence are not ASCII."""
    base = tmp_path_factory.mktemp("locales")
    settings = trees.settings_in(base / "results")
    (base / "results" / "reports").mkdir(parents=True, exist_ok=True)
    rows = []
    for row in TWO_SYSTEMS:
        cell = Cell(*(row["facts"][name] for name in Cell._fields))
        facts = row["facts"] | {"settings_sha256": settings_sha256(settings, cell)}
        rows.append({**row, "facts": facts})
    frame(*rows).save(base / "results" / "reports" / "results.json")
    texts = base / "texts"
    long = ("größer " * 200, "større " * 200)
    write_set(TextFolder(texts / "inputs", "de", "no"), "a", [*PAIRS, long])
    bibtex = '"@misc{own, author={Müller, 日本}, title={x}, year={2020}}"'
    params = PARAMS.replace('"@misc{own,}"', bibtex).replace("license: none", "license: für alle")
    (texts / "params.yaml").write_text(params, encoding="utf-8")
    return base


def outputs(roots: Path, **locale: str) -> tuple[bytes, bytes]:
    kept = {name: text for name, text in os.environ.items() if name not in ("LANG", "LC_ALL")}
    variables = {**kept, **VARIABLES, "COLUMNS": "200", "PYTHONPATH": str(ROOT / "src"), **locale}
    arguments = [text for pair in COMMANDS for text in pair]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, cwd=roots, env=variables, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def expected(roots: Path) -> bytes:
    stdout, stderr = outputs(roots, LC_ALL="C.UTF-8")
    for number, (_, command) in enumerate(COMMANDS):
        status = 1 if "grün" in command else 0
        assert f"# {2 * number + 1} {status}\n" in stdout.decode(), (command, stderr)
    assert {*"üößø日‡─"} <= {*stdout.decode()}
    assert "no corpora entry 'grün'" in stderr.decode()
    return stdout


@pytest.mark.parametrize("name", LOCALES)
def test_data_are_the_same_in_every_locale(
    roots: Path, expected: bytes, tmp_path: Path, name: str
) -> None:
    locale = LOCALES[name]
    if name == "latin-1":
        if not shutil.which("localedef"):
            pytest.skip("needs localedef and the sources of locales")
        place = tmp_path / locale["LC_ALL"]
        made = subprocess.run(["localedef", "-i", "en_US", "-f", "ISO-8859-1", place])
        if made.returncode:
            pytest.skip("needs the sources of locales")
        locale = {**locale, "LOCPATH": str(tmp_path)}
    stdout, stderr = outputs(roots, **locale)
    assert stdout == expected
    assert b"Traceback" not in stderr and b"no corpora entry" in stderr
