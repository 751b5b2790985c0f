"""Commands that look at corpora: cite, inspect, new-corpus."""

import argparse
from pathlib import Path

from bleuprint.cli.new_corpus import new_corpus
from bleuprint.cli.options import Commands, add_command, count, whole_number
from bleuprint.config.experiment import load_settings
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.foreign_text import print_escaped


def add_commands(commands: Commands) -> None:
    add_command(commands, _cite, "cite > references.bib")
    add = add_command(commands, _inspect, "inspect phrasebook-en-de")
    add("corpus", metavar="CORPUS", help="a corpus of params.yaml")
    help_ = "pairs to draw from the training texts (%(default)s)"
    add("--pairs", type=count, default=100_000, help=help_)
    add("--seed", type=whole_number(0), default=1, help="seed of the drawing (%(default)s)")
    add("--samples", type=whole_number(1, 5), default=3, help="samples of each rule (%(default)s)")
    example = "new-corpus inputs/mine.de inputs/mine.en"
    add = add_command(commands, new_corpus, example, computes=True)
    help_ = "the source text, then the target text; or one .tsv or .tmx file with both"
    add("files", nargs="+", type=Path, metavar="FILE", help=help_)
    help_ = "their languages, such as de en (the ends of their names)"
    add("--languages", nargs=2, metavar="CODE", help=help_)
    help_ = (
        "columns of source and target in a .tsv file: two numbers, or two names in its first line"
    )
    add("--columns", nargs=2, metavar="COLUMN", help=help_)


def _cite(_: argparse.Namespace) -> None:
    """The BibTeX of what the experiment uses."""
    from bleuprint.report.citations import citations

    print(citations(load_settings()), end="")


def _inspect(given: argparse.Namespace) -> None:
    """What each rule would drop, with samples."""
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.corpus.inspect import inspect_corpus, inspection_lines

    settings, sample = load_settings(), Sample(given.pairs, given.seed)
    scratch = environment.work_folder() / "inspect"
    inspection = inspect_corpus(
        given.corpus,
        settings,
        sample,
        downloads_of_environment(),
        scratch,
        environment.worker_count(),
    )
    for line in inspection_lines(inspection, given.samples):
        print_escaped(line)
    for note in inspection.notes:
        print_message(note, "note")
    if inspection.failure:
        raise UserError(inspection.failure)
