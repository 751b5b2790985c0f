"""Reads the command line of the scripts in stages/, and does what all stages share.

At its start, each stage notes the settings and code that it uses and the memory that it needs. At
its end, it checks that nobody has edited them, and records how long it took. `edit_check.py`
explains the check.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from bleuprint.config.experiment import Settings, load_resolved_settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import scored_runs, trained_runs
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText, Work
from bleuprint.pipeline.dvc_yaml import entry_running, fill_variables
from bleuprint.pipeline.edit_check import edit_check
from bleuprint.runtime import machine_errors
from bleuprint.runtime.arguments import describe_empty_argument
from bleuprint.runtime.errors import AT_SUCCESS, UserError
from bleuprint.tracking.timings import stage_seconds_file, write_seconds


def parse_arguments(description: str | None, *names: str) -> list[str]:
    """Return the command-line arguments of a stage, and prepare what happens when the stage ends.

    If an argument is missing or unknown, the process ends with a usage message and status 2. If the
    stage succeeds, it checks that nobody has edited its settings or code meanwhile, and records its
    duration.

    Args:
        description: What the stage does, for `--help`.
        names: The names of the arguments in their order, such as "SYSTEM", "CORPUS", "SEED".
    """
    parser = argparse.ArgumentParser(description=description)
    for name in names:
        parser.add_argument(name)
    value_by_name = vars(_parse(parser))
    _prepare_stage()
    # `AT_SUCCESS` lists functions that run at the end of a stage that has not failed.
    AT_SUCCESS.append(_write_duration)
    return list(value_by_name.values())


def parse_shard(description: str | None, *names: str) -> tuple[list[str], Work]:
    """Return the arguments on the command line, and which part of the work this process does.

    A cluster may divide the training text of a large corpus into N shards. One job (`--index`)
    reads the text to find out where its lines begin. One job per shard (`--shard K-of-N`) then
    processes a part of the text, and one job (`--gather N`) joins the results. Without these
    options, this process does all the work.

    Args:
        description: What the stage does, for `--help`.
        names: The names of the arguments in their order, such as "CORPUS".

    Returns:
        The values of the arguments, and the work: the whole text, its index, one shard of it, or
        joining all shards.
    """
    parser = argparse.ArgumentParser(description=description)
    for name in names:
        parser.add_argument(name)
    options = parser.add_mutually_exclusive_group()
    options.add_argument(
        "--index", action="store_true", help="index the training text, before its shards"
    )
    options.add_argument(
        "--shard", metavar="K-of-N", help="process this shard of the training text"
    )
    options.add_argument("--gather", metavar="N", type=int, help="join N shards")
    arguments = _parse(parser)
    if arguments.gather is not None and arguments.gather < 1:
        parser.error(f"--gather is {arguments.gather}. Give the number of shards, from 1")
    values = [getattr(arguments, name) for name in names]
    _prepare_stage()
    if arguments.index:
        return values, TextToIndex()
    if arguments.shard is not None:
        return values, Shard.parse(arguments.shard)
    if arguments.gather is not None:
        return values, AllShards(arguments.gather)
    # Only the duration for the whole text can be compared with an earlier run.
    AT_SUCCESS.append(_write_duration)
    return values, WholeText()


def _parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line; if an argument is missing or empty, end with usage and status 2.

    An empty argument is usually a shell variable that is not set, as in `train.py "$SYSTEM"`.
    """
    problem = describe_empty_argument(sys.argv[1:])
    if problem:
        parser.error(problem)
    return parser.parse_args()


def parse_trained_run(description: str | None) -> Run:
    """Return the run that the arguments SYSTEM CORPUS SEED name, for a stage that needs a model.

    DVC has a stage for every combination of system, corpus and seed. But params.yaml may exclude a
    combination, or the system may not be trained here. Then the stage has nothing to do: this
    function writes empty outputs, which DVC requires, and ends the process.

    Args:
        description: What the stage does, for `--help`.
    """
    return _parse_run(description, trained_runs)


