"""What a process writes: UTF-8 in any locale; messages without secrets and control characters.

Standard output is data and is written unchanged. Standard error is for people: what could control
their terminal is escaped.
"""

import os
import subprocess
import sys

import pytest

from processes import on_terminal

# A text with control characters, which set the title of a terminal or reverse the direction of its
# writing, and the text with these characters escaped.
HOSTILE = "a\x1b]0;title\x07\rb\x9b2J\x7f\u202e\u2066c\u2028d"
ESCAPED = r"a\x1b]0;title\x07\x0db\x9b2J\x7f\u202e\u2066c\u2028d"
LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "cp1252:replace"},
]
PROGRAM = """
import sys, warnings
from bleuprint.runtime.errors import UserError, run_main
from bleuprint.runtime.progress import Progress
{}
run_main(main)
"""


def run(main, **variables):
    """Run a command whose function `main` is given as source; return the finished process.

    Args:
        main: The source of the function.
        **variables: Environment variables of the command.
    """
    command = [sys.executable, "-c", PROGRAM.format(main)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True)


@pytest.mark.parametrize("locale", LOCALES, ids=["ascii", "latin-1", "cp1252"])
def test_standard_output_is_utf_8_in_any_locale(locale):
    r"""Data is written unchanged; only \udce9, a byte that is not UTF-8, must be escaped."""
    process = run(f"def main(): print({'ß日😀 ' + HOSTILE!a}, '\\udce9')", **locale)

    assert process.returncode == 0, process.stderr
    assert process.stdout == f"ß日😀 {HOSTILE} \\udce9\n".encode()


@pytest.mark.parametrize(
    ("locale", "encoding"),
    [(LOCALES[0], "ascii"), (LOCALES[1], "latin-1"), (LOCALES[2], "cp1252")],
    ids=["ascii", "latin-1", "cp1252"],
)
def test_a_message_escapes_characters_that_the_locale_lacks(locale, encoding):
    """A message is written in the encoding of the terminal: ASCII has no ö, none of them has 日."""
    message = "größe.日: no such file"

    process = run(f"def main(): raise UserError({message!a})", **locale)

    assert process.returncode == 1
    expected = f"bleuprint: error: {message}\n"
    assert process.stderr == expected.encode(encoding, "backslashreplace")


@pytest.mark.parametrize(
    "main",
    [
        pytest.param("def main(): raise UserError({})", id="error of the user"),
        pytest.param("def main(): raise ValueError({})", id="bug"),
        pytest.param(
            "def main(): raise OSError(28, 'No space left on device', {})",
            id="error of the machine",
        ),
        pytest.param("def main(): print('warning:', {}, file=sys.stderr)", id="printed warning"),
        pytest.param("def main(): warnings.warn({})", id="warning of Python"),
        pytest.param(
            "def main(): import threading; threading.Thread(target=int, args=({},)).start()",
            id="error in a thread",
        ),
        pytest.param(
            "def main(): Progress('', 1, 'pairs').say({})", id="message beside a progress bar"
        ),
        pytest.param(
            "def main(): import argparse; argparse.ArgumentParser().error({})", id="wrong argument"
        ),
    ],
)
def test_messages_of_every_kind_hide_passwords_and_control_characters(main):
    """A message may quote a text from the internet, whose characters could control a terminal.

    Each case prints the same message in another way: errors, tracebacks, warnings, threads, bars.
    """
    message = f"<{HOSTILE}> postgresql://me:hush@host/db end"

    process = run(main.format(ascii(message)))

    text = process.stderr.decode()
    assert "hush" not in text
    assert "postgresql://***@host/db end" in text
    for character in text:
        assert character.isprintable() or character == "\n", text
    assert "2J" in text  # Printable characters of the quoted text are kept.


def test_escaped_characters_are_shown_by_their_codes():
    r"""The control character ESC is shown as \x1b, for example."""
    process = run(f"def main(): print('<', {HOSTILE!a}, '>', file=sys.stderr)")

    assert process.stderr.decode() == f"< {ESCAPED} >\n"


def test_a_bar_may_move_the_cursor_but_its_label_may_not():
    """Two bars, one below the other, need the terminal sequence "cursor up", ESC [A.

    Sequences in their labels and messages, such as ESC ]0 (set the title), are escaped.
    """
    program = PROGRAM.format(
        "def main():\n"
        f"    outer, inner = Progress({HOSTILE!a}, 3, 'pairs'), Progress('inner', 3, 'B')\n"
        "    inner.advance(); outer.advance(); inner.say('said \\x1b[5m')\n"
        "    inner.close(); outer.close()"
    )

    text = on_terminal([sys.executable, "-c", program])

    assert "\x1b[A" in text
    assert ESCAPED[:20] in text
    assert r"said \x1b[5m" in text
    for control in ("\x9b", "\x07", "\u202e", "\x1b]0", "\x1b[5m"):
        assert control not in text


def test_standard_error_keeps_the_methods_of_a_stream():
    """Our wrapper escapes what is written as text; bytes are written unchanged."""
    process = run(
        "def main():\n"
        "    assert sys.stderr.isatty() is False and sys.stderr.fileno() == 2\n"
        "    sys.stderr.writelines(['a\\x1b', 'b\\n']); sys.stderr.buffer.write(b'c\\n')"
    )

    assert process.stderr == b"a\\x1bb\nc\n"
