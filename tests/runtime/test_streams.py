"""What a process writes: UTF-8 in any locale; messages without secrets and control characters."""

import os
import subprocess
import sys

import pytest

from processes import on_terminal

HOSTILE = "a\x1b]0;title\x07\rb\x9b2J\x7f\u202e\u2066c\u2028d"
SHOWN = r"a\x1b]0;title\x07\x0db\x9b2J\x7f\u202e\u2066c\u2028d"
LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    {"PYTHONIOENCODING": "cp1252:replace"},
]
_RUN = """
import sys, warnings
from bleuprint.runtime.errors import UserError, run_main
from bleuprint.runtime.progress import Progress
{}
run_main(main)
"""


def run(program, **variables):
    command = [sys.executable, "-c", _RUN.format(program)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True)


@pytest.mark.parametrize("locale", LOCALES)
def test_data_is_utf_8_in_any_locale(locale):
    done = run(f"def main(): print({'ß日😀 ' + HOSTILE!a}, '\\udce9')", **locale)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"ß日😀 {HOSTILE} \\udce9\n".encode(), "the text as it is"


@pytest.mark.parametrize("locale", LOCALES)
def test_a_message_in_any_locale_is_one_line(locale):
    done = run(f"def main(): raise UserError({'größe.日: no such file'!a})", **locale)
    assert done.returncode == 1
    encoding = locale.get("PYTHONIOENCODING") or {"C": "ascii"}.get(locale["LC_ALL"], "utf-8")
    said = "bleuprint: error: größe.日: no such file\n"
    assert done.stderr == said.encode(encoding.partition(":")[0], "backslashreplace")


@pytest.mark.parametrize(
    "way",
    [
        "def main(): raise UserError({})",
        "def main(): raise ValueError({})",
        "def main(): raise OSError(28, 'No space left on device', {})",
        "def main(): print('warning:', {}, file=sys.stderr)",
        "def main(): warnings.warn({})",
        "def main(): import threading; threading.Thread(target=int, args=({},)).start()",
        "def main(): Progress('', 1, 'pairs').say({})",
        "def main(): import argparse; argparse.ArgumentParser().error({})",
    ],
)
def test_messages_hold_neither_secrets_nor_control_characters(way):
    address = "postgresql://me:hush@host/db"
    done = run(way.format(ascii(f"<{HOSTILE}> {address} end")))
    text = done.stderr.decode()
    assert "hush" not in text and "postgresql://***@host/db end" in text
    assert all(c.isprintable() or c == "\n" for c in text), text
    assert "2J" in text


def test_an_escaped_message_is_still_readable():
    done = run(f"def main(): print('<', {HOSTILE!a}, '>', file=sys.stderr)")
    assert done.stderr.decode() == f"< {SHOWN} >\n"


def test_the_bar_on_a_terminal_moves_the_cursor_and_its_label_does_not():
    """In two bars, one below the other, which need the sequence for "up"."""
    program = _RUN.format(
        "def main():\n"
        f"    outer, inner = Progress({HOSTILE!a}, 3, 'pairs'), Progress('inner', 3, 'B')\n"
        "    inner.advance(); outer.advance(); inner.say('said \\x1b[5m')\n"
        "    inner.close(); outer.close()"
    )
    text = on_terminal([sys.executable, "-c", program])
    assert SHOWN[:20] in text and r"said \x1b[5m" in text
    assert "\x1b[A" in text and not {"\x9b", "\x07", "\u202e"} & {*text}
    assert "\x1b]0" not in text and "\x1b[5m" not in text


def test_a_wrapped_stream_is_still_one():
    done = run(
        "def main():\n"
        "    assert sys.stderr.isatty() is False and sys.stderr.fileno() == 2\n"
        "    sys.stderr.writelines(['a\\x1b', 'b\\n']); sys.stderr.buffer.write(b'c\\n')"
    )
    assert done.stderr == b"a\\x1bb\nc\n", done.stderr
