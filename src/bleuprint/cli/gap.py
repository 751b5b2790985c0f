"""`bleuprint gap`: measure why a score is not the published one."""

import argparse

from bleuprint.cli.options import Commands
from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError


def add_commands(commands: Commands) -> None:
    gap = commands.add_parser(
        "gap", help="translate as published numbers were, and split the gap to them into steps"
    )
    gap.add_argument("--system", help="measure this system alone")
    gap.add_argument("--corpus", help="measure on this corpus alone")
    gap.add_argument("--seed", type=int, help="measure the training of this seed alone")
    gap.set_defaults(command=_gap)


def _gap(given: argparse.Namespace) -> None:
    from bleuprint.runtime.malloc import reexec_with_malloc_settings

    reexec_with_malloc_settings()

    from bleuprint.report.frame import RESULTS
    from bleuprint.report.frame import load as load_records
    from bleuprint.report.published import gap_tables
    from bleuprint.report.published.gap import cells_of, measured
    from bleuprint.report.published.variants import measure
    from bleuprint.report.records import check_settings
    from bleuprint.report.terminal import show

    settings = load()
    records = load_records()
    check_settings(records, settings, RESULTS)
    cells = [
        cell
        for cell in cells_of(settings)
        if given.system in (None, cell.system)
        and given.corpus in (None, cell.corpus)
        and given.seed in (None, cell.seed)
    ]
    if not cells:
        raise UserError("params.yaml: no published number names such a system, corpus and seed")
    for cell in cells:
        measure(settings, cell)
    show(gap_tables.parts(settings, measured(settings, records)))
    print("To show it in the report: dvc repro --single-item --force report")
