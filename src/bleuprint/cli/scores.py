"""Commands that show scores: table, compare, verify, numbers."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command, count
from bleuprint.config.experiment import Settings, load
from bleuprint.runtime.errors import UserError, say

if TYPE_CHECKING:
    from bleuprint.report.frame import Records


def add_commands(commands: Commands) -> None:
    add_command(commands, _table, "table")
    add = add_command(commands, _compare, "compare tiny small")
    help_ = (
        "SYSTEM, SYSTEM@REVISION or REVISION: a commit of git or an experiment of DVC; SYSTEM may "
        "be 'SYSTEM, CORPUS', a row of corpora with the same test sets"
    )
    add("first", metavar="A", help=help_)
    add("second", metavar="B", help="what to compare it with, in the same form")
    add("--corpus", help="one corpus, with sentences")
    help_ = "how many better and how many worse sentences to show (%(default)s)"
    add("--sentences", type=count, default=10, help=help_)
    add = add_command(commands, _verify, "verify HEAD~1")
    help_ = (
        "results.json, a release, a folder with reports/, a revision of git, an experiment of DVC; "
        "exit status: 0 same bytes, 3 within the noise of seeds, 4 if that is unknown, 5 different"
    )
    add("other", metavar="OTHER", help=help_)
    add_command(commands, _numbers, "numbers > numbers.tex")


def print_summary() -> None:
    """Print the scores of the last report, and where the rest is."""
    from bleuprint.report import main_table
    from bleuprint.report.terminal import show

    show(main_table.summary(*_results()))


def _results() -> tuple[Settings, "Records"]:
    """The settings and the records of the last report, which must be of these settings.

    The page is written if it is older than they are.
    """
    from bleuprint.report import frame
    from bleuprint.report.records import check_settings
    from bleuprint.report.report import write_page_if_outdated

    settings = load()  # first: in another folder than the root this is what is missing
    records = frame.load()
    check_settings(records, settings, frame.RESULTS)
    try:
        write_page_if_outdated(settings, records)
    except OSError as error:  # the scores can be printed in any case
        say(f"reports/index.html is not written: {error.strerror}", "note")
    return settings, records


def _table(_: argparse.Namespace) -> None:
    """The experiment's scores and costs."""
    from bleuprint.report import main_table
    from bleuprint.report.terminal import show

    settings, records = _results()
    show(main_table.parts(records, settings.published))


def _compare(given: argparse.Namespace) -> None:
    """Compare two systems or revisions: settings, facts, scores, faults, translations."""
    from bleuprint.report.compare import compare
    from bleuprint.report.terminal import show

    show(compare(given.first, given.second, given.corpus, given.sentences))


def _verify(given: argparse.Namespace) -> None:
    """Compare the results with another report, and name the first stage that differs."""
    from bleuprint.pipeline import verify
    from bleuprint.text.unicode import blank_unprinted

    if not Path("params.yaml").exists():
        raise UserError("params.yaml: no such file; run from the project's root")
    lines, status = verify.lines(verify.open_report("."), verify.open_report(given.other))
    print(*map(blank_unprinted, lines), sep="\n")
    if status:
        sys.stdout.flush()
        sys.exit(status)


def _numbers(_: argparse.Namespace) -> None:
    """Every number as a LaTeX macro."""
    from bleuprint.report.paper_numbers import numbers_tex

    print(numbers_tex(_results()[1]), end="")
