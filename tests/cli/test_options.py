"""What each argument and option of a command gives to the code behind it."""

from dataclasses import replace
from pathlib import Path

import pytest

import params
from bleuprint.cli.main import command_parser
from bleuprint.cli.options import chosen_search

RUN_VALUES = {"system": "small", "corpus": "news", "seed": None}
SEARCH_VALUES = {**RUN_VALUES, "direction": None, "beam": None}
RUN_OPTIONS = "--system small --corpus news"

# What each command line is parsed to. `imports_torch`: whether the process starts again, with the
# settings of torch.
VALUES_BY_LINE = {
    "check": {"imports_torch": False, "schema": False},
    "check --schema": {"imports_torch": False, "schema": True},
    "plan": {"imports_torch": False},
    "reproduce": {"imports_torch": False},
    "sync": {"imports_torch": False, "begin": None},
    "sync --begin train@a digest data/a": {
        "imports_torch": False,
        "begin": ["train@a", "digest", "data/a"],
    },
    "accept train score --because renamed": {
        "imports_torch": False,
        "stages": ["train", "score"],
        "because": "renamed",
    },
    "cite": {"imports_torch": False},
    "inspect news": {
        "imports_torch": False,
        "corpus": "news",
        "pairs": 100_000,
        "seed": 1,
        "samples": 3,
    },
    "inspect news --pairs 7 --seed 0 --samples 5": {
        "imports_torch": False,
        "corpus": "news",
        "pairs": 7,
        "seed": 0,
        "samples": 5,
    },
    "new-corpus a.de a.en": {
        "imports_torch": True,
        "files": [Path("a.de"), Path("a.en")],
        "languages": None,
        "columns": None,
    },
    "new-corpus a.tsv --languages de en --columns 2 German": {
        "imports_torch": True,
        "files": [Path("a.tsv")],
        "languages": ["de", "en"],
        "columns": ["2", "German"],
    },
    f"translate {RUN_OPTIONS}": {
        **SEARCH_VALUES,
        "imports_torch": True,
        "files": [],
        "alignment": None,
        "n_best": None,
    },
    f"translate a b {RUN_OPTIONS} --seed 7 --direction en-de --beam 9 --alignment links "
    "--n-best 3": {
        "imports_torch": True,
        "files": ["a", "b"],
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "direction": "en-de",
        "beam": 9,
        "alignment": "links",
        "n_best": 3,
    },
    f"serve {RUN_OPTIONS}": {**SEARCH_VALUES, "imports_torch": True, "port": 8000},
    f"serve {RUN_OPTIONS} --seed 7 --direction en-de --beam 9 --port 0": {
        "imports_torch": True,
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "direction": "en-de",
        "beam": 9,
        "port": 0,
    },
    "ui": {"imports_torch": False, "port": 5000},
    "ui --port 65535": {"imports_torch": False, "port": 65_535},
    f"export folder {RUN_OPTIONS}": {
        **RUN_VALUES,
        "imports_torch": False,
        "folder": "folder",
        "precision": "float32",
        "format": "ctranslate2",
    },
    f"export folder {RUN_OPTIONS} --seed 7 --precision int8": {
        "imports_torch": False,
        "folder": "folder",
        "system": "small",
        "corpus": "news",
        "seed": 7,
        "precision": "int8",
        "format": "ctranslate2",
    },
    f"export folder {RUN_OPTIONS} --format marian": {
        **RUN_VALUES,
        "imports_torch": False,
        "folder": "folder",
        "precision": "float32",
        "format": "marian",
    },
    "import opus-mt-en-de folder": {
        "imports_torch": False,
        "model": "opus-mt-en-de",
        "folder": "folder",
    },
    "release folder": {"imports_torch": False, "folder": "folder", "system": None, "corpus": None},
    "release folder --system small --corpus news": {
        "imports_torch": False,
        "folder": "folder",
        "system": "small",
        "corpus": "news",
    },
    "table": {"imports_torch": False, "all": False},
    "table --all": {"imports_torch": False, "all": True},
    "compare tiny small": {
        "imports_torch": False,
        "first": "tiny",
        "second": "small",
        "corpus": None,
        "sentences": 10,
    },
    "compare tiny small --corpus news --sentences 3": {
        "imports_torch": False,
        "first": "tiny",
        "second": "small",
        "corpus": "news",
        "sentences": 3,
    },
    "verify HEAD~1": {"imports_torch": False, "other": "HEAD~1"},
}


