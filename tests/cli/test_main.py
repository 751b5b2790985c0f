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

LONG = ("sehr " * 200 + "lang", "very " * 200 + "long")


def run(root, *command, status=0):
    """Run Python in a folder, without the environment variables of bleuprint.

    Args:
        root: The folder.
        command: The arguments of Python, such as -m bleuprint check.
        status: The expected exit status.

    Returns:
        Standard output, or standard error if an error is expected.
    """
    environment = {}
    for name, value in os.environ.items():
        if not name.startswith("BLEUPRINT_") and name != "DVC_ROOT":
            environment[name] = value
    process = processes.run_text([sys.executable, *map(str, command)], root, environment)
    assert process.returncode == status, process.stderr
    return process.stdout if status == 0 else process.stderr


@pytest.fixture
def run_in_copy(tmp_path):
    """Copy the code of the project; return a function that runs a program of the .venv there.

    The .venv still refers to the code of the first project, as if it was copied or shared.
    """
    package = tmp_path / "src" / "bleuprint"
    shutil.copytree(ROOT / "src" / "bleuprint", package, ignore=shutil.ignore_patterns("*.xz"))
    shutil.copy(ROOT / "Snakefile", tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run_program(name, *arguments):
        """Run a program; return its standard output and standard error together."""
        process = subprocess.run(
            [Path(sys.executable).parent / name, *arguments],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return process.stdout

    return run_program


def test_bleuprint_in_a_copy_of_the_project_runs_the_code_of_the_copy(tmp_path, run_in_copy):
    """Else a user who edits a copy would run, without noticing, the code of the first project."""
    (tmp_path / "src/bleuprint/__init__.py").write_text('__version__ = "of the copy"\n')

    assert run_in_copy("bleuprint", "--version") == "bleuprint of the copy\n"


def test_snakemake_in_a_copy_of_the_project_runs_the_code_of_the_copy(tmp_path, run_in_copy):
    """A module of the copy is emptied, so that the Snakefile fails if it imports from the copy."""
    package = tmp_path / "src" / "bleuprint"
    (package / "config" / "experiment.py").write_text("")

    message = run_in_copy("snakemake", "-n")

    module = "bleuprint.config.experiment"
    assert f"cannot import name 'load_settings' from '{module}' ({package}/" in message


@pytest.fixture
def project(tmp_path):
    """Return a folder with the settings PARAMS and a text of seven pairs, one of them far too long.

    The corpus is `own`, the system `base`.
    """
    (tmp_path / "params.yaml").write_text(PARAMS)
    write_set(TextFolder(tmp_path / "inputs", "de", "no"), "a", [*PAIRS, LONG])
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param(
            "inspect wmt", 1, "no corpora entry 'wmt'; there are: own", id="unknown corpus"
        ),
        pytest.param("inspect own --pairs 0", 2, "not a whole number from 1", id="zero pairs"),
        pytest.param(
            "inspect own --units",
            2,
            "usage: bleuprint inspect [-h]",
            id="unknown option of a command",
        ),
        pytest.param(
            "--sytem", 2, "bleuprint: error: unrecognized arguments: --sytem", id="unknown option"
        ),
        pytest.param(
            "translate --system base --corpus own",
            1,
            "no trained model for system base",
            id="no trained model",
        ),
        pytest.param(
            "inpect own",
            2,
            "bleuprint: error: unknown command inpect. Do you mean inspect?",
            id="misspelled command",
        ),
        pytest.param(
            "record",
            2,
            "bleuprint: error: the command record is called sync now",
            id="renamed command",
        ),
        pytest.param(
            "zzz",
            2,
            "unknown command zzz. To list all commands: bleuprint --help",
            id="unknown command",
        ),
    ],
)
def test_a_mistake_in_a_command_line_is_reported_without_a_traceback(
    project, arguments, status, message
):
    """The status is 2 for a wrong command line, 1 if the project lacks what the command needs."""
    error = run(project, "-m", "bleuprint", *arguments.split(), status=status)

    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("command", ["translate", "serve", "export folder"])
def test_a_command_that_needs_averaged_weights_says_how_to_get_them(project, command):
    """The training of seed 1 has written checkpoints; the stage that averages them has not run."""
    (project / "models/base/own/1/checkpoints").mkdir(parents=True)
    arguments = f"{command} --system base --corpus own".split()

    error = run(project, "-m", "bleuprint", *arguments, status=1)

    assert error == (
        "bleuprint: error: models/base/own/1/averaged: the checkpoints of system base, corpus own, "
        "seed 1 are not averaged. Average them: make reproduce. Or download the average: dvc pull\n"
    )


