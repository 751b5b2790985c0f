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
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.regular_files import describe_non_file
from bleuprint.runtime.streams import is_stdout_closed, text_output
from bleuprint.runtime.wording import counted, is_or_are
from bleuprint.text.fields import join_fields

if TYPE_CHECKING:
    from bleuprint.serving.translator import Translated, Translator

# So many warnings about lines are printed; further ones are counted.
_MAX_WARNINGS = 5


def add_commands(commands: Commands) -> None:
    """Add the command `bleuprint translate` and its options to the command line.

    Args:
        commands: The subparsers of the command line, to which argparse adds commands.
    """
    example = "translate --system small --corpus phrasebook-en-de FILE"
    add_argument = add_command(commands, _translate, example, imports_torch=True)
    files_help = "files to translate (standard input)"
    add_argument("files", nargs="*", metavar="FILE", help=files_help)
    options.add_search_options(add_argument)
    alignment_help = "writes WORDS ||| WORDS ||| 0-0 1-2 for each line"
    add_argument("--alignment", metavar="FILE", help=alignment_help)
    n_best_help = "the N best of each line, as LINE ||| TEXT ||| SCORE, lines counted from 0"
    add_argument("--n-best", type=count, metavar="N", help=n_best_help)


def _translate(arguments: argparse.Namespace) -> None:
    """Translate lines with a trained system: each line is one sentence.

    Translations are written to standard output, word alignments to the file of --alignment, and
    notes on unusual lines to standard error.
    """
    # Mistakes in the arguments are reported first: importing torch, below, takes seconds.
    job = _translation_job(arguments)
    from bleuprint.serving.translator import load_translator, translate_lines

    translator = load_translator(job.run, job.decode, job.languages)
    if not arguments.files and sys.stdin and sys.stdin.isatty():
        print_message("Type one sentence per line. Press Ctrl-D to finish.", "note")
    notes = _LineNotes(translator)
    line_number = 0  # Counted over all files, from 0, for --n-best.
    outputs_per_line = arguments.n_best or 1
    # Without --alignment, the file for alignments is the null device, to which nothing is written.
    with text_output(Path(arguments.alignment or os.devnull)) as alignment_file:
        # A block is a group of lines that are translated together.
        for block in translate_lines(translator, arguments.files, outputs_per_line):
            for line_location, translated in block:
                notes.add(line_location, translated)
                _write_translations(line_number, translated, arguments.n_best)
                if arguments.alignment:
                    print(translator.alignment(translated), file=alignment_file)
                line_number += 1
            # A program that reads the output through a pipe gets each block at once.
            sys.stdout.flush()
            alignment_file.flush()
    notes.print_summary()


def _write_translations(line_number: int, translated: "Translated", n_best: int | None) -> None:
    """Write the translation of a line, or its N best translations in the form of --n-best.

    That form is LINE ||| TEXT ||| SCORE, best first.

    Args:
        line_number: The number of the line, counted from 0.
        translated: The line with its translations.
        n_best: How many translations to write at most; None writes only the text of the best.
    """
    if n_best is None:
        _write_line(translated.translations[0].text)
        return
    for translation in translated.translations[:n_best]:
        score = f"{translation.score:.6f}"
        _write_line(join_fields(str(line_number), translation.text, score))


def _write_line(text: str) -> None:
    """Write a line to standard output.

    A translation may contain control characters, which a terminal would obey, so they are escaped
    there. In a file or pipe, they stay unchanged.
    """
    if sys.stdout.isatty():
        print_escaped(text)
    else:
        print(text)


