"""Commands that show scores: table, compare, verify."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command, count
from bleuprint.config.experiment import Settings, load_settings
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time

if TYPE_CHECKING:
    from bleuprint.report.frame import Records

# The exit status of `bleuprint verify` if results differ; 1 is an error, 2 a wrong argument.
_DIFFERENT = 5
_MORE = (
    "More: bleuprint table --all; reports/index.html, the page; reports/table.md; make ui, the "
    "trainings in MLflow"
)


def add_commands(commands: Commands) -> None:
    add = add_command(commands, _table, "table")
    help_ = "all scores and costs, with notes, however long"
    add("--all", action="store_true", help=help_)
    add = add_command(commands, _compare, "compare tiny small")
    help_ = (
        "SYSTEM, SYSTEM@REVISION or @REVISION: a Git commit or a DVC experiment; SYSTEM may be "
        "'SYSTEM, CORPUS', a row of corpora with the same test sets"
    )
    add("first", metavar="A", help=help_)
    add("second", metavar="B", help="what to compare it with, in the same form")
    add("--corpus", help="one corpus, with sentences")
    help_ = "how many better and how many worse sentences to show (%(default)s)"
    add("--sentences", type=count, default=10, help=help_)
    add = add_command(commands, _verify, "verify HEAD~1")
    help_ = (
        "results.json, a release, a folder with reports/, a Git commit or a DVC experiment; "
        "exit status: 0 same bytes, 5 different"
    )
    add("other", metavar="OTHER", help=help_)


def print_overview(after: Callable[[Settings], Sequence[str]] = lambda _: [_MORE]) -> None:
    """Print the scores of the last report on a screen, and lines `after` them."""
    from bleuprint.report.overview import one_screen
    from bleuprint.report.terminal import show

    with show_elapsed_time("reading the results"):
        settings, records = _results()
        after_them = [*_cautions(settings, records), *after(settings)]
        parts = one_screen(records, after_them)
    show(parts)


def _cautions(settings: Settings, records: "Records") -> list[str]:
    """What makes the results weak, in a line; the page has the evidence."""
    from bleuprint.report.page.cautions import cautions
    from bleuprint.report.page.context import ReportContext

    titles = [each.title for each in cautions(ReportContext(settings, records))]
    return [f"Weak points (see reports/index.html): {'; '.join(titles)}."] if titles else []


def _results() -> tuple[Settings, "Records"]:
    """The settings and the records of the last report, which must be of these settings.

    The page is written if it is older than they are.
    """
    from bleuprint.pipeline.dvc_lock import note_unrecorded
    from bleuprint.report import frame
    from bleuprint.report.records import load_checked
    from bleuprint.report.report import write_html_report_if_outdated

    settings = load_settings()  # first: in another folder than the root this is what is missing
    records = load_checked(settings)
    note_unrecorded(frame.RESULTS)
    try:
        write_html_report_if_outdated(settings, records)
    except OSError as error:  # the scores can be printed in any case
        print_message(f"reports/index.html is not written: {error.strerror}", "note")
    return settings, records


def _table(given: argparse.Namespace) -> None:
    """The experiment's scores and costs, on one screen; writes reports/index.html if outdated."""
    if not given.all:
        print_overview()
        return
    from bleuprint.report.overview import everything
    from bleuprint.report.terminal import show

    with show_elapsed_time("reading the results"):
        _, records = _results()
        parts = everything(records)
    show(parts)


def _compare(given: argparse.Namespace) -> None:
    """Compare two systems or revisions: settings, scores, translations."""
    from bleuprint.report.compare import compare
    from bleuprint.report.terminal import show

    show(compare(given.first, given.second, given.corpus, given.sentences))


def _verify(given: argparse.Namespace) -> None:
    """Compare results with another report: the first stage that differs."""
    from bleuprint.pipeline import verify
    from bleuprint.text.unicode import replace_unprintable

    if not Path("params.yaml").exists():
        raise UserError("params.yaml: no such file; run from the project's root")
    with show_elapsed_time("verify: reading both reports"):
        verification = verify.compare_reports(
            verify.open_own_report(), verify.open_report(given.other)
        )
    for line in verification.lines:
        print_escaped(replace_unprintable(line))
    if not verification.is_same:
        sys.stdout.flush()
        sys.exit(_DIFFERENT)