def test_bleuprint_without_arguments_prints_its_help(tmp_path):
    error = run(tmp_path, "-m", "bleuprint", status=2)

    assert error.startswith("usage: bleuprint")
    assert "translate" in error


def test_the_option_version_prints_the_version(tmp_path):
    assert run(tmp_path, "-m", "bleuprint", "--version") == f"bleuprint {__version__}\n"


def test_version_and_license_are_the_same_in_all_files():
    """Version and license stand in the code, pyproject.toml, CITATION.cff, LICENSE and BibTeX."""
    citation = YAML(typ="safe").load(ROOT / "CITATION.cff")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    bibtex = (ROOT / "src/bleuprint/report/methods.bib").read_text("utf-8")

    assert citation["version"] == __version__
    assert f"{{Software, version {__version__}}}" in bibtex
    assert citation["license"] == pyproject["project"]["license"]
    assert "Apache License, Version 2.0" in (ROOT / "LICENSE").read_text()


def test_inspect_shows_what_rules_drop_before_anything_is_run(project):
    """The text has seven pairs; the rule `length` drops the one of 200 times `sehr`: 1/7 = 14.29%.

    No stage runs: besides the inputs, only the folder `work` of temporary files is written.
    """
    output = run(project, "-m", "bleuprint", "inspect", "own")

    assert "  length: 1 dropped, 14.29%\n" in output
    assert "   -  sehr sehr" in output
    assert {path.name for path in project.iterdir()} == {"params.yaml", "inputs", "work"}


def test_inspect_draws_as_many_pairs_as_the_user_asks_for(project):
    """The text has seven pairs."""
    output = run(project, "-m", "bleuprint", "inspect", "own", "--pairs", "3")

    assert output.startswith("3 of 7 pairs, sampled with seed 1.")
    assert "\nclean: 3 pairs in, 3 out\n" in output


def test_check_names_the_experiment_if_params_yaml_is_valid(project):
    assert run(project, "-m", "bleuprint", "check") == "trial: params.yaml is valid\n"


def test_check_reports_each_mistake_with_its_line(project):
    """params.yaml has an unknown key, d_fff, and a word in place of a number."""
    wrong_params = PARAMS.replace("d_ff:", "d_fff:").replace("heads: 2", "heads: two")
    (project / "params.yaml").write_text(wrong_params)

    error = run(project, "-m", "bleuprint", "check", status=1)

    messages = error.splitlines()
    assert len(messages) == 2
    for message in messages:
        assert re.match(r"bleuprint: error: params\.yaml:\d+: systems\.base\.", message)


def test_check_reports_the_line_that_names_a_missing_folder(project):
    """The new line init_from follows the line max_updates of PARAMS."""
    old_line = "      max_updates: 10\n"
    lines_before = PARAMS[: PARAMS.index(old_line)].count("\n")
    line_number = lines_before + 2  # after max_updates; the first line has the number 1
    new_lines = old_line + "      init_from: {folder: nope}\n"
    (project / "params.yaml").write_text(PARAMS.replace(old_line, new_lines))

    error = run(project, "-m", "bleuprint", "check", status=1)

    place = f"params.yaml:{line_number}: systems.base.train.init_from.folder: "
    assert error.startswith(f"bleuprint: error: {place}")
    assert error.endswith("/nope does not exist, but init_from of base names it\n")


def run_here(project, monkeypatch, *arguments):
    """Run a command in this process, in the folder of the project."""
    monkeypatch.chdir(project)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    parser, _ = command_parser()
    parsed_arguments = parser.parse_args(arguments)
    parsed_arguments.command(parsed_arguments)


