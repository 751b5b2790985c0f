"""The arguments of the scripts in stages/."""

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


def parse_arguments(description: str | None, *arguments: str) -> list[str]:
    """The values of positional arguments; ends with usage and status 2 if others are given."""
    parser = argparse.ArgumentParser(description=description)
    for name in arguments:
        parser.add_argument(name)
    given = list(vars(_parsed(parser)).values())
    _begin()
    AT_SUCCESS.append(_write_duration)
    return given


def parse_shard(description: str | None) -> tuple[str, Work]:
    """Return the corpus, and what of its training text this process works on."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("corpus", metavar="CORPUS")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--shard", metavar="K-of-N", help="process this shard of the training text")
    part.add_argument("--gather", metavar="N", type=int, help="join N shards")
    given = _parsed(parser)
    _begin()
    if given.shard is not None:
        return given.corpus, Shard.parse(given.shard)
    if given.gather is not None:
        return given.corpus, AllShards(given.gather)
    AT_SUCCESS.append(_write_duration)
    return given.corpus, WholeText()


def _parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of this script; ends with usage and status 2 if one is empty."""
    if problem := describe_empty_argument(sys.argv[1:]):
        parser.error(problem)
    return parser.parse_args()


def parse_trained_run(description: str | None) -> Run:
    """The run named by the arguments SYSTEM CORPUS SEED, for a stage of training.

    DVC's matrix has no exclusions: the stages of a run that is not trained exist, and end here
    with empty outputs.
    """
    return _run(description, trained_runs)


def parse_scored_run(description: str | None) -> Run:
    """The run named by the arguments SYSTEM CORPUS SEED, for a stage of translations.

    As `parse_trained_run`, but systems that are not trained have translations, too: with one seed.
    """
    return _run(description, scored_runs)


def _run(description: str | None, existing: Callable[[Settings], Collection[Run]]) -> Run:
    """The run named by the arguments; ends with empty outputs if it is not among `existing`."""
    system, corpus, seed = parse_arguments(description, "SYSTEM", "CORPUS", "SEED")
    if not seed.isdecimal():
        raise UserError(f"seed {seed!r} is not a whole number")
    named = Run(system, corpus, int(seed))
    with suppress(UserError):  # the stage reports it, a training in all its processes
        settings = load_resolved_settings()
        is_in_matrix = system in settings.all_systems
        is_in_matrix &= corpus in settings.corpora and named.seed in settings.seeds
        if is_in_matrix and named not in existing(settings):
            _write_empty(named)
            print(f"params.yaml has no run of {named} for this stage: nothing to do")
            sys.exit()
    return named


def _begin() -> None:
    """Note what this stage reads, to be compared at its end, and the memory that it needs."""
    script = Path(sys.argv[0]).name
    entry = entry_running(script)
    if entry is not None:
        machine_errors.needed_memory_gb = entry.memory_gb
        AT_SUCCESS.append(edit_check(entry, script, sys.argv[1:]))


def _write_duration() -> None:
    """Record how long this process took, by a clock that cannot be set, for `bleuprint plan`.

    Not of a training, which may have several processes, and records its own.
    """
    if Path(sys.argv[0]).stem == "train":
        return
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # proc(5), `starttime`
    with suppress(OSError):  # the stage has finished, whether this can be written or not
        write_seconds(
            stage_seconds_file(sys.argv), time.clock_gettime(time.CLOCK_BOOTTIME) - started
        )


def _write_empty(run: Run) -> None:
    """Write the outputs that dvc.yaml names for the stage of this script, without content."""
    entry = entry_running(Path(sys.argv[0]).name)
    values = {f"item.{name}": str(value) for name, value in run._asdict().items()}
    for output in () if entry is None else entry.outputs:
        path = Path(fill_variables(output, values))
        if not path.suffix:  # a folder
            path /= "empty"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
