"""The command translate: it translates files, or standard input, with a trained system."""

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
from bleuprint.runtime.wording import counted, is_or_are
from bleuprint.text.fields import join_fields

if TYPE_CHECKING:
    from bleuprint.serving.translator import Translated, Translator

# The number of warnings that are printed one by one; the other ones are counted.
_MAX_WARNINGS = 5


def add_commands(commands: Commands) -> None:
    """Declare the command translate."""
    example = "translate --system small --corpus phrasebook-en-de FILE"
    add = add_command(commands, _translate, example, computes=True)
    add("files", nargs="*", metavar="FILE", help="files to translate (standard input)")
    options.add_search_options(add)
    add("--alignment", metavar="FILE", help="writes WORDS ||| WORDS ||| 0-0 1-2 for each line")
    n_best_help = "the N best of each line, as LINE ||| TEXT ||| SCORE, lines counted from 0"
    add("--n-best", type=count, metavar="N", help=n_best_help)


def _translate(arguments: argparse.Namespace) -> None:
    """Translate lines with a trained system: each line is one sentence."""
    # Arguments are checked first, because importing torch takes seconds.
    job = _check_arguments(arguments)
    from bleuprint.serving.translator import load_translator, translate_lines

    translator = load_translator(job.run, job.decode, job.languages)
    if not arguments.files and sys.stdin and sys.stdin.isatty():
        print_message("Type one sentence per line. Press Ctrl-D to finish.", "note")
    notes = _LineNotes(translator)
    line_number = 0
    # Control characters would change a terminal, so that they are escaped there, but not in a file.
    write = print_escaped if sys.stdout.isatty() else print
    outputs_per_line = arguments.n_best or 1
    with text_output(Path(arguments.alignment or os.devnull)) as alignments:
        for block in translate_lines(translator, arguments.files, outputs_per_line):
            for line_location, translated in block:
                notes.add(line_location, translated)
                if arguments.n_best is None:
                    write(translated.translations[0].text)
                else:
                    for output in translated.translations[: arguments.n_best]:
                        score = f"{output.score:.6f}"
                        write(join_fields(str(line_number), output.text, score))
                if arguments.alignment:
                    print(translator.alignment(translated), file=alignments)
                line_number += 1
            sys.stdout.flush()
            alignments.flush()
    notes.print_summary()


class _LineNotes:
    """Notes on the translated lines.

    The first warnings are printed at once; everything else is counted until all lines are
    translated.
    """

    def __init__(self, translator: "Translator") -> None:
        """Begin without lines; `translator` knows what is unusual in a line."""
        self._translator = translator
        self._line_count = 0
        self._warning_count = 0
        self._word_count = 0
        self._far_longer_lines: list[str] = []
        self._unknown_words = Counter[str]()

    def add(self, line_location: str, translated: "Translated") -> None:
        """Count a line, and warn if its translation may lack a part of it.

        Args:
            line_location: The file and line number, for messages.
            translated: The line and its translations.
        """
        from bleuprint.serving.known_words import find_words

        self._line_count += 1
        for warning in translated.warnings:
            self._warning_count += 1
            if self._warning_count <= _MAX_WARNINGS:
                print_message(f"{line_location}: {warning}", "warning")
        if self._translator.is_far_longer(translated):
            self._far_longer_lines.append(line_location)
        self._word_count += len(find_words(translated.words))
        known_words = self._translator.known_words
        self._unknown_words.update(known_words.unknown_words(translated.words))

    def print_summary(self) -> None:
        """Print the notes on all lines."""
        other_warnings = self._warning_count - _MAX_WARNINGS
        if other_warnings > 0:
            print_message(f"and {other_warnings:,} more such lines", "warning")
        if not self._line_count:
            message = "no input. Pass FILE, or one sentence per line on standard input"
            print_message(message, "note")
        if self._far_longer_lines:
            lines = len(self._far_longer_lines)
            message = (
                f"{self._far_longer_lines[0]}: {counted(lines, 'line')} {is_or_are(lines)} "
                f"{self._translator.long_line_note()}"
            )
            print_message(message, "note")
        if self._unknown_words:
            known_words = self._translator.known_words
            print_message(*known_words.note(self._unknown_words, self._word_count))


@dataclass(frozen=True)
class _TranslationJob:
    """What the arguments ask for.

    Attributes:
        run: The trained run.
        decode: How it translates.
        languages: The source and the target language.
    """

    run: Run
    decode: Decode
    languages: tuple[str, str]


def _check_arguments(arguments: argparse.Namespace) -> _TranslationJob:
    """Check the arguments, and return the run to translate with, its search and the languages.

    Raises:
        UserError: There is a mistake in the arguments, or the run has not been trained.
    """
    if is_stdout_closed():
        raise UserError("standard output is closed")
    settings = load_settings()
    decode = options.chosen_search(settings, arguments)
    if arguments.n_best is not None and arguments.n_best > decode.beam:
        raise UserError(f"--n-best {arguments.n_best} is beyond the beam of {decode.beam}")
    for file in arguments.files:
        path = Path(file)
        if not path.exists() or path.is_dir():
            raise UserError(f"{file}: {describe_non_file(path)}")
    if arguments.alignment:
        _refuse_alignment_in_text(arguments.alignment, arguments.files)
    run = options.trained_run(settings, arguments)
    return _TranslationJob(
        run=run,
        decode=decode,
        languages=options.chosen_languages(settings, arguments),
    )


def _refuse_alignment_in_text(alignment_file: str, text_files: list[str]) -> None:
    """Raise UserError if --alignment names a file that is to be translated, and would be lost.

    Args:
        alignment_file: The argument of --alignment.
        text_files: The files to translate; standard input if there are none.
    """
    with suppress(OSError):  # The file does not exist yet, or standard input is closed.
        alignment_status = Path(alignment_file).stat()
        text_statuses = [Path(file).stat() for file in text_files]
        if not text_files:
            text_statuses.append(os.fstat(0))
        for text_status in text_statuses:
            if os.path.samestat(alignment_status, text_status):
                raise UserError(f"--alignment {alignment_file}: is the text to translate")
