import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import processes
from bleuprint import __version__
from bleuprint.cli.main import command_parser
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import PAIRS, write_set
from params import PARAMS
from root import ROOT

COMMAND = "-m", "bleuprint"
LONG = ("sehr " * 200 + "lang", "very " * 200 + "long")


def run(root, *command, status=0):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLEUPRINT_")}
    kept.pop("DVC_ROOT", None)
    done = processes.run_text([sys.executable, *map(str, command)], root, kept)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_in_a_copy_of_the_project_the_code_of_the_copy_runs(tmp_path):
    """Whose .venv, copied as well, or shared, still has the address of the first."""
    package = tmp_path / "src" / "bleuprint"
    shutil.copytree(ROOT / "src" / "bleuprint", package, ignore=shutil.ignore_patterns("*.xz"))
    (package / "__init__.py").write_text('__version__ = "of the copy"\n')
    shutil.copy(ROOT / "Snakefile", tmp_path)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    scripts, given = Path(sys.executable).parent, {"cwd": tmp_path, "env": kept, "text": True}
    said = subprocess.check_output([scripts / "bleuprint", "--version"], **given)
    assert said == "bleuprint of the copy\n"
    (package / "config" / "experiment.py").write_text("")
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    said = subprocess.run([scripts / "snakemake", "-n"], **given, **both).stdout
    assert (
        f"cannot import name 'load_settings' from 'bleuprint.config.experiment' ({package}/" in said
    )


@pytest.fixture
def project(tmp_path):
    (tmp_path / "params.yaml").write_text(PARAMS)
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", [*PAIRS, LONG])
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("inspect", "wmt"), 1, "no corpora entry 'wmt'; there are: own"),
        (("inspect", "own", "--pairs", "0"), 2, "not a whole number from 1"),
        (("inspect", "own", "--units"), 2, "usage: bleuprint inspect [-h]"),
        (("--sytem",), 2, "bleuprint: error: unrecognized arguments: --sytem"),
        (
            ("translate", "--system", "base", "--corpus", "own"),
            1,
            "no trained model for system base",
        ),
        (("inpect", "own"), 2, "bleuprint: error: unknown command inpect: do you mean inspect?"),
        (("record",), 2, "bleuprint: error: the command record is called sync now"),
        (("zzz",), 2, "unknown command zzz; bleuprint --help lists all"),
    ],
)
def test_mistakes_are_one_line(project, arguments, status, message):
    error = run(project, *COMMAND, *arguments, status=status)
    assert message in error and "Traceback" not in error


@pytest.mark.parametrize("arguments", [("translate",), ("serve",), ("export", "folder")])
def test_a_training_without_its_average_is_named_with_the_next_step(project, arguments):
    (project / "models" / "base" / "own" / "1" / "checkpoints").mkdir(parents=True)
    error = run(project, *COMMAND, *arguments, "--system", "base", "--corpus", "own", status=1)
    assert error == (
        "bleuprint: error: models/base/own/1/averaged: the checkpoints of system base, corpus own, "
        "seed 1 are not averaged. Average them: make reproduce. Or download the average: dvc pull\n"
    )


def test_alone_it_prints_its_help_and_its_version(tmp_path):
    """Version and license are those of CITATION.cff, too."""
    error = run(tmp_path, *COMMAND, status=2)
    assert error.startswith("usage: bleuprint") and "translate" in error
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert run(tmp_path, *COMMAND, "--version") == f"bleuprint {__version__}\n"
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    assert (citation["version"], citation["license"]) == (__version__, project["license"])
    ours = (ROOT / "src/bleuprint/report/methods.bib").read_text("utf-8")
    assert f"{{Software, version {__version__}}}" in ours
    assert "Apache License, Version 2.0" in (ROOT / "LICENSE").read_text()


def test_inspect_shows_what_rules_drop_before_anything_is_run(project):
    shown = run(project, *COMMAND, "inspect", "own")
    assert "  length: 1 dropped, 14.29%\n" in shown
    assert "   -  sehr sehr" in shown
    assert {path.name for path in project.iterdir()} == {"params.yaml", "inputs", "work"}
    few = run(project, *COMMAND, "inspect", "own", "--pairs", "3")
    assert few.startswith("3 of 7 pairs, drawn by seed 1;")
    assert "\nclean: 3 pairs in, 3 out\n" in few


def test_check_names_the_experiment_or_the_line_that_is_wrong(project):
    assert run(project, *COMMAND, "check") == "trial: params.yaml is valid\n"
    edited = PARAMS.replace("d_ff:", "d_fff:").replace("heads: 2", "heads: two")
    (project / "params.yaml").write_text(edited)
    lines = run(project, *COMMAND, "check", status=1).splitlines()
    place = re.compile(r"bleuprint: error: params\.yaml:\d+: systems\.base\.")
    assert len(lines) == 2 and all(map(place.match, lines))
    start = "      max_updates: 10\n      init_from: {folder: nope}\n"
    (project / "params.yaml").write_text(PARAMS.replace("      max_updates: 10\n", start))
    error = run(project, *COMMAND, "check", status=1)
    line = PARAMS[: PARAMS.index("      max_updates: 10\n")].count("\n") + 2
    place = f"params.yaml:{line}: systems.base.train.init_from.folder: "
    assert error.startswith(f"bleuprint: error: {place}")
    assert error.endswith("/nope does not exist, but init_from of base names it\n")


