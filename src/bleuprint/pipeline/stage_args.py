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
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText, Work
from bleuprint.pipeline.dvc_yaml import entry_running, fill_variables
from bleuprint.pipeline.edit_check import edit_check
from bleuprint.runtime import machine_errors
from bleuprint.runtime.arguments import describe_empty_argument
from bleuprint.runtime.errors import AT_SUCCESS, UserError
from bleuprint.tracking.timings import stage_seconds_file, write_seconds


def parse_arguments(description: str | None, *names: str) -> list[str]:
    """Return the values of a stage's positional arguments.

    Ends the process with a usage message and status 2 if an argument is missing or unknown.

    Args:
        description: What the stage does, for its help.
        names: The names of the arguments, such as CORPUS.
    """
    parser = argparse.ArgumentParser(description=description)
    for name in names:
        parser.add_argument(name)
    values = list(vars(_parse(parser)).values())
    _note_start()
    AT_SUCCESS.append(_write_duration)
    return values


def parse_shard(description: str | None) -> tuple[str, Work]:
    """Return the corpus of a stage, and which part of its training text this process works on.

    Args:
        description: What the stage does, for its help.

    Returns:
        The name of the corpus, and the work: the whole text, one shard of it, or joining all
        shards.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("corpus", metavar="CORPUS")
    options = parser.add_mutually_exclusive_group()
    options.add_argument(
        "--shard", metavar="K-of-N", help="process this shard of the training text"
    )
    options.add_argument("--gather", metavar="N", type=int, help="join N shards")
    arguments = _parse(parser)
    _note_start()
    if arguments.shard is not None:
        return arguments.corpus, Shard.parse(arguments.shard)
    if arguments.gather is not None:
        return arguments.corpus, AllShards(arguments.gather)
    # Only the time for the whole text can be compared with an earlier run.
    AT_SUCCESS.append(_write_duration)
    return arguments.corpus, WholeText()


def _parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the arguments of this script; end with usage and status 2 if one is empty."""
    problem = describe_empty_argument(sys.argv[1:])
    if problem:
        parser.error(problem)
    return parser.parse_args()


def parse_trained_run(description: str | None) -> Run:
    """Return the run that the arguments SYSTEM CORPUS SEED name, for a stage of training.

    dvc.yaml has a stage for every combination of system, corpus and seed. If params.yaml excludes
    the combination, this writes empty outputs and ends the process.

    Args:
        description: What the stage does, for its help.
    """
    return _parse_run(description, trained_runs)


def parse_scored_run(description: str | None) -> Run:
    """Return the run that the arguments SYSTEM CORPUS SEED name, for a stage of translations.

    External systems have translations without a training, with the first seed only. If params.yaml
    excludes the combination, this writes empty outputs and ends the process.

    Args:
        description: What the stage does, for its help.
    """
    return _parse_run(description, scored_runs)


def _parse_run(
    description: str | None, existing_runs: Callable[[Settings], Collection[Run]]
) -> Run:
    """Return the run that the arguments name; end with empty outputs if it is excluded.

    Args:
        description: What the stage does, for its help.
        existing_runs: Returns the runs that the stage exists for.
    """
    system, corpus, seed = parse_arguments(description, "SYSTEM", "CORPUS", "SEED")
    if not seed.isdecimal():
        raise UserError(f"seed {seed!r} is not a whole number")
    run = Run(system, corpus, int(seed))
    if _is_excluded(run, existing_runs):
        _write_empty_outputs(run)
        print(f"params.yaml has no run of {run} for this stage: nothing to do")
        sys.exit()
    return run


def _is_excluded(run: Run, existing_runs: Callable[[Settings], Collection[Run]]) -> bool:
    """Whether params.yaml names system, corpus and seed of a run, but excludes the run.

    Args:
        run: The run.
        existing_runs: Returns the runs that the stage exists for.
    """
    try:
        settings = load_resolved_settings()
        runs = existing_runs(settings)
    except UserError:
        # The stage reads the settings itself and reports the error; a training with several
        # processes reports it once for all of them.
        return False
    is_named = (
        run.system in settings.all_systems
        and run.corpus in settings.corpora
        and run.seed in settings.seeds
    )
    return is_named and run not in runs


def _note_start() -> None:
    """Prepare the check of edits at the end of this stage, and note the memory that it needs."""
    script = Path(sys.argv[0]).name
    entry = entry_running(script)
    if entry is not None:
        machine_errors.needed_memory_gb = entry.memory_gb
        AT_SUCCESS.append(edit_check(entry, script, sys.argv[1:]))


def _write_duration() -> None:
    """Record how long this process took, for `bleuprint plan`.

    A training records its own duration, since it may have several processes.
    """
    if Path(sys.argv[0]).stem == "train":
        return
    # proc(5): field 22 of /proc/self/stat, `starttime`, counts clock ticks since the machine
    # started. The first two fields end with the last parenthesis, so it has index 19 after it. The
    # clock of the operating system could be set while the stage runs; this one cannot.
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start_seconds = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - start_seconds
    # The stage has finished, whether its duration can be written or not.
    with suppress(OSError):
        write_seconds(stage_seconds_file(sys.argv), seconds)


def _write_empty_outputs(run: Run) -> None:
    """Write the outputs that dvc.yaml names for this script and a run, without content.

    A file contains an empty JSON object. A folder contains one such file, named `empty`.
    """
    entry = entry_running(Path(sys.argv[0]).name)
    if entry is None:
        return
    # The loop variables in dvc.yaml, such as ${item.system}.
    variables = {f"item.{name}": str(value) for name, value in run._asdict().items()}
    for output in entry.outputs:
        path = Path(fill_variables(output, variables))
        is_folder = path.suffix == ""
        if is_folder:
            path /= "empty"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
