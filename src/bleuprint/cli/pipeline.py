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
    """Declare the commands check, plan, reproduce and sync."""
    add_argument = add_command(commands, _check, "check")
    schema_help = "print the JSON Schema of params.yaml, for editors"
    add_argument("--schema", action="store_true", help=schema_help)
    add_command(commands, _plan, "plan")
    add_command(commands, _reproduce, "reproduce")
    add_argument = add_command(commands, _sync, "sync")
    # The Snakefile uses this option: the stage that begins, its digest and its input files.
    add_argument("--begin", nargs="+", help=argparse.SUPPRESS)


def _check(arguments: argparse.Namespace) -> None:
    """Check params.yaml; nothing is run."""
    if arguments.schema:
        print(json.dumps(params_schema(), indent=1))
    else:
        _check_settings()


def _check_settings() -> None:
    """Check params.yaml and what it names; print notes, and that the settings are valid.

    Raises:
        UserError: There is a mistake, or something that a stage needs is missing.
    """
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
    resolved_settings(settings)  # Raises UserError if a folder of outputs or weights is unusable.
    check_tokenizers(settings)
    for corpus in settings.language_pairs().values():
        bleu_metric([], corpus.target)  # Raises UserError if its tokenizer is not installed.
    citations(settings)  # Raises UserError if one key names two BibTeX entries.
    notes = [
        *params_notes(settings),
        *check_external_files(settings),
        *notes_on_missing_comet(settings),
        *notes_on_local_texts(settings),
        *notes_on_sets(settings),
        *schedule_notes(settings),
        *bleu_ceiling.ceiling_notes_before_run(settings),
    ]
    for note in notes:
        print_message(note, "note")
    print(f"{settings.experiment}: params.yaml is valid")


def _plan(_: argparse.Namespace) -> None:
    """Show what make reproduce would run, why, and how long it took before."""
    from bleuprint.pipeline.plan import planned_stages
    from bleuprint.pipeline.project_lock import hold_project

    load_settings()  # Raises UserError outside of a project, where no lock may be made.
    # A run in progress must not be read, since outputs of running stages are half written.
    with (
        hold_project("bleuprint plan", writes=False),
        show_elapsed_time("plan: reading what has changed"),
    ):
        planned = planned_stages()
    if not planned:
        print("all stages are up to date: make reproduce would run none")
        return
    for kind, group in groupby(planned, key=_kind_of_stage):
        stages = list(group)
        name = f"{kind}, {len(stages)} stages"
        if len(stages) == 1:
            name = stages[0].stage.name
        reasons = _join_reasons([stage.why for stage in stages])
        print_escaped(f"{name:<36}  {reasons}{_duration_note(stages)}")
    total = _total_duration(planned)
    if total:
        print(total)


def _kind_of_stage(planned_stage: "PlannedStage") -> str:
    """Return the kind of a stage, such as train."""
    return planned_stage.stage.kind


def _last_seconds(planned_stage: "PlannedStage") -> float | None:
    """Return how long a stage took before, if need be with another seed; None if unknown."""
    if planned_stage.last_seconds is not None:
        return planned_stage.last_seconds
    return planned_stage.last_seconds_with_another_seed


def _duration_note(stages: Sequence["PlannedStage"]) -> str:
    """Return how long stages of one kind took before, to follow the reasons.

    Returns:
        The sum; an empty text if the duration of a stage is not known.
    """
    from bleuprint.runtime.wording import duration

    total_seconds = 0.0
    has_other_seeds = False
    for stage in stages:
        seconds = _last_seconds(stage)
        if seconds is None:
            return ""
        total_seconds += seconds
        if stage.last_seconds is None:
            has_other_seeds = True
    other_seeds = " with another seed" if has_other_seeds else ""
    return f"; took {duration(total_seconds)}{other_seeds}"


def _total_duration(planned: Sequence["PlannedStage"]) -> str:
    """Return how long all planned stages took before, and for how many this is not known.

    Returns:
        A line; an empty text if no duration is known.
    """
    from bleuprint.runtime.wording import duration

    known_seconds = []
    unknown_kinds = []
    for stage in planned:
        seconds = _last_seconds(stage)
        if seconds is None:
            unknown_kinds.append(stage.stage.kind)
        else:
            known_seconds.append(seconds)
    if not known_seconds:
        return ""
    total = duration(sum(known_seconds))
    line = f"{len(known_seconds)} of these took {total} when they last ran here"
    if unknown_kinds:
        other_stages = counted(len(unknown_kinds), "other")
        kinds_text = ", ".join(dict.fromkeys(unknown_kinds))
        line += f"; not known: the time of {other_stages} ({kinds_text})"
    return line


def _join_reasons(reasons: Sequence[str]) -> str:
    """Return the reasons why stages run, without those that differ only in names of runs or files.

    Of `after translate@a-1` and `after translate@b-1`, only the first is told.
    """
    first_reasons = dict[str, str]()
    for reason in reasons:
        # Names of stages and paths contain one of these characters.
        reason_without_names = re.sub(r"\S*[.@/]\S*", "", reason)
        first_reasons.setdefault(reason_without_names, reason)
    return "; ".join(first_reasons.values())


def _reproduce(_: argparse.Namespace) -> None:
    """Check params.yaml, run what has changed, print the scores."""
    from bleuprint.cli.reproduce import ending, run_stages
    from bleuprint.cli.scores import print_overview
    from bleuprint.tracking.sync import update_or_note

    _check_settings()
    settings = load_settings()
    try:
        run_stages()
    except SystemExit:  # A stage has failed, but other stages may have finished.
        update_or_note(settings)
        raise
    # Stages log to MLflow while they run. What is up to date has not run, and is logged here.
    update_or_note(settings)
    print_overview(ending)


def _sync(arguments: argparse.Namespace) -> None:
    """Record what a killed Snakemake run has finished, in DVC and MLflow."""
    from bleuprint.pipeline import recording

    if arguments.begin:
        recording.mark_started(*arguments.begin)
        return
    from bleuprint.pipeline.project_lock import hold_project
    from bleuprint.tracking.sync import sync

    settings = load_settings()
    with hold_project("bleuprint sync"):
        recording.record_finished()
    for line in sync(settings):
        print_escaped(line)
