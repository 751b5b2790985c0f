"""What each argument and option of a command gives to the code behind it."""

from dataclasses import replace
from pathlib import Path

import pytest

import params
from bleuprint.cli.main import command_parser
from bleuprint.cli.options import chosen_search

CELL = {"system": "small", "corpus": "news", "seed": None}
SEARCH = {**CELL, "direction": None, "beam": None}
OF_RUN = "--system small --corpus news"

# What a command line gives; `computes`: whether the process starts again with torch's settings.
GIVEN = {
    "check": {"computes": False, "schema": False},
    "check --schema": {"computes": False, "schema": True},
    "plan": {"computes": False},
    "reproduce": {"computes": False},
    "sync": {"computes": False, "begin": None},
    "sync --begin train@a digest data/a": {
        "computes": False,
        "begin": ["train@a", "digest", "data/a"],
    },
    "cite": {"computes": False},
    "inspect news": {
        "computes": False,
        "corpus": "news",
        "pairs": 100_000,
        "seed": 1,
        "samples": 3,
    },
    "inspect news --pairs 7 --seed 0 --samples 5": {
        "computes": False,
        "corpus": "news",
        "pairs": 7,
        "seed": 0,
        "samples": 5,
    },
    "new-corpus a.de a.en": {
        "computes": True,
        "files": [Path("a.de"), Path("a.en")],
        "languages": None,
        "columns": None,
    },
    "new-corpus a.tsv --languages de en --columns 2 German": {
        "computes": True,
        "files": [Path("a.tsv")],
        "languages": ["de", "en"],
        "columns": ["2", "German"],
    },
    f"translate {OF_RUN}": {
        **SEARCH,
        "computes": True,
        "files": [],
        "alignment": None,
        "n_best": None,
    },
    f"translate a b {OF_RUN} --seed 7 --direction en-de --beam 9 --alignment links --n-best 3": {
        "computes": True,
        "files": ["a", "b"],
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "direction": "en-de",
        "beam": 9,
        "alignment": "links",
        "n_best": 3,
    },
    f"serve {OF_RUN}": {**SEARCH, "computes": True, "port": 8000},
    f"serve {OF_RUN} --seed 7 --direction en-de --beam 9 --port 0": {
        "computes": True,
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "direction": "en-de",
        "beam": 9,
        "port": 0,
    },
    "ui": {"computes": False, "port": 5000},
    "ui --port 65535": {"computes": False, "port": 65_535},
    f"export folder {OF_RUN}": {
        **CELL,
        "computes": False,
        "folder": "folder",
        "precision": "float32",
    },
    f"export folder {OF_RUN} --seed 7 --precision int8": {
        "computes": False,
        "folder": "folder",
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "precision": "int8",
    },
    "release folder": {"computes": False, "folder": "folder", "system": None, "corpus": None},
    "release folder --system small --corpus news": {
        "computes": False,
        "folder": "folder",
        "system": "small",
        "corpus": "news",
    },
    "table": {"computes": False, "all": False},
    "table --all": {"computes": False, "all": True},
    "compare tiny small": {
        "computes": False,
        "first": "tiny",
        "second": "small",
        "corpus": None,
        "sentences": 10,
    },
    "compare tiny small --corpus news --sentences 3": {
        "computes": False,
        "first": "tiny",
        "second": "small",
        "corpus": "news",
        "sentences": 3,
    },
    "verify HEAD~1": {"computes": False, "other": "HEAD~1"},
}


def test_each_command_is_tried():
    _, commands = command_parser()
    assert {line.split()[0] for line in GIVEN} == {*commands.choices}


