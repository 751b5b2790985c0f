"""The command translate."""

import argparse
import os
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from bleuprint.cli import options
from bleuprint.cli.options import Commands, add_command, count
from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import Cell
from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import not_a_file

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
    """Translate sentences with a trained system, one line for each line."""
    settings, cell, decode = _checked(given)
    # they load torch, which takes seconds: what is wrong with the arguments is said before
    from bleuprint.serving.known_words import words
    from bleuprint.serving.sentence_translator import SentenceTranslator
    from bleuprint.serving.translator import load_translator, translate_lines

    translator = load_translator(
        settings, cell, decode, SentenceTranslator, direction=given.direction
    )
    if not given.files and sys.stdin and sys.stdin.isatty():
        say("type a sentence a line; Ctrl-D ends", "note")
    with Path(given.alignment or os.devnull).open("w", encoding="utf-8") as alignments:
        warned, number, count, unknown = 0, 0, 0, Counter[str]()
        for block in translate_lines(translator, given.files, given.n_best or 1):
            for place, translated in block:
                for warning in translated.warnings:
                    warned += 1
                    if warned <= _WARNED:
                        say(f"{place}: {warning}", "warning")
                best = translated.best
                for each in best[: given.n_best or 0]:
                    print(f"{number} ||| {each.text} ||| {each.score:.6f}")
                if given.n_best is None:
                    print(best[0].text)
                if given.alignment:
                    print(translator.alignment(translated), file=alignments)
                number += 1
                count += len(words(translated.words))
                unknown.update(translator.known.unknown(translated.words))
            sys.stdout.flush()
            alignments.flush()
    if (more := warned - _WARNED) > 0:
        say(f"and {more:,} more such lines", "warning")
    if not number:
        say("nothing to translate: give a sentence a line, in FILE or on standard input", "note")
    if unknown:
        say(*translator.known.note(unknown, count))


def _checked(given: argparse.Namespace) -> tuple[Settings, Cell, Decode]:
    """The settings, the training and its search; raises UserError at a mistake."""
    if sys.stdout is None:
        raise UserError("standard output is closed")
    settings = load()
    decode = options.chosen_search(settings, given)
    if (given.n_best or 1) > decode.beam:
        raise UserError(f"--n-best {given.n_best} is beyond the beam of {decode.beam}")
    for file in given.files:
        if not Path(file).exists() or Path(file).is_dir():
            raise UserError(f"{file}: {not_a_file(Path(file))}")
    with suppress(OSError):  # the file is not there yet, or standard input is closed
        texts = [Path(file).stat() for file in given.files] or [os.fstat(0)]
        written = given.alignment and Path(given.alignment).stat()
        if any(written and os.path.samestat(written, text) for text in texts):
            raise UserError(f"--alignment {given.alignment}: is the text to translate")
    return settings, options.trained_cell(settings, given), decode
