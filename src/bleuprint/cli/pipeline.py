"""Commands to use with `dvc repro` and `snakemake`: check, plan, reproduce, record."""

import argparse
import json

from bleuprint.cli.options import Commands, add_command, check_root
from bleuprint.config.experiment import load
from bleuprint.config.notes import check_tokenizers, notes
from bleuprint.config.params_schema import params_schema
from bleuprint.runtime.errors import say


def add_commands(commands: Commands) -> None:
    check = add_command(commands, _check, "check")
    help_ = "print the JSON Schema of params.yaml, for editors"
    check.add_argument("--schema", action="store_true", help=help_)
    help_ = "print all settings of a system or a corpus, and where each comes from"
    check.add_argument("--resolved", metavar="NAME", help=help_)
    add_command(commands, _plan, "plan")
    add_command(commands, _reproduce, "reproduce")
    record = add_command(commands, _record, "record")
    # used by the Snakefile: the stage, its digest and its input files
    record.add_argument("--begin", nargs="+", help=argparse.SUPPRESS)


def _check(given: argparse.Namespace) -> None:
    """Check params.yaml; nothing is run."""
    from bleuprint.cli.resolved import lines

    if given.schema:
        print(json.dumps(params_schema(), indent=1))
    elif given.resolved:
        print(*lines(given.resolved), sep="\n")
    else:
        _check_settings()


def _check_settings() -> None:
    from bleuprint.report.citations import check_published
    from bleuprint.scoring import reachable
    from bleuprint.scoring.bleu import bleu_metric
    from bleuprint.scoring.comet import missing_parts
    from bleuprint.serving.score_outside import check_files

    settings = load()
    check_tokenizers(settings)
    for corpus in settings.corpora.values():
        bleu_metric([], corpus.target)  # raises if it needs a tokenizer that is not installed
    check_published(settings)
    found = *notes(settings), *check_files(settings), *missing_parts(settings)
    for note in (*found, *reachable.notes_before(settings)):
        say(note, "note")
    print(f"{settings.experiment}: params.yaml is valid")


def _plan(_: argparse.Namespace) -> None:
    """What dvc repro would run, why, and how long it took before."""
    from bleuprint.cli.plan import lines

    for line in lines():
        print(line, flush=True)


def _reproduce(_: argparse.Namespace) -> None:
    """Check params.yaml, run dvc repro with one line per stage, print the scores."""
    from bleuprint.cli.reproduce import changes, run_stages
    from bleuprint.cli.scores import print_summary

    _check_settings()
    run_stages()
    print_summary()
    print(changes())


def _record(given: argparse.Namespace) -> None:
    """Record finished stages in DVC after a killed Snakemake run, and missing runs in MLflow."""
    from bleuprint.pipeline import recording

    if given.begin:
        recording.begin(*given.begin)
        return
    from bleuprint.tracking.sync import sync

    check_root()
    recording.record()
    for line in sync(load()):
        print(line, flush=True)
