"""Commands beside `dvc repro` and `snakemake`: check, settle, record, plots."""

import argparse
import subprocess

from bleuprint.cli.options import Commands
from bleuprint.config.experiment import load
from bleuprint.config.notes import notes
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say


def add_commands(commands: Commands) -> None:
    check = commands.add_parser("check", help="check params.yaml; nothing is run")
    check.set_defaults(command=_check)

    settle = commands.add_parser(
        "settle", help="record edits of comments, docstrings and formatting without running stages"
    )
    settle.set_defaults(command=_settle)

    record = commands.add_parser(
        "record", help="record in DVC the stages that a killed Snakemake run has finished"
    )
    # used by the Snakefile: the stage, its digest and its input files
    record.add_argument("--begin", nargs="+", help=argparse.SUPPRESS)
    record.set_defaults(command=_record)

    plots = commands.add_parser(
        "plots", help="curves and scores of the working tree beside those of other revisions"
    )
    plots.add_argument("revisions", nargs="*", metavar="REVISION", help="as of git (HEAD)")
    plots.set_defaults(command=_plots)


def _check(_: argparse.Namespace) -> None:
    settings = load()
    for note in notes(settings):
        say(note, "note")
    print(f"{settings.experiment}: params.yaml is sound")


def _settle(_: argparse.Namespace) -> None:
    from bleuprint.pipeline.settle import lines, settle

    for line in lines(settle()):
        print(line)


def _record(given: argparse.Namespace) -> None:
    from bleuprint.pipeline import graph

    if given.begin:
        graph.begin(*given.begin)
    else:
        graph.record()


def _plots(given: argparse.Namespace) -> None:
    from bleuprint.report.dvc_plots import html_template

    template = environment.work() / "plots.html"
    template.parent.mkdir(exist_ok=True)
    template.write_text(html_template(), encoding="utf-8")
    command = ["dvc", "plots", "diff", "--html-template", str(template)]
    done = subprocess.run([*command, "--out", str(template.with_suffix("")), *given.revisions])
    if done.returncode:
        raise UserError("dvc plots diff failed")