def test_the_table_has_a_line_for_each_command():
    _, commands = command_parser()
    commands_in_table = {line.split()[0] for line in VALUES_BY_LINE}
    assert commands_in_table == set(commands.choices)


@pytest.mark.parametrize(("line", "values"), VALUES_BY_LINE.items(), ids=VALUES_BY_LINE)
def test_a_command_line_is_parsed_to_its_values(line, values):
    """`values` are the expected attributes of the parsed arguments, defaults included."""
    parser, _ = command_parser()

    parsed = vars(parser.parse_args(line.split()))

    # Each command has also the function that runs it, and its name.
    assert callable(parsed.pop("command"))
    assert parsed.pop("name") == line.split()[0]
    assert parsed == values


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(
            "inspect news --pairs 0",
            "argument --pairs: '0' is not a whole number from 1",
            id="no pairs",
        ),
        pytest.param(
            "inspect news --samples 0",
            "argument --samples: '0' is not a whole number from 1 to 5",
            id="no samples",
        ),
        pytest.param(
            "inspect news --samples 6",
            "argument --samples: '6' is not a whole number from 1 to 5",
            id="too many samples",
        ),
        pytest.param(
            "inspect news --seed -1",
            "argument --seed: '-1' is not a whole number from 0",
            id="negative seed",
        ),
        pytest.param(
            "compare a b --sentences 0",
            "argument --sentences: '0' is not a whole number from 1",
            id="no sentences",
        ),
        pytest.param(
            f"translate {RUN_OPTIONS} --n-best 0",
            "argument --n-best: '0' is not a whole number from 1",
            id="n-best list of 0",
        ),
        pytest.param(
            f"translate {RUN_OPTIONS} --beam 0",
            "argument --beam: '0' is not a whole number from 1 to",
            id="beam of 0",
        ),
        pytest.param(
            f"serve {RUN_OPTIONS} --seed 1.5",
            "argument --seed: invalid int value: '1.5'",
            id="fractional seed",
        ),
        pytest.param(
            "serve --corpus news",
            "the following arguments are required: --system",
            id="system missing",
        ),
        pytest.param(
            "export folder --system small",
            "the following arguments are required: --corpus",
            id="corpus missing",
        ),
        pytest.param(
            f"export folder {RUN_OPTIONS} --precision int4",
            "argument --precision: invalid choice: 'int4'",
            id="unknown precision",
        ),
        pytest.param(
            f"export folder {RUN_OPTIONS} --format onnx",
            "argument --format: invalid choice: 'onnx'",
            id="unknown format",
        ),
        pytest.param("new-corpus", "the following arguments are required: FILE", id="file missing"),
        pytest.param(
            "new-corpus a --languages en",
            "argument --languages: expected 2 arguments",
            id="only one language",
        ),
        pytest.param(
            "sync --begin",
            "argument --begin: expected at least one argument",
            id="begin without stage",
        ),
    ],
)
def test_a_wrong_value_is_refused(capsys, line, message):
    """Such a command ends with status 2 and a message that names the option."""
    parser, _ = command_parser()

    with pytest.raises(SystemExit) as exit_info:
        parser.parse_args(line.split())

    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def replace_function(monkeypatch):
    """Return a function that replaces a function of the package by one that records its calls.

    It takes the name of the function to replace and a result, and returns the list of calls, each
    a tuple of arguments.
    """

    def replace_by_recorder(name, result=None):
        calls = []

        def record_call(*arguments):
            calls.append(arguments)
            return result

        monkeypatch.setattr(name, record_call)
        return calls

    return replace_by_recorder


