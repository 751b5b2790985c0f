"""Commands to use with `dvc repro` and `snakemake`: check, plan, accept, reproduce, sync."""

import argparse
import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from bleuprint.cli.options import Commands, add_command
from bleuprint.config.experiment import Settings, load_settings
from bleuprint.config.notes import check_tokenizers, params_notes
from bleuprint.config.params_schema import params_schema
from bleuprint.runtime.errors import print_message
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.wording import counted

if TYPE_CHECKING:
    from bleuprint.pipeline.plan import PlannedStage

# The width of the column that names the stages of a plan, in characters.
_NAME_WIDTH = 36


def add_commands(commands: Commands) -> None:
    """Add the commands check, plan, accept, reproduce and sync to the command line of bleuprint.

    Args:
        commands: The subparsers of the command line, to which argparse adds commands.
    """
    add_argument = add_command(commands, _check, "check")
    schema_help = "print the JSON Schema of params.yaml, for editors"
    add_argument("--schema", action="store_true", help=schema_help)
    add_command(commands, _plan, "plan")
    add_argument = add_command(commands, _accept, "accept train --because 'only renamed variables'")
    stages_help = "a kind of stages, such as train, or one stage, such as train@small-news-1"
    add_argument("stages", nargs="+", metavar="STAGE", help=stages_help)
    because_help = "why the change has no effect on results; report and verify show it"
    add_argument("--because", required=True, metavar="REASON", help=because_help)
    add_command(commands, _reproduce, "reproduce")
    add_argument = add_command(commands, _sync, "sync")
    # Only the Snakefile uses this option, so the help does not show it. Its values are the stage
    # that begins, the digest of the stage and its input files.
    add_argument("--begin", nargs="+", help=argparse.SUPPRESS)


def _check(arguments: argparse.Namespace) -> None:
    """Check params.yaml; nothing is run.

    With --schema, nothing is checked: the JSON Schema of params.yaml is printed instead. Editors
    use a schema to complete and check settings while the user types.
    """
    if arguments.schema:
        print(json.dumps(params_schema(), indent=1))
    else:
        _check_settings()


def _check_settings() -> None:
    """Check the settings in params.yaml, and print notes on those that look like mistakes.

    Raises:
        UserError: A setting is wrong, or a file or package that a stage needs is missing.
    """
    settings = load_settings()
    _refuse_unusable_settings(settings)
    for note in _notes_on_settings(settings):
        print_message(note, "note")
    print(f"{settings.experiment}: params.yaml is valid")


def _refuse_unusable_settings(settings: Settings) -> None:
    """Raise UserError if a stage could not run with these settings on this machine.

    Each check calls the function that the stage would call, which raises the error.
    """
    from bleuprint.pipeline.resolve import resolved_settings
    from bleuprint.report.citations import citations
    from bleuprint.scoring.bleu import bleu_metric

    # A folder of outputs must not be a link, and weights to start from must exist.
    resolved_settings(settings)
    check_tokenizers(settings)
    # sacreBLEU needs packages to tokenize some target languages, such as Japanese.
    no_references: list[str] = []
    for language_pair in settings.language_pairs().values():
        bleu_metric(no_references, language_pair.target)
    # Two different works must not have the same BibTeX key.
    citations(settings)
    _check_models(settings)
    _check_metrics(settings)


def _check_models(settings: Settings) -> None:
    """Run a small batch through each model that is not built in; raise UserError if it is wrong."""
    systems = []
    for settings_by_corpus in settings.runs.values():
        for system in settings_by_corpus.values():
            if system is not None and not system.model.is_built_in:
                systems.append(system)
    if systems:
        # Loading torch takes seconds, so it is loaded only if there is such a model.
        from bleuprint.training.dry_run import check_models

        check_models(systems)


def _check_metrics(settings: Settings) -> None:
    """Compute each metric that is not built in on a few lines; raise UserError if it is wrong."""
    from bleuprint.scoring.metrics import own_metrics
    from bleuprint.scoring.own_metrics import check_own_metric

    first_pair = next(iter(settings.language_pairs().values()))
    for metric in own_metrics(settings.metrics):
        check_own_metric(metric, first_pair)


