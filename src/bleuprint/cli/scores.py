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
_RESULTS_DIFFER_STATUS = 5
_OTHER_VIEWS = (
    "More: bleuprint table --all; reports/index.html, the HTML report; reports/table.md; make ui, "
    "the trainings in MLflow"
)


def add_commands(commands: Commands) -> None:
    """Add the commands table, compare and verify to the command line of bleuprint.

    Args:
        commands: The subparsers of the command line, to which argparse adds commands.
    """
    add_argument = add_command(commands, _table, "table")
    all_help = "all scores and costs, with notes, however long"
    add_argument("--all", action="store_true", help=all_help)

    add_argument = add_command(commands, _compare, "compare tiny small")
    first_help = (
        "SYSTEM, SYSTEM@REVISION or @REVISION: a Git commit or a DVC experiment; SYSTEM may be "
        "'SYSTEM, CORPUS', a row of corpora with the same test sets"
    )
    add_argument("first", metavar="A", help=first_help)
    add_argument("second", metavar="B", help="what to compare it with, in the same form")
    add_argument("--corpus", help="one corpus, with sentences")
    sentences_help = "how many better and how many worse sentences to show (%(default)s)"
    add_argument("--sentences", type=count, default=10, help=sentences_help)

    add_argument = add_command(commands, _verify, "verify HEAD~1")
    other_help = (
        "results.json, a release, a folder with reports/, a Git commit or a DVC experiment; "
        "exit status: 0 same bytes, 5 different"
    )
    add_argument("other", metavar="OTHER", help=other_help)


def _line_about_other_views(_: Settings) -> list[str]:
    """Return the line that says where else the results are shown, such as in the HTML report."""
    return [_OTHER_VIEWS]


def print_overview(
    closing_lines: Callable[[Settings], Sequence[str]] = _line_about_other_views,
) -> None:
    """Print the scores of the last run in tables that fit the terminal, with closing lines.

    Args:
        closing_lines: A function that returns the lines below the scores, given the settings. By
            default a line says where else the results are shown.
    """
    from bleuprint.report.overview import one_screen
    from bleuprint.report.terminal import show

    with show_elapsed_time("reading the results"):
        settings, records = _read_results()
        lines = [*_weak_points(settings, records), *closing_lines(settings)]
        tables_and_lines = one_screen(records, lines)
    show(tables_and_lines)


def _weak_points(settings: Settings, records: "Records") -> list[str]:
    """Return a line that names the weak points of the results, such as a small test set.

    The HTML report shows the evidence for each of them. Without weak points, the list is empty.

    Args:
        settings: The settings of the experiment.
        records: The results from which the report was written.
    """
    from bleuprint.report.page.cautions import cautions
    from bleuprint.report.page.report_data import ReportData

    titles = [caution.title for caution in cautions(ReportData(settings, records))]
    if not titles:
        return []
    return [f"Weak points (see reports/index.html): {'; '.join(titles)}."]


def _read_results() -> tuple[Settings, "Records"]:
    """Read the settings and the results of the last run; write the HTML report if it is outdated.

    `dvc pull` downloads the results, but not the HTML report, which DVC does not track.

    Returns:
        The settings in params.yaml, and the records in reports/results.json.

    Raises:
        UserError: The results are missing, or they were computed with other settings.
    """
    from bleuprint.pipeline.dvc_lock import print_note_if_unrecorded
    from bleuprint.report import frame
    from bleuprint.report.records import load_checked
    from bleuprint.report.report import write_html_report_if_outdated

    # The settings are read first. Outside of a project, the error should say that params.yaml is
    # missing, rather than that the results are missing.
    settings = load_settings()
    records = load_checked(settings)
    print_note_if_unrecorded(frame.RESULTS)
    try:
        write_html_report_if_outdated(settings, records)
    except OSError as error:  # The scores can be printed without the HTML report.
        print_message(f"reports/index.html could not be written: {error.strerror}", "note")
    return settings, records


def _table(arguments: argparse.Namespace) -> None:
    """Print scores and costs on one screen; writes reports/index.html if outdated.

    With --all, all scores and costs are printed, with notes, however long this is.
    """
    if not arguments.all:
        print_overview()
        return
    from bleuprint.report.overview import everything
    from bleuprint.report.terminal import show

    with show_elapsed_time("reading the results"):
        _, records = _read_results()
        tables_and_lines = everything(records)
    show(tables_and_lines)


def _compare(arguments: argparse.Namespace) -> None:
    """Compare two systems or revisions: settings, scores, translations.

    With --corpus, the sentences that became better and worse are shown, too, as many as
    --sentences says.
    """
    from bleuprint.report.compare import compare
    from bleuprint.report.terminal import show

    show(compare(arguments.first, arguments.second, arguments.corpus, arguments.sentences))


def _verify(arguments: argparse.Namespace) -> None:
    """Compare results with another report: the first stage that differs.

    The process exits with status 5 if results differ.
    """
    from bleuprint.pipeline import verify
    from bleuprint.text.unicode import replace_unprintable

    if not Path("params.yaml").exists():
        raise UserError("params.yaml: no such file. Run the command from the project's root")
    with show_elapsed_time("verify: reading both reports"):
        own_report = verify.open_own_report()
        other_report = verify.open_report(arguments.other)
        verification = verify.compare_reports(own_report, other_report)
    for line in verification.lines:
        print_escaped(replace_unprintable(line))
    if not verification.is_same:
        sys.stdout.flush()
        sys.exit(_RESULTS_DIFFER_STATUS)
