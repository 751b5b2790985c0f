"""A system that `bleuprint export` writes translates without this project."""

import json
import os
import subprocess
import sys

import pytest

import processes
import processors
from bleuprint.config.paths import Run
from bleuprint.runtime.regular_files import sha256_of
from trainings import environment

RUN = Run("micro", "toy", 1)


def run_export(project, folder, precision):
    """Run `bleuprint export` on the project's system, and return the process."""
    command = [sys.executable, "-m", "bleuprint", "export"]
    command += ["--system=micro", "--corpus=toy", f"--precision={precision}", str(folder)]
    return processes.run(command, project, environment())


@pytest.fixture(scope="module", params=["float32", "int8"])
def exported(request, toy, tmp_path_factory):
    """Return a folder with an exported system, named after its precision. Not to be changed.

    It was moved after the export, as a user may do.
    """
    precision = request.param
    folder = tmp_path_factory.mktemp("exported") / "before"
    run_export(toy, folder, precision).check_returncode()
    return folder.rename(folder.with_name(precision))


def script_command(exported):
    """Return the command of an exported system; `-I` hides the user's own Python packages."""
    return [sys.executable, "-I", str(exported / "translate.py")]


def translate_twice(exported, text_file, variables):
    """Translate a file with an exported system, given twice as argument.

    Args:
        exported: The folder of the exported system.
        text_file: The file.
        variables: Environment variables.

    Returns:
        The lines of the output.
    """
    process = subprocess.run(
        [*script_command(exported), text_file, text_file],
        cwd=text_file.parent,
        env=os.environ | variables,
        capture_output=True,
        check=True,
    )
    return process.stdout.decode().removesuffix("\n").split("\n")


def count_equal(lines, other_lines):
    """Return how many lines are equal to the other line with the same number."""
    count = 0
    for line, other_line in zip(lines, other_lines, strict=True):
        if line == other_line:
            count += 1
    return count


@pytest.fixture
def text_file(toy, tmp_path):
    """Return a file with an empty line and the source of the test set."""
    path = tmp_path / "text.txt"
    path.write_text("\n" + (toy / "data/split/toy/test.x.de").read_text())
    return path


@pytest.fixture
def expected_lines(toy):
    """Return what the stage translate writes for `text_file`, twice, since it is given twice.

    The translation of its first line, which is empty, is empty.
    """
    hypotheses = toy / RUN.results_folder / "hypotheses" / "test.x.en"
    translations = hypotheses.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return 2 * ["", *translations]


def test_the_settings_of_an_exported_system_name_its_precision(exported):
    """The script reads from settings.json whether the weights are float32 or int8."""
    settings = json.loads((exported / "settings.json").read_text())

    assert settings["precision"] == exported.name  # The folder is named after the precision.


@pytest.mark.parametrize("exported", ["float32"], indirect=True)
def test_a_float32_system_translates_as_the_stage_does(exported, text_file, expected_lines):
    """The script searches with CTranslate2, the stage translate with PyTorch."""
    lines = translate_twice(exported, text_file, variables={})

    assert lines == expected_lines


@pytest.mark.parametrize("exported", ["int8"], indirect=True)
def test_an_int8_system_translates_most_sentences_as_the_stage_does(
    exported, text_file, expected_lines
):
    """Instructions named VNNI add the products of 8-bit integers without overflow.

    Of 40 sentences, 38 have equal translations with VNNI and 20 without, by MKL and by oneDNN, on
    processors of both vendors. The difference is that large because the model is small: its largest
    weights decide most sums, and large sums saturate.
    """
    line_count = len(expected_lines)

    lines_with_vnni = translate_twice(exported, text_file, processors.INT8_WITH_VNNI)
    lines_without_vnni = translate_twice(exported, text_file, processors.INT8_WITHOUT_VNNI)

    equal_with_vnni = count_equal(lines_with_vnni, expected_lines)
    equal_without_vnni = count_equal(lines_without_vnni, expected_lines)
    assert equal_with_vnni > 0.8 * line_count
    assert 0.4 * line_count < equal_without_vnni < equal_with_vnni


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        pytest.param(
            ["--beam=2"],
            2,
            "translate.py: error: unrecognized arguments: --beam=2\n",
            id="unknown argument",
        ),
        pytest.param(
            ["nowhere"],
            1,
            "translate.py: [Errno 2] No such file or directory: 'nowhere'\n",
            id="missing file",
        ),
    ],
)
def test_an_exported_system_reports_a_wrong_argument(exported, arguments, status, message):
    process = subprocess.run(
        [*script_command(exported), *arguments], capture_output=True, text=True
    )

    assert process.returncode == status
    assert process.stdout == ""
    assert message in process.stderr
    assert "Traceback" not in process.stderr


@pytest.fixture
def invalid_file(tmp_path):
    """Return a file whose second line is not UTF-8."""
    path = tmp_path / "invalid.txt"
    path.write_bytes(b"ba\n\xff\n")
    return path


def test_an_exported_system_translates_up_to_a_line_that_is_not_utf_8(exported, invalid_file):
    """The second of two lines is not UTF-8: the first one is translated, the second reported."""
    process = subprocess.run(
        [*script_command(exported), invalid_file], capture_output=True, text=True
    )

    assert process.returncode == 1
    assert process.stdout.count("\n") == 1
    assert f"{invalid_file}:2: not UTF-8: " in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        pytest.param(
            ">/dev/full", "translate.py: [Errno 28] No space left on device\n", id="full disk"
        ),
        pytest.param(">&-", "translate.py: standard output is closed\n", id="closed output"),
    ],
)
def test_an_exported_system_fails_if_it_cannot_write_its_output(
    exported, invalid_file, redirection, message
):
    """The error comes with the first line, before the second one, which is not UTF-8, is read."""
    command = " ".join([*script_command(exported), str(invalid_file)])

    process = subprocess.run(
        ["bash", "-c", f"{command} {redirection}"], capture_output=True, text=True
    )

    assert process.returncode == 1
    assert process.stderr == message
    assert process.stdout == ""


def test_an_exported_system_fails_if_standard_error_is_closed(exported, invalid_file):
    """The second of two lines is not UTF-8. Only the exit status can tell it to the user."""
    command = " ".join([*script_command(exported), str(invalid_file)])

    process = subprocess.run(["bash", "-c", f"{command} 2>&-"], capture_output=True, text=True)

    assert process.returncode == 1
    assert process.stderr == ""
    assert process.stdout.count("\n") == 1  # The translation of the first line.


def test_the_readme_of_an_exported_system_identifies_the_training(toy, exported):
    readme = (exported / "README.md").read_text()

    training = json.loads((toy / RUN.results_folder / "training.json").read_text())
    weights = toy / RUN.models_folder / "averaged" / "model.safetensors"
    assert training["fingerprint"] in readme
    assert sha256_of(weights) in readme


def read_all_files(folder):
    """Return the content of each file in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_to_an_existing_folder_is_an_error_and_changes_nothing(toy, exported):
    contents_before = read_all_files(exported)

    process = run_export(toy, exported, precision=exported.name)

    assert process.returncode == 1
    assert process.stderr.decode() == (
        f"bleuprint: error: {exported} exists already. Name another folder\n"
    )
    assert read_all_files(exported) == contents_before
