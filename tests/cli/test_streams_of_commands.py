"""Commands and stages whose standard streams are closed, full, or read by nobody, and Ctrl-C."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from bleuprint.runtime import reexec
from root import ROOT
from trainings import environment

BLEUPRINT = f"{sys.executable} -m bleuprint"
TRANSLATE = f"{BLEUPRINT} translate --system=micro --corpus=toy"
FULL = "bleuprint: error: No space left on device: standard output\n"


def shell(command, cwd=ROOT, text=b""):
    """Run a command line of bash.

    Args:
        command: The command line, which may redirect or close streams.
        cwd: The folder.
        text: Standard input.

    Returns:
        Exit status, standard output and standard error.
    """
    env = {**environment(), **reexec.VARIABLES, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.run(
        ["bash", "-c", command], cwd=cwd, env=env, input=text, capture_output=True, timeout=240
    )
    return process.returncode, process.stdout.decode(), process.stderr.decode()


@pytest.mark.parametrize("command", ["--help", "--version", "translate --help", "check --schema"])
@pytest.mark.parametrize(
    ("redirection", "expected_status", "expected_message"),
    [
        pytest.param(">&-", 0, "", id="closed"),
        pytest.param(
            ">/dev/full",
            1,
            "bleuprint: error: No space left on device: standard output\n",
            id="disk full",
        ),
        pytest.param(
            "1</dev/null",
            1,
            "bleuprint: error: Bad file descriptor: standard output\n",
            id="only for reading",
        ),
    ],
)
def test_an_output_that_cannot_be_written_is_an_error_in_one_line(
    command, redirection, expected_status, expected_message
):
    """A user who closes standard output, `>&-`, wants no output: this is no error."""
    status, _, message = shell(f"{BLEUPRINT} {command} {redirection}")

    assert status == expected_status
    assert message == expected_message


@pytest.mark.parametrize("command", ["--help", "--version", "translate --help", "check --schema"])
def test_a_pipe_whose_reader_has_ended_ends_a_command_without_a_message(command):
    """`true` reads nothing. The status is 141, that of SIGPIPE, as for other programs.

    It is 0 if the command has written all before `true` ends.
    """
    status, _, message = shell(f"{BLEUPRINT} {command} | true; exit ${{PIPESTATUS[0]}}")

    assert status in (141, 0)
    assert message == ""


@pytest.mark.parametrize(
    "redirection",
    [
        pytest.param("2>&-", id="standard error closed"),
        pytest.param("2>/dev/full", id="standard error full"),
        pytest.param("2> >(true)", id="standard error read by nobody"),
        pytest.param("<&-", id="standard input closed"),
    ],
)
def test_translations_are_printed_even_if_messages_cannot_be(toy, tmp_path, redirection):
    """The text causes notes and warnings: an unknown word, and lines without a translation."""
    text = tmp_path / "text"
    text.write_text("ba be\n\nzzz\n" + "be " * 300 + "\n")
    expected_status, expected_output, expected_messages = shell(f"{TRANSLATE} {text}", toy)
    assert expected_status == 0
    assert "not in the training text" in expected_messages

    status, output, messages = shell(f"{TRANSLATE} {text} {redirection}", toy)

    assert status == 0
    assert output == expected_output
    # Only a closed standard input leaves a place to print messages.
    assert messages == (expected_messages if redirection == "<&-" else "")


def test_a_stage_runs_with_all_standard_streams_closed(toy, tmp_path):
    """A scheduler may start a stage like this. Here a stage translates a test set again."""
    root = shutil.copytree(toy, tmp_path / "toy", symlinks=True)
    hypotheses = root / "results" / "micro" / "toy" / "1" / "hypotheses" / "test.x.en"
    expected_hypotheses = hypotheses.read_bytes()
    hypotheses.unlink()
    close_all_streams = "<&- >&- 2>&-"

    result = shell(f"{sys.executable} stages/translate.py micro toy 1 {close_all_streams}", root)

    assert result == (0, "", "")
    assert hypotheses.read_bytes() == expected_hypotheses


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        pytest.param(">&-", "bleuprint: error: standard output is closed\n", id="closed output"),
        pytest.param("<&-", "bleuprint: error: standard input is closed\n", id="closed input"),
        pytest.param(
            "0>/dev/null",
            "bleuprint: error: Bad file descriptor: standard input\n",
            id="input opened for writing",
        ),
        pytest.param(
            "--alignment=/dev/full",
            "bleuprint: error: No space left on device: /dev/full\n",
            id="full disk, links of words",
        ),
        pytest.param(">/dev/full", FULL, id="full disk, output"),
    ],
)
def test_the_last_message_names_the_stream_or_file_that_fails(toy, redirection, message):
    """A redirection closes a stream, opens it the wrong way, or writes to a full disk."""
    status, _, messages = shell(f"{TRANSLATE} {redirection}", toy, b"ba be\n")

    assert status == 1
    assert messages.splitlines(keepends=True)[-1] == message


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("-m bleuprint check --schema", id="command"),
        pytest.param("stages/binarize.py no-such-corpus", id="stage"),
        pytest.param("stages/translate.py no such 1", id="stage that restarts its process"),
    ],
)
def test_ctrl_c_while_a_process_loads_leaves_no_traceback(arguments):
    """Press Ctrl-C at twelve moments from the first line of the package to the end.

    What Python prints if Ctrl-C comes before our first line cannot be changed.
    """
    command = [sys.executable, *arguments.split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for variable in reexec.VARIABLES:  # If they are set, a process does not restart.
        env.pop(variable, None)
    start_time = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=env, capture_output=True)
    duration = time.monotonic() - start_time

    interrupted_processes = 0
    for moment in range(12):
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        wait_until_ours(process)
        time.sleep(duration * moment / 12)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert b"Traceback" not in error, error.decode()
        assert b"Exception ignored" not in error, error.decode()
        if process.returncode in (-signal.SIGINT, 130):
            interrupted_processes += 1

    # Processes that Ctrl-C reaches too late end by themselves.
    assert interrupted_processes >= 1


def wait_until_ours(process):
    """Wait until the first line of the package has changed how Ctrl-C acts on the process."""
    was_caught = False
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status") as file:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in file)
        is_caught = int(fields.get("SigCgt", "0"), 16) >> (signal.SIGINT - 1) & 1
        if was_caught and not is_caught:
            return
        was_caught = is_caught
        time.sleep(0.001)