def run_command(line):
    """Run a command line, without `bleuprint`, in this process."""
    parser, _ = command_parser()
    arguments = parser.parse_args(line.split())
    arguments.command(arguments)


@pytest.fixture
def release_folder(tmp_path, monkeypatch):
    """Change to a folder in which `folder` has two files, of 1.5 and 2 MB."""
    monkeypatch.chdir(tmp_path)
    Path("folder/models").mkdir(parents=True)
    Path("folder/README.md").write_bytes(bytes(1_500_000))
    Path("folder/models/model").write_bytes(bytes(2_000_000))


@pytest.mark.usefixtures("release_folder")
def test_release_packs_the_system_and_corpus_of_the_options(replace_function):
    """The function `release` is replaced by one that records its arguments."""
    replace_function("bleuprint.cli.models.load_settings", "settings")
    release_calls = replace_function("bleuprint.pipeline.release.release")

    run_command("release folder --system small --corpus news")

    assert release_calls == [("settings", Path("folder"), "small", "news")]


@pytest.mark.usefixtures("release_folder")
def test_release_prints_the_size_of_the_folder_and_how_to_check_it(replace_function, capsys):
    """The folder has two files, README.md and a model, of 1.5 and 2 MB."""
    replace_function("bleuprint.cli.models.load_settings", "settings")
    replace_function("bleuprint.pipeline.release.release")

    run_command("release folder --system small --corpus news")

    output = capsys.readouterr().out
    # 1.5 and 2 MB are 3.5, rounded to 4.
    assert output.startswith("folder: 2 files, 4 MB. README.md describes them\n")
    assert output.endswith("sha256sum -c SHA256SUMS in it, or from here: bleuprint verify COPY\n")


def test_export_uses_the_precision_of_the_options(replace_function):
    """The function `export` is replaced by one that records its arguments.

    Settings and trained run are stand-ins: the strings "settings" and "run".
    """
    replace_function("bleuprint.cli.models.load_settings", "settings")
    replace_function("bleuprint.cli.options.trained_run", "run")
    export_calls = replace_function("bleuprint.serving.export.export")

    run_command("export folder --system small --corpus news --precision int8")

    assert export_calls == [("settings", "run", Path("folder"), "int8")]


def test_serve_uses_the_search_the_port_and_the_direction_of_the_options(replace_function):
    """The function `serve` is replaced by one that records its arguments.

    The functions before it return stand-ins, such as the string "run" for a trained run.
    """
    replace_function("bleuprint.cli.models.load_settings", "settings")
    replace_function("bleuprint.cli.options.chosen_search", "decode")
    replace_function("bleuprint.cli.options.trained_run", "run")
    language_calls = replace_function("bleuprint.cli.options.chosen_languages", ("de", "en"))
    serve_calls = replace_function("bleuprint.serving.server.serve")

    run_command("serve --system small --corpus news --port 8001 --direction de-en")

    assert serve_calls == [("run", "decode", 8001, ("de", "en"))]
    ((settings, arguments),) = language_calls
    assert settings == "settings"
    assert arguments.direction == "de-en"


def test_compare_uses_the_corpus_and_the_number_of_sentences_of_the_options(replace_function):
    """The function `compare` is replaced by one that records its arguments."""
    replace_function("bleuprint.report.terminal.show")
    compare_calls = replace_function("bleuprint.report.compare.compare", [])

    run_command("compare tiny small --corpus news --sentences 3")

    assert compare_calls == [("tiny", "small", "news", 3)]


@pytest.mark.parametrize(("option", "expected_beam"), [("", 1), ("--beam 3", 3)])
def test_the_option_beam_replaces_the_beam_of_the_system(tmp_path, option, expected_beam):
    """The system `base` has a beam of 1 in params.yaml."""
    parser, _ = command_parser()
    arguments = parser.parse_args(f"translate --system base --corpus own {option}".split())
    settings = params.read(tmp_path)

    search = chosen_search(settings, arguments)

    system = settings.system_settings("base")
    assert search == replace(system.decode, beam=expected_beam)
