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
    """Status, standard output and standard error of a command line of bash."""
    env = {**environment(), **reexec.VARIABLES, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["bash", "-c", command], cwd=cwd, env=env, input=text, capture_output=True, timeout=240
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("command", ["--help", "--version", "translate --help", "check --schema"])
@pytest.mark.parametrize(
    ("streams", "status", "said"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, FULL),
        ("1</dev/null", 1, "bleuprint: error: Bad file descriptor: standard output\n"),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_what_cannot_be_printed_is_an_error_in_one_line(command, streams, status, said):
    """But where nobody wants it: a closed output, and a pipe whose reader has ended (SIGPIPE)."""
    found, _, error = shell(f"sleep 0; {BLEUPRINT} {command} {streams}")
    if "true" in streams and found == 0:  # the reader ended after all was written
        status = 0
    assert (found, error) == (status, said)


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "<&-", "2> >(true)"])
def test_translations_are_printed_even_if_messages_cannot_be(toy, tmp_path, streams):
    """The text causes notes and warnings: an unknown word, and lines without a translation."""
    text = tmp_path / "text"
    text.write_text("ba be\n\nzzz\n" + "be " * 300 + "\n")
    expected_status, expected_output, expected_messages = shell(f"{TRANSLATE} {text}", toy)
    assert expected_status == 0
    assert "not in the training text" in expected_messages

    status, output, messages = shell(f"{TRANSLATE} {text} {streams}", toy)

    assert status == 0
    assert output == expected_output
    # Only a closed standard input leaves a place to print messages.
    assert messages == (expected_messages if streams == "<&-" else "")


def test_a_stage_works_without_any_standard_stream(toy, tmp_path):
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
        (">&-", "bleuprint: error: standard output is closed\n"),
        ("<&-", "bleuprint: error: standard input is closed\n"),
        ("0>/dev/null", "bleuprint: error: Bad file descriptor: standard input\n"),
        ("--alignment=/dev/full", "bleuprint: error: No space left on device: /dev/full\n"),
        (">/dev/full", FULL),
    ],
)
def test_the_last_message_names_the_stream_or_file_that_fails(toy, redirection, message):
    status, _, messages = shell(f"{TRANSLATE} {redirection}", toy, b"ba be\n")

    assert status == 1
    assert messages.splitlines(keepends=True)[-1] == message


STARTS = {
    "command": [sys.executable, "-m", "bleuprint", "check", "--schema"],
    "stage": [sys.executable, "stages/binarize.py", "no-such-corpus"],
    "restarted": [sys.executable, "stages/translate.py", "no", "such", "1"],
}


@pytest.mark.parametrize("name", STARTS)
def test_ctrl_c_while_a_process_loads_leaves_no_traceback(name):
    """At moments from when our first line runs to the end; before that Python itself starts."""
    command, env = STARTS[name], {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for name_ in reexec.VARIABLES:  # so that it starts again
        env.pop(name_, None)
    streams = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=env, capture_output=True)
    whole = time.monotonic() - began
    interrupted = 0
    for part in range(12):
        process = subprocess.Popen(command, cwd=ROOT, env=env, **streams)
        wait_until_ours(process)
        time.sleep(whole * part / 12)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert b"Traceback" not in error and b"Exception ignored" not in error, error.decode()
        if process.returncode in (-signal.SIGINT, 130):
            interrupted += 1
    assert interrupted


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
