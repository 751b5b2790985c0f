"""Commands to use with `dvc repro` and `snakemake`: check, plan, reproduce, sync."""

import argparse
import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command
from bleuprint.config.experiment import load_settings
from bleuprint.config.notes import check_tokenizers, params_notes
from bleuprint.config.params_schema import params_schema
from bleuprint.runtime.errors import print_message
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.wording import counted

if TYPE_CHECKING:
    from bleuprint.pipeline.plan import PlannedStage


def add_commands(commands: Commands) -> None:
    add = add_command(commands, _check, "check")
    add("--schema", action="store_true", help="print the JSON Schema of params.yaml, for editors")
    add_command(commands, _plan, "plan")
    add_command(commands, _reproduce, "reproduce")
    add = add_command(commands, _sync, "sync")
    # used by the Snakefile: the stage, its digest and its input files
    add("--begin", nargs="+", help=argparse.SUPPRESS)


def _check(given: argparse.Namespace) -> None:
    """Check params.yaml; nothing is run."""
    if given.schema:
        print(json.dumps(params_schema(), indent=1))
    else:
        _check_settings()


def _check_settings() -> None:
    from bleuprint.corpus.set_notes import notes_on_sets
    from bleuprint.corpus.text_notes import notes_on_local_texts
    from bleuprint.pipeline.resolve import resolved_settings
    from bleuprint.report.citations import citations
    from bleuprint.scoring import bleu_ceiling
    from bleuprint.scoring.bleu import bleu_metric
    from bleuprint.scoring.comet import notes_on_missing_comet
    from bleuprint.scoring.external_files import check_external_files
    from bleuprint.training.schedule_notes import schedule_notes

    settings = load_settings()
    resolved_settings(settings)  # raises if a folder of outputs or of weights cannot be used
    check_tokenizers(settings)
    for corpus in settings.language_pairs().values():
        bleu_metric([], corpus.target)  # raises if it needs a tokenizer that is not installed
    citations(settings)  # raises if one key names two entries
    notes = [
        *params_notes(settings),
        *check_external_files(settings),
        *notes_on_missing_comet(settings),
    ]
    notes += [*notes_on_local_texts(settings), *notes_on_sets(settings), *schedule_notes(settings)]
    notes += bleu_ceiling.ceiling_notes_before_run(settings)
    for note in notes:
        print_message(note, "note")
    print(f"{settings.experiment}: params.yaml is valid")


def _plan(_: argparse.Namespace) -> None:
    """What make reproduce would run, why, and how long it took before."""
    from bleuprint.pipeline.plan import planned_stages
    from bleuprint.pipeline.project_lock import hold_project

    load_settings()  # work/, of the lock, is the project's
    # while stages run, their outputs are half written
    with (
        hold_project("bleuprint plan", writes=False),
        show_elapsed_time("plan: reading what has changed"),
    ):
        planned = planned_stages()
    if not planned:
        print("all stages are up to date: make reproduce would run none")
    for kind, group in groupby(planned, lambda each: each.stage.kind):
        stages = list(group)
        name = stages[0].stage.name if len(stages) == 1 else f"{kind}, {len(stages)} stages"
        print_escaped(f"{name:<36}  {_reasons([each.why for each in stages])}{_took(stages)}")
    if times := _times(planned):
        print(times)


def _took(stages: Sequence["PlannedStage"]) -> str:
    """How long some stages took before, if that is known of all."""
    from bleuprint.runtime.wording import duration

    own = [each.last_seconds for each in stages if each.last_seconds is not None]
    others = [each.last_seconds_with_another_seed for each in stages]
    of_others = [seconds for seconds in others if seconds is not None]
    if len(own) + len(of_others) < len(stages):
        return ""
    seed = " with another seed" if of_others else ""
    return f"; took {duration(sum(own) + sum(of_others))}{seed}"


def _times(planned: Sequence["PlannedStage"]) -> str:
    """How long the planned stages took before in all, and of which that is not known."""
    from bleuprint.runtime.wording import duration

    known, unknown = list[float](), list[str]()
    for each in planned:
        seconds = (
            each.last_seconds
            if each.last_seconds is not None
            else each.last_seconds_with_another_seed
        )
        if seconds is None:
            unknown.append(each.stage.kind)
        else:
            known.append(seconds)
    if not known:
        return ""
    line = f"{len(known)} of these took {duration(sum(known))} when they last ran here"
    if unknown:
        kinds = ", ".join(dict.fromkeys(unknown))
        line += f"; not known: the time of {counted(len(unknown), 'other')} ({kinds})"
    return line


def _reasons(whys: Sequence[str]) -> str:
    """The first of each form: what differs in the names of a run alone is said once."""
    first = dict[str, str]()
    for why in whys:
        first.setdefault(re.sub(r"\S*[.@/]\S*", "", why), why)
    return "; ".join(first.values())


def _reproduce(_: argparse.Namespace) -> None:
    """Check params.yaml, run what has changed, print the scores."""
    from bleuprint.cli.reproduce import ending, run_stages
    from bleuprint.cli.scores import print_overview
    from bleuprint.tracking.sync import update_or_note

    _check_settings()
    settings = load_settings()
    try:
        run_stages()
    except SystemExit:  # a stage has failed; others may have finished
        update_or_note(settings)
        raise
    # a stage whose outputs are up to date does not run, so that it logs nothing
    update_or_note(settings)
    print_overview(ending)


def _sync(given: argparse.Namespace) -> None:
    """Record what a killed Snakemake run has finished, in DVC and MLflow."""
    from bleuprint.pipeline import recording

    if given.begin:
        recording.mark_started(*given.begin)
        return
    from bleuprint.pipeline.project_lock import hold_project
    from bleuprint.tracking.sync import sync

    settings = load_settings()
    with hold_project("bleuprint sync"):
        recording.record_finished()
    for line in sync(settings):
        print_escaped(line)