def parse_scored_run(description: str | None) -> Run:
    """Return the run that the arguments SYSTEM CORPUS SEED name, for a stage about translations.

    An external system, whose translations the user provides as files, has such a stage, too, for
    the first seed. If params.yaml excludes the combination, the stage has nothing to do: this
    function writes empty outputs, which DVC requires, and ends the process.

    Args:
        description: What the stage does, for `--help`.
    """
    return _parse_run(description, scored_runs)


def _parse_run(
    description: str | None, existing_runs: Callable[[Settings], Collection[Run]]
) -> Run:
    """Return the run that the arguments name: a system on a corpus with a seed.

    If there is no such run, write empty outputs and end the process with status 0.

    Args:
        description: What the stage does, for `--help`.
        existing_runs: A function that returns all runs for which the stage has work to do.

    Raises:
        UserError: The seed is not a number.
    """
    system, corpus, seed = parse_arguments(description, "SYSTEM", "CORPUS", "SEED")
    if not seed.isdecimal():
        raise UserError(f"seed {seed!r} is not a whole number")
    run = Run(system, corpus, int(seed))
    if _is_excluded(run, existing_runs):
        _write_empty_outputs(run)
        print(f"nothing to do: params.yaml has no run of {run} for this stage")
        sys.exit()
    return run


def _is_excluded(run: Run, existing_runs: Callable[[Settings], Collection[Run]]) -> bool:
    """Return whether system, corpus and seed exist in params.yaml, but not this combination.

    Args:
        run: The system, corpus and seed.
        existing_runs: A function that returns all runs for which the stage has work to do.
    """
    try:
        settings = load_resolved_settings()
        runs = existing_runs(settings)
    except UserError:
        # Not reported here: the stage reads the settings again and reports the error. So a training
        # with several processes, which all come here, reports it only once.
        return False
    is_named = (
        run.system in settings.all_systems
        and run.corpus in settings.corpora
        and run.seed in settings.seeds
    )
    return is_named and run not in runs


def _prepare_stage() -> None:
    """Prepare what needs the stage's entry in dvc.yaml: a message, and a check at the end.

    If memory runs out, the message names the memory that dvc.yaml reserves for the stage. The check
    finds settings and code that were edited while the stage ran: DVC would record the edited
    version.
    """
    script = Path(sys.argv[0]).name
    entry = entry_running(script)
    # A script that dvc.yaml does not name is not a stage: DVC records nothing for it.
    if entry is not None:
        machine_errors.needed_memory_gb = entry.memory_gb
        check_for_edits = edit_check(entry, script, sys.argv[1:])
        AT_SUCCESS.append(check_for_edits)


def _write_duration() -> None:
    """Record how long this process has run, so that `bleuprint plan` can estimate the next time.

    A training is skipped: it may have several processes, and records its own duration.
    """
    if Path(sys.argv[0]).stem == "train":
        return
    seconds = _seconds_since_process_start()
    # The stage has succeeded. It must not fail now because its duration cannot be written.
    with suppress(OSError):
        write_seconds(stage_seconds_file(sys.argv), seconds)


def _seconds_since_process_start() -> float:
    """Return how long this process has been running, including the start of Python.

    Both times are counted from the start of the machine: unlike the time of day, this clock cannot
    be set while a stage runs.
    """
    stat = Path("/proc/self/stat").read_text(encoding="utf-8")
    # The start time is field 22, counted from 1; see proc(5). Field 2, the name of the program, may
    # contain spaces and ends with the last parenthesis. In the fields after it, the index is 19.
    fields_from_3 = stat.rpartition(")")[2].split()
    start_ticks = int(fields_from_3[19])
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / ticks_per_second


def _write_empty_outputs(run: Run) -> None:
    """Write empty outputs for a run that has no results: DVC requires that a stage writes outputs.

    A file gets an empty JSON object as its content. A folder gets one such file, named `empty`.

    Args:
        run: The system, corpus and seed.
    """
    entry = entry_running(Path(sys.argv[0]).name)
    if entry is None:
        return
    # dvc.yaml writes an output with variables, such as models/${item.system}/${item.corpus}.
    values = {f"item.{name}": str(value) for name, value in run._asdict().items()}
    for output in entry.outputs:
        path = Path(fill_variables(output, values))
        is_folder = path.suffix == ""
        if is_folder:
            path = path / "empty"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
