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
    """Add the commands cite, inspect and new-corpus to the command line of bleuprint."""
    add_command(commands, _cite, "cite > references.bib")
    _add_inspect(commands)
    _add_new_corpus(commands)


def _add_inspect(commands: Commands) -> None:
    """Add the command `bleuprint inspect CORPUS` to the command line.

    It samples pairs from a corpus and shows what each cleaning rule would drop.
    """
    add_argument = add_command(commands, _inspect, "inspect phrasebook-en-de")
    add_argument("corpus", metavar="CORPUS", help="a corpus of params.yaml, or CORPUS/PART")
    add_argument(
        "--pairs",
        type=count,
        default=100_000,
        help="pairs to sample from the training texts (%(default)s)",
    )
    add_argument("--seed", type=whole_number(0), default=1, help="sampling seed (%(default)s)")
    add_argument(
        "--samples",
        type=whole_number(1, 5),
        default=3,
        help="samples of each rule (%(default)s)",
    )


def _add_new_corpus(commands: Commands) -> None:
    """Add the command `bleuprint new-corpus FILE FILE` to the command line.

    It adds the user's own text to params.yaml.
    """
    example = "new-corpus inputs/mine.de inputs/mine.en"
    add_argument = add_command(commands, new_corpus, example, imports_torch=True)
    add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the source text, then the target text; or one .tsv, .csv, .jsonl, .parquet, .tmx or "
        ".zip file with both; or a name: opus:CORPUS/VERSION or "
        "huggingface:OWNER/NAME@REVISION/FILE",
    )
    add_argument(
        "--languages",
        nargs=2,
        metavar="CODE",
        help="source and target language, such as de en (by default, from the file names)",
    )
    columns_help = (
        "columns of source and target in a table: two numbers, or two names in its first line; "
        "translation.de is a nested column of .jsonl or .parquet"
    )
    add_argument("--columns", nargs=2, metavar="COLUMN", help=columns_help)


def _cite(_: argparse.Namespace) -> None:
    """Print the BibTeX of what the experiment uses.

    These are the works about its texts and its methods, as entries for a bibliography.
    """
    from bleuprint.report.citations import citations

    print(citations(load_settings()), end="")


def _inspect(arguments: argparse.Namespace) -> None:
    """Show what each rule would drop, with samples.

    The cleaning and filtering rules of a corpus are tried on sentence pairs that are sampled from
    its training texts. Outputs of the experiment are not changed.
    """
    from bleuprint.corpus.download.download import Sample
    from bleuprint.corpus.download.fetch import downloads_of_environment
    from bleuprint.corpus.inspect import inspect_corpus, inspection_lines

    scratch_folder = environment.work_folder() / "inspect"
    inspection = inspect_corpus(
        arguments.corpus,
        load_settings(),
        Sample(arguments.pairs, arguments.seed),
        downloads_of_environment(),
        scratch_folder,
        environment.worker_count(),
    )
    for line in inspection_lines(inspection, arguments.samples):
        print_escaped(line)
    for note in inspection.notes:
        print_message(note, "note")
    if inspection.failure:
        raise UserError(inspection.failure)