def _notes_on_settings(settings: Settings) -> list[str]:
    """Return notes on settings that are valid, but may not be what the user wants.

    Raises:
        UserError: A file with the translations of an external system is unusable, or
            stages/accepted.yaml is not valid.
    """
    from bleuprint.corpus.set_notes import notes_on_sets
    from bleuprint.corpus.text_notes import notes_on_local_texts
    from bleuprint.pipeline.accept import notes_on_unused_changes
    from bleuprint.scoring.bleu_ceiling import ceiling_notes_before_run
    from bleuprint.scoring.comet import notes_on_missing_comet
    from bleuprint.scoring.external_files import check_external_files
    from bleuprint.training.schedule_notes import schedule_notes

    return [
        *params_notes(settings),
        *check_external_files(settings),
        *notes_on_missing_comet(settings),
        *notes_on_local_texts(settings),
        *notes_on_sets(settings),
        *schedule_notes(settings),
        *ceiling_notes_before_run(settings),
        *notes_on_unused_changes(),
    ]


def _plan(_: argparse.Namespace) -> None:
    """Show what make reproduce would run, why, and how long it took before.

    Stages of the same kind that follow one another, such as the trainings of three seeds, are
    printed as one line.
    """
    planned_stages = _read_plan()
    if not planned_stages:
        print("all stages are up to date: make reproduce would run none")
        return
    for kind, stages_of_kind in groupby(planned_stages, key=_kind_of_stage):
        print_escaped(_plan_line(kind, list(stages_of_kind)))
    total = _total_duration(planned_stages)
    if total:
        print(total)
    kinds = _kinds_to_accept(planned_stages)
    if kinds:
        print(
            "If these changes of code change no result, keep the outputs: "
            f'bleuprint accept {" ".join(kinds)} --because "..."'
        )


def _kinds_to_accept(planned_stages: Sequence["PlannedStage"]) -> list[str]:
    """Return the kinds of planned stages of which nothing but the code has changed.

    They need not run if the change of code has no effect, which the user can declare.
    """
    from bleuprint.pipeline.accept import kinds_to_accept
    from bleuprint.pipeline.plan import CODE_HAS_CHANGED

    stages_with_other_code = []
    for planned_stage in planned_stages:
        if planned_stage.why == CODE_HAS_CHANGED:
            stages_with_other_code.append(planned_stage.stage)
    if not stages_with_other_code:
        return []
    return kinds_to_accept(stages_with_other_code)


def _accept(arguments: argparse.Namespace) -> None:
    """Keep the outputs of stages although their code has changed, since no result changes.

    Both fingerprints of the code, the reason and the date are added to stages/accepted.yaml. After
    any other change of this code, the stages run again.
    """
    from bleuprint.pipeline.accept import accept
    from bleuprint.pipeline.project_lock import hold_project

    # Outside of a project this raises UserError, before a lock file is created there.
    load_settings()
    with hold_project("bleuprint accept"), show_elapsed_time("accept: reading what has changed"):
        acceptance = accept(arguments.stages, arguments.because)
    for kind, stages in groupby(acceptance.kept, key=lambda stage: stage.kind):
        print_escaped(f"{kind}: {counted(len(list(stages)), 'stage')} kept")
    for stage in acceptance.out_of_date:
        print_escaped(f"{stage.name} has to run all the same: its settings have changed")
    files = " ".join(str(path) for path in acceptance.files)
    print(f"To keep it: git add {files} && git commit")
    print("To see what would run now: bleuprint plan")


def _read_plan() -> "list[PlannedStage]":
    """Return the stages that `dvc repro` would run now, in their order.

    If `make reproduce` is running, wait until it has ended, since its outputs are incomplete.
    """
    from bleuprint.pipeline.plan import planned_stages
    from bleuprint.pipeline.project_lock import hold_project

    # Outside of a project this raises UserError, before a lock file is created there.
    load_settings()
    with (
        hold_project("bleuprint plan", writes_outputs=False),
        show_elapsed_time("plan: reading what has changed"),
    ):
        return planned_stages()


