"""The command translate."""

import argparse
import os
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli import options
from bleuprint.cli.options import Commands, add_command, count
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import describe_non_file
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.streams import is_stdout_closed, text_output
from bleuprint.text.fields import join_fields

if TYPE_CHECKING:
    from bleuprint.serving.translator import Translated, Translator

# How many lines that may have lost text are named.
_WARNED = 5


def add_commands(commands: Commands) -> None:
    example = "translate --system small --corpus phrasebook-en-de FILE"
    add = add_command(commands, _translate, example, computes=True)
    add("files", nargs="*", metavar="FILE", help="files to translate (standard input)")
    options.add_search_options(add)
    add("--alignment", metavar="FILE", help="writes WORDS ||| WORDS ||| 0-0 1-2 for each line")
    help_ = "the N best of each line, as LINE ||| TEXT ||| SCORE, lines counted from 0"
    add("--n-best", type=count, metavar="N", help=help_)


def _translate(given: argparse.Namespace) -> None:
    """Translate lines with a trained system: each line is one sentence."""
    chosen = _checked(given)
    # it loads torch, which takes seconds: what is wrong with the arguments is said before
    from bleuprint.serving.translator import load_translator, translate_lines

    translator = load_translator(chosen.run, chosen.decode, chosen.languages)
    if not given.files and sys.stdin and sys.stdin.isatty():
        print_message("type a sentence a line; Ctrl-D ends", "note")
    notes, number = _Notes(translator), 0
    # a file gets the translations as they are, a terminal none that it would obey
    write = print_escaped if sys.stdout.isatty() else print
    with text_output(Path(given.alignment or os.devnull)) as alignments:
        for block in translate_lines(translator, given.files, given.n_best or 1):
            for place, translated in block:
                notes.add(place, translated)
                if given.n_best is None:
                    write(translated.translations[0].text)
                for each in translated.translations[: given.n_best or 0]:
                    write(join_fields(str(number), each.text, f"{each.score:.6f}"))
                if given.alignment:
                    print(translator.alignment(translated), file=alignments)
                number += 1
            sys.stdout.flush()
            alignments.flush()
    notes.end()


class _Notes:
    """What is said of the lines: of the first few that may have lost text at once, then sums."""

    def __init__(self, translator: "Translator") -> None:
        self._translator = translator
        self._lines = self._warned = self._words = 0
        self._far_longer: list[str] = []
        self._unknown = Counter[str]()

    def add(self, place: str, translated: "Translated") -> None:
        """Count a line, and say what its translation may have lost."""
        from bleuprint.serving.known_words import find_words

        self._lines += 1
        for warning in translated.warnings:
            self._warned += 1
            if self._warned <= _WARNED:
                print_message(f"{place}: {warning}", "warning")
        if self._translator.is_far_longer(translated):
            self._far_longer.append(place)
        self._words += len(find_words(translated.words))
        self._unknown.update(self._translator.known_words.unknown_words(translated.words))

    def end(self) -> None:
        """Say what is counted over all lines."""
        if self._warned > _WARNED:
            print_message(f"and {self._warned - _WARNED:,} more such lines", "warning")
        if not self._lines:
            text = "nothing to translate: give a sentence a line, in FILE or on standard input"
            print_message(text, "note")
        if self._far_longer:
            count, first = len(self._far_longer), self._far_longer[0]
            lines = "1 line is" if count == 1 else f"{count:,} lines are"
            print_message(f"{first}: {lines} {self._translator.long_line_note()}", "note")
        if self._unknown:
            print_message(*self._translator.known_words.note(self._unknown, self._words))


@dataclass(frozen=True)
class _Chosen:
    """What the arguments name: a training, its search, and the languages of the text."""

    run: Run
    decode: Decode
    languages: tuple[str, str]


def _checked(given: argparse.Namespace) -> _Chosen:
    """What the arguments name; raises UserError at a mistake."""
    if is_stdout_closed():
        raise UserError("standard output is closed")
    settings = load_settings()
    decode = options.chosen_search(settings, given)
    if (given.n_best or 1) > decode.beam:
        raise UserError(f"--n-best {given.n_best} is beyond the beam of {decode.beam}")
    for file in given.files:
        if not Path(file).exists() or Path(file).is_dir():
            raise UserError(f"{file}: {describe_non_file(Path(file))}")
    with suppress(OSError):  # the file is not there yet, or standard input is closed
        texts = [Path(file).stat() for file in given.files] or [os.fstat(0)]
        written = given.alignment and Path(given.alignment).stat()
        if any(written and os.path.samestat(written, text) for text in texts):
            raise UserError(f"--alignment {given.alignment}: is the text to translate")
    run = options.trained_run(settings, given)
    return _Chosen(run, decode, options.chosen_languages(settings, given))