class _LineNotes:
    """Tells the user which translated lines are unusual, on standard error.

    The first warnings are printed at once. Further warnings, unknown words and very long lines are
    counted, and reported when all lines are translated.
    """

    def __init__(self, translator: "Translator") -> None:
        """Begin to count, before the first line.

        Args:
            translator: The model. It also knows the words and the sentence lengths of its training
                text, with which each line is compared.
        """
        self._translator = translator
        self._line_count = 0
        self._warning_count = 0
        self._word_count = 0
        self._far_longer_lines: list[str] = []
        self._unknown_words = Counter[str]()

    def add(self, line_location: str, translated: "Translated") -> None:
        """Count what is unusual in a line, and print its warnings until there are too many.

        Args:
            line_location: The file and line number, such as `news.de:3`.
            translated: The line and its translations, with warnings if a part of the line may not
                have been translated.
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
        """Print the counts of all lines.

        They say how many warnings were not printed, which lines are far longer than the training
        sentences, and which words are unknown. Without any line, print that there is no input.
        """
        unprinted_warnings = self._warning_count - _MAX_WARNINGS
        if unprinted_warnings > 0:
            print_message(f"and {unprinted_warnings:,} more such lines", "warning")
        if not self._line_count:
            message = "no input. Pass FILE, or one sentence per line on standard input"
            print_message(message, "note")
        if self._far_longer_lines:
            # The first of these lines is named, and all are counted.
            first_location = self._far_longer_lines[0]
            line_count = len(self._far_longer_lines)
            print_message(
                f"{first_location}: {counted(line_count, 'line')} {is_or_are(line_count)} "
                f"{self._translator.long_line_note()}",
                "note",
            )
        if self._unknown_words:
            known_words = self._translator.known_words
            message, kind = known_words.note(self._unknown_words, self._word_count)
            print_message(message, kind)


@dataclass(frozen=True)
class _TranslationJob:
    """What the arguments of the command ask for.

    Attributes:
        run: The system, corpus and seed whose trained model translates.
        decode: The settings of the search.
        languages: The source and the target language, such as `("en", "de")`.
    """

    run: Run
    decode: Decode
    languages: tuple[str, str]


def _translation_job(arguments: argparse.Namespace) -> _TranslationJob:
    """Return which model translates, how, and between which languages, as the arguments say.

    All mistakes in the arguments are found here, before anything is translated.

    Raises:
        UserError: There is a mistake in the arguments, or the run has not been trained.
    """
    if is_stdout_closed():
        raise UserError("standard output is closed")
    settings = load_settings()
    decode = options.chosen_search(settings, arguments)
    if arguments.n_best is not None and arguments.n_best > decode.beam:
        raise UserError(
            f"--n-best {arguments.n_best} asks for more translations than the beam of "
            f"{decode.beam} has. Add: --beam {arguments.n_best}"
        )
    for file in arguments.files:
        path = Path(file)
        if not path.exists() or path.is_dir():
            raise UserError(f"{file}: {describe_non_file(path)}")
    if arguments.alignment:
        _refuse_overwriting_text(arguments.alignment, arguments.files)
    run = options.trained_run(settings, arguments)
    return _TranslationJob(
        run=run,
        decode=decode,
        languages=options.chosen_languages(settings, arguments),
    )


def _refuse_overwriting_text(alignment_file: str, text_files: list[str]) -> None:
    """Raise UserError if --alignment names a file with the text to translate.

    The alignments would overwrite the text. Two different paths can lead to the same file, for
    example by a link, so the files are compared instead of the paths.

    Args:
        alignment_file: The argument of --alignment.
        text_files: The files to translate; standard input if there are none.
    """
    standard_input = 0  # Its file descriptor.
    # An OSError says that the file for alignments does not exist yet, or that standard input is
    # closed: then there is no text to overwrite.
    with suppress(OSError):
        alignment_status = Path(alignment_file).stat()
        text_statuses = [Path(file).stat() for file in text_files]
        if not text_files:
            text_statuses.append(os.fstat(standard_input))
        for text_status in text_statuses:
            if os.path.samestat(alignment_status, text_status):
                raise UserError(
                    f"--alignment {alignment_file}: this file contains the text to translate, "
                    "which the alignments would replace. Name another file"
                )