@pytest.mark.parametrize("line", GIVEN)
def test_what_a_command_line_gives(line):
    parser, _ = command_parser()
    given = vars(parser.parse_args(line.split()))
    assert callable(given.pop("command"))
    assert given.pop("name") == line.split()[0]
    assert given == GIVEN[line]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("inspect news --pairs 0", "argument --pairs: '0' is not a whole number from 1"),
        ("inspect news --samples 0", "argument --samples: '0' is not a whole number from 1 to 5"),
        ("inspect news --samples 6", "argument --samples: '6' is not a whole number from 1 to 5"),
        ("inspect news --seed -1", "argument --seed: '-1' is not a whole number from 0"),
        ("compare a b --sentences 0", "argument --sentences: '0' is not a whole number from 1"),
        (
            f"translate {OF_RUN} --n-best 0",
            "argument --n-best: '0' is not a whole number from 1",
        ),
        (f"translate {OF_RUN} --beam 0", "argument --beam: '0' is not a whole number from 1 to"),
        (f"serve {OF_RUN} --seed 1.5", "argument --seed: invalid int value: '1.5'"),
        ("serve --corpus news", "the following arguments are required: --system"),
        ("export folder --system small", "the following arguments are required: --corpus"),
        (
            f"export folder {OF_RUN} --precision int4",
            "argument --precision: invalid choice: 'int4'",
        ),
        ("new-corpus", "the following arguments are required: FILE"),
        ("new-corpus a --languages en", "argument --languages: expected 2 arguments"),
        ("sync --begin", "argument --begin: expected at least one argument"),
    ],
)
def test_a_wrong_value_is_refused(capsys, line, said):
    parser, _ = command_parser()
    with pytest.raises(SystemExit) as end:
        parser.parse_args(line.split())
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
    """A function that replaces another one by its name; returns the calls, and the result."""

    def record(name, result=None):
        made = []

        def called(*arguments):
            made.append(arguments)
            return result

        monkeypatch.setattr(name, called)
        return made

    return record


def run(line):
    parser, _ = command_parser()
    given = parser.parse_args(line.split())
    given.command(given)


def test_a_release_is_of_the_system_and_corpus_that_are_named(calls, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("folder/models").mkdir(parents=True)
    Path("folder/README.md").write_bytes(bytes(1_500_000))
    Path("folder/models/model").write_bytes(bytes(2_000_000))
    calls("bleuprint.cli.models.load_settings", "settings")
    released = calls("bleuprint.pipeline.release.release")
    run("release folder --system small --corpus news")
    assert released == [("settings", Path("folder"), "small", "news")]
    said = capsys.readouterr().out
    assert said.startswith("folder: 2 files, 4 MB; README.md describes them\n")
    assert said.endswith("sha256sum -c SHA256SUMS in it, or from here: bleuprint verify COPY\n")


def test_an_export_has_the_precision_that_is_named(calls):
    calls("bleuprint.cli.models.load_settings", "settings")
    calls("bleuprint.cli.options.trained_run", "run")
    exported = calls("bleuprint.serving.export.export")
    run(f"export folder {OF_RUN} --precision int8")
    assert exported == [("settings", "run", Path("folder"), "int8")]


def test_a_server_has_the_search_the_port_and_the_direction_that_are_named(calls):
    calls("bleuprint.cli.models.load_settings", "settings")
    calls("bleuprint.cli.options.chosen_search", "decode")
    calls("bleuprint.cli.options.trained_run", "run")
    chosen = calls("bleuprint.cli.options.chosen_languages", ("de", "en"))
    served = calls("bleuprint.serving.server.serve")
    run(f"serve {OF_RUN} --port 8001 --direction de-en")
    assert served == [("run", "decode", 8001, ("de", "en"))]
    ((settings, given),) = chosen
    assert (settings, given.direction) == ("settings", "de-en")


def test_a_comparison_has_the_corpus_and_the_sentences_that_are_named(calls):
    calls("bleuprint.report.terminal.show")
    compared = calls("bleuprint.report.compare.compare", [])
    run("compare tiny small --corpus news --sentences 3")
    assert compared == [("tiny", "small", "news", 3)]


@pytest.mark.parametrize(("beam", "expected"), [("", 1), ("--beam 3", 3)])
def test_a_beam_that_is_given_replaces_the_one_of_the_system(tmp_path, beam, expected):
    parser, _ = command_parser()
    given = parser.parse_args(f"translate --system base --corpus own {beam}".split())
    settings = params.read(tmp_path)
    system = settings.system_settings("base")
    assert chosen_search(settings, given) == replace(system.decode, beam=expected)