def _kind_of_stage(planned_stage: "PlannedStage") -> str:
    """Return the kind of a stage, such as train."""
    return planned_stage.stage.kind


def _plan_line(kind: str, stages: Sequence["PlannedStage"]) -> str:
    """Describe stages of one kind in a line of the plan.

    Examples are `train, 3 stages    system has changed; took 0:05:10` and, for a single stage,
    `train@small-news-1    system has changed`.

    Args:
        kind: What the stages do, such as `train`.
        stages: The stages.
    """
    stages_text = f"{kind}, {len(stages)} stages"
    if len(stages) == 1:
        stages_text = stages[0].stage.name
    reasons = _join_reasons([stage.why for stage in stages])
    return f"{stages_text:<{_NAME_WIDTH}}  {reasons}{_duration_note(stages)}"


def _last_seconds(planned_stage: "PlannedStage") -> float | None:
    """Return how many seconds a stage took when it last ran; None if this is not known.

    If a training has not run with its seed, the time with another seed is returned.
    """
    if planned_stage.last_seconds is not None:
        return planned_stage.last_seconds
    return planned_stage.last_seconds_with_another_seed


def _duration_note(stages: Sequence["PlannedStage"]) -> str:
    """Describe how long stages took together when they last ran.

    If a stage has not run with its seed yet, its time with another seed counts, and the note says
    so.

    Args:
        stages: Stages that will run.

    Returns:
        The end of a line, such as `; took 0:05:10`; an empty text if any duration is not known.
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
    seed_note = " with another seed" if has_other_seeds else ""
    return f"; took {duration(total_seconds)}{seed_note}"


def _total_duration(planned_stages: Sequence["PlannedStage"]) -> str:
    """Describe how long all planned stages took before, and which durations are not known.

    Returns:
        A line; an empty text if no duration is known.
    """
    from bleuprint.runtime.wording import duration

    known_seconds = []
    kinds_without_duration = []
    for planned_stage in planned_stages:
        seconds = _last_seconds(planned_stage)
        if seconds is None:
            kinds_without_duration.append(planned_stage.stage.kind)
        else:
            known_seconds.append(seconds)
    if not known_seconds:
        return ""
    total = duration(sum(known_seconds))
    line = f"{len(known_seconds)} of these took {total} when they last ran here"
    if kinds_without_duration:
        other_stages = counted(len(kinds_without_duration), "other")
        different_kinds = ", ".join(dict.fromkeys(kinds_without_duration))
        line += f"; the time of {other_stages} ({different_kinds}) is unknown"
    return line


def _join_reasons(reasons: Sequence[str]) -> str:
    """Join the reasons why stages run, without reasons that differ only in names.

    For example, `after translate@a-1` and `after translate@b-1` differ only in the name of the
    stage, so only the first of them is kept.
    """
    # The keys are the reasons without names, by which equal reasons are found.
    first_reasons = dict[str, str]()
    for reason in reasons:
        # A word that contains a dot, an @ or a slash is the name of a stage or a path.
        reason_without_names = re.sub(r"\S*[.@/]\S*", "", reason)
        first_reasons.setdefault(reason_without_names, reason)
    return "; ".join(first_reasons.values())


def _reproduce(_: argparse.Namespace) -> None:
    """Check params.yaml, run what has changed, print the scores.

    The trainings are also logged to MLflow.
    """
    from bleuprint.cli.reproduce import closing_lines, run_stages
    from bleuprint.cli.scores import print_overview
    from bleuprint.tracking.sync import update_or_note

    _check_settings()
    settings = load_settings()
    try:
        run_stages()
    except SystemExit:  # A stage has failed. Log the stages that have finished.
        update_or_note(settings)
        raise
    # Each stage that ran has logged its results to MLflow. Now log those that were up to date, too.
    update_or_note(settings)
    print_overview(closing_lines)


def _sync(arguments: argparse.Namespace) -> None:
    """Record what a killed Snakemake run has finished, in DVC and MLflow.

    A second use is for the Snakefile alone: it calls the command with --begin when a stage begins.
    Then only the state of the stage's inputs is stored. A later call without --begin reads it, to
    know from which inputs the outputs were computed.
    """
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