def run_here(project, monkeypatch, *arguments):
    """The command in this process, in the folder of the project."""
    monkeypatch.chdir(project)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    parser, _ = command_parser()
    given = parser.parse_args(arguments)
    given.command(given)


def test_check_asks_spacy_for_the_languages_of_a_corpus(project, monkeypatch):
    text = PARAMS.replace("name: moses", "name: spacy").replace('target: "no"', 'target: "vi"')
    (project / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^params\.yaml: corpora\.own\.tokenize: .* Pyvi not"):
        run_here(project, monkeypatch, "check")


def test_inspect_of_a_text_of_which_nothing_is_left_ends_with_the_reason(
    project, monkeypatch, capsys
):
    """What the rules drop is printed first, as for any other text."""
    monkeypatch.setenv("BLEUPRINT_WORKERS", "1")
    write_set(TextFolder(project / "inputs", "de", "no"), "a", [LONG, LONG])
    with pytest.raises(UserError) as raised:
        run_here(project, monkeypatch, "inspect", "own")
    assert str(raised.value) == (
        "corpus own: nothing left of train after filter: 1 pair in, 0 out; dropped by length 1"
    )
    assert "  length: 1 dropped, 100.00%\n" in capsys.readouterr().out


def test_cite_prints_the_entries_of_what_is_used(project, monkeypatch, capsys):
    run_here(project, monkeypatch, "cite")
    cited = capsys.readouterr().out
    assert "@misc{own,}\n" in cited
    assert "@inproceedings{post-2018-call," in cited


def test_check_refuses_what_cite_would(project):
    number = "{name: A, source: x, corpus: own, test: held-out, bleu: 3, metric: intl,"
    number += ' bibtex: "@misc{own, title = {Another}}"}'
    (project / "params.yaml").write_text(PARAMS.replace("published: []", f"published: [{number}]"))
    error = run(project, *COMMAND, "check", status=1)
    assert "published.0.bibtex: the key own names another entry in corpora.own" in error


def test_a_reader_that_closes_the_pipe_sees_no_error(project):
    (project / "params.yaml").write_text(
        PARAMS.replace("@misc{own,}", "@misc{own, a={" + "x" * 10**6 + "}}")
    )
    done = subprocess.run(
        f"{sys.executable} -m bleuprint cite | head -c 20",
        shell=True,
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.stderr == "" and len(done.stdout) == 20


def test_a_closed_standard_output_is_no_error_but_of_a_translation(project):
    def closed(*arguments):
        command = [sys.executable, *COMMAND, *arguments]
        return subprocess.run(
            ["sh", "-c", 'exec "$@" >&-', "sh", *command],
            cwd=project,
            capture_output=True,
            text=True,
        )

    done = closed("check")
    assert (done.returncode, done.stderr) == (0, "")
    done = closed("translate", "--system", "base", "--corpus", "own")
    assert (done.returncode, done.stderr) == (1, "bleuprint: error: standard output is closed\n")


def test_elsewhere_than_at_the_root_that_is_the_error(project):
    for command in (["table"], ["check"], ["plan"], ["sync"], ["verify", "HEAD"]):
        error = run(project / "inputs", *COMMAND, *command, status=1)
        assert error == "bleuprint: error: params.yaml: no such file; run from the project's root\n"
    assert not (project / "inputs" / "work").exists()


def test_a_missing_file_is_the_error_before_torch_is_loaded(project):
    (project / "torch.py").write_text("raise SystemExit('torch')")
    training = "--system", "base", "--corpus", "own"
    error = run(project, *COMMAND, "translate", *training, "nosuch.txt", status=1)
    assert error == "bleuprint: error: nosuch.txt: no such file\n"


@pytest.mark.parametrize(
    ("command", "lowest"), [("serve --system=micro --corpus=toy", 0), ("ui", 1)]
)
def test_ports_are_whole_numbers_of_16_bits(command, lowest, capsys):
    parser, _ = command_parser()
    for port in (lowest, 65535):
        assert parser.parse_args([*command.split(), f"--port={port}"]).port == port
    for port in ("65536", str(lowest - 1), "http"):
        with pytest.raises(SystemExit) as exit_info:
            parser.parse_args([*command.split(), f"--port={port}"])
        assert exit_info.value.code == 2
        said = f"'{port}' is not a whole number from {lowest} to 65535"
        assert said in capsys.readouterr().err
