"""Commands to use with `dvc repro` and `snakemake`: check, settle, clean, work and others."""

import argparse
import json
import os
import subprocess
import sys

from bleuprint.cli.options import Commands, check_root
from bleuprint.config.experiment import Settings, load
from bleuprint.config.notes import check_tokenizers, notes
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.json_schema import json_schema


def add_commands(commands: Commands) -> None:
    check = commands.add_parser("check", help="check params.yaml; nothing is run")
    check.set_defaults(command=_check)

    schema = commands.add_parser("schema", help="the JSON Schema of params.yaml, for editors")
    schema.set_defaults(command=_schema)

    plan = commands.add_parser(
        "plan", help="what dvc repro would run, why, and how long trainings would take here"
    )
    plan.set_defaults(command=_plan, computes=True)

    reproduce = commands.add_parser(
        "reproduce",
        help="check, settle, plan, dvc repro with a line a stage, scores: make reproduce",
    )
    reproduce.set_defaults(command=_reproduce)

    commands.add_parser(  # main calls `exp`
        "exp",
        help="dvc exp; run -S changes only the named entry, also where entries share settings",
    )

    settle = commands.add_parser(
        "settle",
        help="before dvc repro: repair dvc.lock after a kill, set results of removed rows aside, "
        "record edits of comments, docstrings and formatting without running stages",
    )
    settle.set_defaults(command=_settle)

    record = commands.add_parser(
        "record", help="record in DVC the stages that a killed Snakemake run has finished"
    )
    # used by the Snakefile: the stage, its digest and its input files
    record.add_argument("--begin", nargs="+", help=argparse.SUPPRESS)
    record.set_defaults(command=_record)

    clean = commands.add_parser(
        "clean", help="list what params.yaml no longer names: models, data, trainings, downloads"
    )
    clean.add_argument("--yes", action="store_true", help="remove what is listed")
    clean.set_defaults(command=_clean)

    work = commands.add_parser(
        "work", help="list the trainings, downloads and other files in work/, and remove them"
    )
    work.add_argument("--clear", action="store_true", help="remove what is not in use")
    work.add_argument("paths", nargs="*", metavar="PATH", help="list or remove only these (all)")
    work.set_defaults(command=_work)

    plots = commands.add_parser(
        "plots", help="curves and scores of the working tree beside those of other revisions"
    )
    plots.add_argument("revisions", nargs="*", metavar="REVISION", help="revisions of git (HEAD)")
    plots.set_defaults(command=_plots)


def _check(_: argparse.Namespace) -> None:
    from bleuprint.comet.score import missing_parts
    from bleuprint.report.citations import check_published
    from bleuprint.scoring import reachable_sample
    from bleuprint.scoring.bleu import bleu_metric
    from bleuprint.serving.score_outside import check_files

    settings = load()
    check_tokenizers(settings)
    for corpus in settings.corpora.values():
        bleu_metric([], corpus.target)  # raises if it needs a tokenizer that is not installed
    check_published(settings)
    found = *notes(settings), *check_files(settings), *missing_parts(settings)
    for note in (*found, *reachable_sample.notes(settings)):
        say(note, "note")
    print(f"{settings.experiment}: params.yaml is valid")


def _plan(_: argparse.Namespace) -> None:
    from bleuprint.cli.plan import lines

    for line in lines(load()):
        print(line, flush=True)


def _reproduce(given: argparse.Namespace) -> None:
    from bleuprint.cli.reproduce import changes, run_dvc
    from bleuprint.cli.scores import print_summary

    _check(given)
    _settle(given)
    run_dvc()
    print_summary()
    print(changes())


def _settle(_: argparse.Namespace) -> None:
    from bleuprint.pipeline.dvc_lock import repair
    from bleuprint.pipeline.leftovers import set_aside
    from bleuprint.pipeline.settle import lines, settle

    repair()
    set_aside(load())
    for line in lines(settle()):
        print(line)


def _record(given: argparse.Namespace) -> None:
    from bleuprint.pipeline import dvc_lock, recording

    if given.begin:
        recording.begin(*given.begin)
    else:
        dvc_lock.repair()
        recording.record()


def _clean(given: argparse.Namespace) -> None:
    from bleuprint.pipeline.leftovers import leftovers, remove

    unnamed = leftovers(load())
    if not unnamed:
        print("nothing to remove: every file belongs to params.yaml")
        return
    for path, size in unnamed:
        print(f"{size / 1e6:10.1f} MB  {path}")
    print(f"{sum(size for _, size in unnamed) / 1e6:10.1f} MB not named in params.yaml", end="")
    if given.yes:
        remove(path for path, _ in unnamed)
        print(": removed")
    else:
        print("; to remove it: bleuprint clean --yes")


def _work(given: argparse.Namespace) -> None:
    from bleuprint.pipeline.leftovers import remove
    from bleuprint.pipeline.work_files import cache_size, entries

    check_root()
    known = {str(entry.path): entry for entry in entries()}
    names = [os.path.normpath(path) for path in given.paths]
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"{unknown[0]}: not in the list of `bleuprint work`")
    for name in names or known:
        entry = known[name]
        days = f"{entry.age / 86400:.1f} days"
        state = " (in use)" if entry.in_use else ": removed" if given.clear else ""
        print(f"{entry.size / 1e6:10.1f} MB  {days:>12}  {name}  {entry.about}{state}")
        if given.clear and not entry.in_use:
            remove([entry.path])
    size = cache_size()
    print(f"{size / 1e6:10.1f} MB                .dvc/cache  (dvc gc --workspace clears it)")


def _schema(_: argparse.Namespace) -> None:
    print(json.dumps(json_schema(Settings), indent=1))


def _plots(given: argparse.Namespace) -> None:
    from bleuprint.report.dvc_plots import write_html_template

    check_root()
    template = environment.work() / "plots.html"
    template.parent.mkdir(exist_ok=True)
    write_html_template(template)
    command = ["dvc", "plots", "diff", "--html-template", str(template)]
    done = subprocess.run([*command, "--out", str(template.with_suffix("")), *given.revisions])
    if done.returncode:
        sys.exit(done.returncode)  # dvc has printed its error