def test_check_asks_spacy_for_the_languages_of_a_corpus(project, monkeypatch):
    text = PARAMS.replace("name: moses", "name: spacy").replace('target: "no"', 'target: "vi"')
    (project / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^params\.yaml: corpora\.own\.tokenize: .* Pyvi not"):
        run_here(project, monkeypatch, "check")


def test_inspect_names_the_rule_that_drops_all_pairs(project, monkeypatch, capsys):
    """The text is one pair of 201 words, repeated: dedup drops the second, `length` the first.

    The counts of the rules are printed first, as for any other text.
    """
    monkeypatch.setenv("BLEUPRINT_WORKERS", "1")
    long_pair = ("sehr " * 200 + "lang", "very " * 200 + "long")
    write_set(TextFolder(project / "inputs", "de", "no"), "a", [long_pair, long_pair])

    with pytest.raises(UserError) as raised:
        run_here(project, monkeypatch, "inspect", "own")

    assert str(raised.value) == (
        "corpus own: filter dropped all pairs of train: 1 pair in, 0 out; dropped by length 1"
    )
    assert "  length: 1 dropped, 100.00%\n" in capsys.readouterr().out


def test_cite_prints_the_entries_of_what_is_used(project, monkeypatch, capsys):
    run_here(project, monkeypatch, "cite")
    cited = capsys.readouterr().out
    assert "@misc{own,}\n" in cited
    assert "@inproceedings{post-2018-call," in cited


def test_check_refuses_two_different_bibtex_entries_with_the_same_key(project):
    """The corpus is cited as @misc{own}; the published number cites another work by this key.

    `bleuprint cite` could not write both into one file.
    """
    published_number = (
        "{name: A, source: x, corpus: own, test: held-out, bleu: 3, metric: intl,"
        ' bibtex: "@misc{own, title = {Another}}"}'
    )
    params = PARAMS.replace("published: []", f"published: [{published_number}]")
    (project / "params.yaml").write_text(params)

    error = run(project, "-m", "bleuprint", "check", status=1)

    assert "published.0.bibtex: the key own names another entry in corpora.own" in error


def test_a_command_whose_pipe_is_closed_by_the_reader_prints_no_error(project):
    """`head -c 20` closes the pipe while bleuprint has a megabyte of BibTeX to print."""
    long_entry = "@misc{own, a={" + "x" * 10**6 + "}}"
    (project / "params.yaml").write_text(PARAMS.replace("@misc{own,}", long_entry))

    process = subprocess.run(
        f"{sys.executable} -m bleuprint cite | head -c 20",
        shell=True,
        cwd=project,
        capture_output=True,
        text=True,
    )

    assert process.stderr == ""
    assert len(process.stdout) == 20


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param("check", 0, "", id="check"),
        pytest.param(
            "translate --system base --corpus own",
            1,
            "bleuprint: error: standard output is closed\n",
            id="translate",
        ),
    ],
)
def test_only_translate_needs_an_open_standard_output(project, arguments, status, message):
    """The exit status of `check` tells the result; translations would be lost."""
    # In a shell, `>&-` closes standard output.
    command = f"{sys.executable} -m bleuprint {arguments} >&-"

    process = subprocess.run(command, shell=True, cwd=project, stderr=subprocess.PIPE, text=True)

    assert process.returncode == status
    assert process.stderr == message


@pytest.mark.parametrize("command", ["table", "check", "plan", "sync", "verify HEAD"])
def test_a_command_run_below_the_root_of_the_project_is_refused(project, command):
    """It also leaves the folder as it is: the folder `work` would be for temporary files."""
    folder = project / "inputs"

    error = run(folder, "-m", "bleuprint", *command.split(), status=1)

    assert (
        error
        == "bleuprint: error: params.yaml: no such file. Run the command from the project's root\n"
    )
    assert not (folder / "work").exists()


def test_translate_reports_a_missing_file_before_it_loads_torch(project):
    """Loading PyTorch takes seconds. Here, an `import torch` ends the process with status `torch`.

    Python looks for modules in the current folder first, which has a torch.py.
    """
    (project / "torch.py").write_text("raise SystemExit('torch')")
    arguments = ["translate", "--system", "base", "--corpus", "own", "nosuch.txt"]

    error = run(project, "-m", "bleuprint", *arguments, status=1)

    assert error == "bleuprint: error: nosuch.txt: no such file\n"


@pytest.mark.parametrize(
    ("command", "port"),
    [
        ("serve --system=micro --corpus=toy", 0),
        ("serve --system=micro --corpus=toy", 65535),
        ("ui", 1),
        ("ui", 65535),
    ],
)
def test_the_lowest_and_the_highest_port_are_accepted(command, port):
    """A port has 16 bits. With port 0, `serve` uses any free port; `ui` cannot."""
    parser, _ = command_parser()

    arguments = parser.parse_args([*command.split(), f"--port={port}"])

    assert arguments.port == port


@pytest.mark.parametrize(
    ("command", "lowest", "wrong_ports"),
    [
        pytest.param("serve --system=micro --corpus=toy", 0, ["-1", "65536", "http"], id="serve"),
        pytest.param("ui", 1, ["0", "65536", "http"], id="ui"),
    ],
)
def test_a_port_out_of_range_is_refused(command, lowest, wrong_ports, capsys):
    parser, _ = command_parser()

    for port in wrong_ports:
        with pytest.raises(SystemExit) as exit_info:
            parser.parse_args([*command.split(), f"--port={port}"])

        assert exit_info.value.code == 2
        message = f"'{port}' is not a whole number from {lowest} to 65535"
        assert message in capsys.readouterr().err
