"""Commands that show scores: table, compare, power, numbers."""

import argparse
import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, check_root, count
from bleuprint.config.experiment import Settings, load
from bleuprint.runtime.errors import UserError, say

if TYPE_CHECKING:
    from pandas import DataFrame


def add_commands(commands: Commands) -> None:
    table = commands.add_parser("table", help="the experiment's scores and costs")
    table.add_argument(
        "--format",
        choices=("terminal", "markdown", "csv", "latex"),
        default="terminal",
        help="(%(default)s)",
    )
    table.set_defaults(command=_table)

    compare = commands.add_parser(
        "compare", help="differences of settings, data, code, curves, scores and translations"
    )
    revision = "SYSTEM, SYSTEM@REVISION or REVISION: a commit of git or an experiment of DVC"
    compare.add_argument("first", metavar="A", help=revision)
    compare.add_argument("second", metavar="B", help="what to compare it with, likewise")
    compare.add_argument("--corpus", help="one corpus, with sentences")
    compare.add_argument(
        "--sentences",
        type=count,
        default=10,
        help="number of better, and of worse sentences (%(default)s)",
    )
    compare.set_defaults(command=_compare)

    verify = commands.add_parser(
        "verify", help="whether the results are those of another report, and where they differ"
    )
    verify.add_argument(
        "other",
        metavar="OTHER",
        help="results.json, a release, a folder with reports/, a revision of git, an experiment "
        "of DVC; exit status: 0 the same bytes, 3 the same within the noise of seeds, "
        "4 different, 1 an error",
    )
    verify.set_defaults(command=_verify)

    power = commands.add_parser(
        "power", help="the differences that test sets and seeds show, and what smaller ones take"
    )
    power.add_argument("--system", help="compare this system alone")
    power.add_argument("--baseline", help="the system to compare with (the first of params.yaml)")
    power.add_argument(
        "--difference", type=_difference, help="BLEU to find (the difference that was measured)"
    )
    power.set_defaults(command=_power)

    numbers = commands.add_parser("numbers", help="every number as a LaTeX macro")
    numbers.set_defaults(command=_numbers)


def _results() -> tuple[Settings, "DataFrame"]:
    """The settings and the records of the last report, which must be of these settings."""
    from bleuprint.report import frame
    from bleuprint.report.records import check_settings

    settings = load()  # first: in another folder than the root this is what is missing
    records = frame.load()
    check_settings(records, settings, frame.RESULTS)
    return settings, records


def _noted_results() -> tuple[Settings, "DataFrame"]:
    """The same, with a note if the records have changed since."""
    from bleuprint.pipeline.dvc_lock import differs
    from bleuprint.report import frame

    results = _results()
    if differs(frame.RESULTS):
        say(f"{frame.RESULTS}: {frame.CHANGED}", "note")
    return results


def print_summary() -> None:
    """Print the scores of the last report, and where the rest is."""
    from bleuprint.report import main_table
    from bleuprint.report.terminal import show

    show(main_table.summary(*_results_with_page()))


def _results_with_page() -> tuple[Settings, "DataFrame"]:
    """The settings and the noted records; the page is written if it is older than they are."""
    from bleuprint.report.report import write_page_if_outdated

    results = _noted_results()
    try:
        write_page_if_outdated(*results)
    except OSError as error:  # the scores can be printed in any case
        say(f"reports/index.html is not written: {error.strerror}", "note")
    return results


def _table(given: argparse.Namespace) -> None:
    from bleuprint.report import frame, main_table
    from bleuprint.report.grid import bullets, markdown
    from bleuprint.report.terminal import show

    settings, records = _results_with_page()
    published = settings.published
    if given.format == "csv":
        print(frame.csv_text(records, published), end="")
    elif given.format == "latex":
        print(main_table.tex(settings, records), end="")
    elif given.format == "markdown":
        print(markdown(main_table.scores(records, published=published)))
        print(bullets(main_table.notes(records, published, Path())), end="")
    else:
        show(main_table.parts(records, published))


def _compare(given: argparse.Namespace) -> None:
    from bleuprint.report.compare import compare
    from bleuprint.report.terminal import show

    show(compare(given.first, given.second, given.corpus, given.sentences))


def _verify(given: argparse.Namespace) -> None:
    from bleuprint.pipeline import verify
    from bleuprint.text.unicode import blank_unprinted

    check_root()
    lines, status = verify.lines(verify.open_report("."), verify.open_report(given.other))
    print(*map(blank_unprinted, lines), sep="\n")
    if status:
        sys.stdout.flush()
        sys.exit(status)


def _power(given: argparse.Namespace) -> None:
    from bleuprint.report import power_table
    from bleuprint.report.records import collect
    from bleuprint.report.terminal import show

    settings = load()
    first, *_ = settings.systems
    baseline = given.baseline or first
    outside = {name for rows in (settings.outside or {}).values() for name in rows}
    if given.system and given.system not in outside:
        settings.system(given.system)
    if given.system == baseline:
        raise UserError(f"{baseline}: compared with itself")
    if baseline == first:
        _, records = _results()
    else:
        names = [n for n in settings.systems if n != baseline and given.system in (None, n)]
        cells = {name: settings.cells[name] for name in (baseline, *names)}
        records = collect(dataclasses.replace(settings, cells=cells))
    if given.system:
        records = records[records.system.isin([baseline, given.system])]
    show(power_table.parts(records, given.difference))


def _difference(text: str) -> float:
    """For argparse: a difference in BLEU."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, 100 at most")
    return number


def _numbers(_: argparse.Namespace) -> None:
    from bleuprint.report.paper_numbers import numbers_tex

    print(numbers_tex(_noted_results()[1]), end="")
