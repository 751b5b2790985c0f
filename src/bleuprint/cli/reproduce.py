"""What `bleuprint reproduce` prints: a line for each stage that begins, then what has changed.

`make reproduce` runs this command. The stages themselves are run by `pipeline.stage_runner`.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline import stage_runner
from bleuprint.pipeline.plan import planned_stages
from bleuprint.pipeline.project_lock import hold_project
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.verify import open_own_report, open_report
from bleuprint.report.frame import REPORTS
from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.runtime.wording import duration, is_or_are

# A stage that took longer than this before is announced with its duration.
_NOTABLE_SECONDS = 5.0
# Up to this number, changed files are named; more are counted.
_MAX_NAMED_FILES = 4
# What decides the results, and the results themselves: what belongs in a commit.
_COMMITTED_PATHS = ("params.yaml", "dvc.lock", "reports", "corpora", "src", "stages", "dvc.yaml")


def run_stages() -> None:
    """Run the stages that `dvc repro` would run, independent stages at the same time.

    Errors and progress of the stages are printed. If another run is in progress, this one waits.

    Raises:
        SystemExit: A stage has failed.
    """
    with hold_project("bleuprint reproduce"):
        with show_elapsed_time("reading what has changed"):
            write_resolved()
            seconds_by_stage = {}
            for planned_stage in planned_stages():
                seconds_by_stage[planned_stage.stage.name] = planned_stage.last_seconds
        lines = StageLines(seconds_by_stage)

        def announce(name: str, is_restored: bool) -> None:
            """Print the line of a stage that begins."""
            print_escaped(lines.next(name, is_restored))

        status = stage_runner.run_changed_stages(announce)
    if status:
        sys.exit(status)


class StageLines:
    """The lines of stages that begin, numbered in the order in which they begin.

    This is not the order of dvc.yaml: of independent stages, the longest training comes first.
    """

    def __init__(self, planned_stages: Mapping[str, float | None]) -> None:
        """Begin before the first stage.

        Args:
            planned_stages: The names of the stages that may run, with the seconds that each took
                before; None if this is not known.
        """
        self._planned_stages = planned_stages
        self._started_stages = 0

    def next(self, name: str, is_restored: bool) -> str:
        """Return the line of the stage that begins now.

        Args:
            name: The name of the stage.
            is_restored: Whether its outputs come from DVC's run cache.
        """
        number = ""
        if name in self._planned_stages:
            self._started_stages += 1
            number = f"[{self._started_stages}/{len(self._planned_stages)}] "
        seconds = self._planned_stages.get(name)
        return f"{number}{_stage_line(name, seconds, is_restored)}"


def _stage_line(name: str, last_seconds: float | None, is_restored: bool) -> str:
    """Return the line of a stage, without its number.

    Args:
        name: The name of the stage.
        last_seconds: How long the stage took before; None if this is not known.
        is_restored: Whether its outputs come from DVC's run cache.
    """
    if is_restored:
        return f"{name}: outputs from the run cache"
    # A training prints a forecast itself, which fits its settings.
    is_training = name.startswith("train")
    if last_seconds is None or last_seconds <= _NOTABLE_SECONDS or is_training:
        return name
    return f"{name} (took {duration(last_seconds)} before)"


def ending(settings: Settings) -> list[str]:
    """Return the closing lines: whether the results are the committed ones, and what to do next."""
    return [*_lines_about_changes(settings), *_next_steps(settings)]


def _lines_about_changes(settings: Settings) -> Iterator[str]:
    """Yield whether the results have changed since the last commit, and how to keep them.

    Without a Git commit there are no lines.
    """
    has_commit = bool(git_output(Path(), "rev-parse", "--verify", "HEAD"))
    if not has_commit:
        return
    changed_files = _changed_files()
    if not changed_files:
        yield "The committed result to the byte: dvc.lock and reports/ have not changed."
        return
    yield _comparison_with_commit(settings)
    files = ", ".join(changed_files)
    if len(changed_files) > _MAX_NAMED_FILES:
        files = f"{len(changed_files)} files"
    changed_paths = []
    for path in _COMMITTED_PATHS:
        if any(file == path or file.startswith(f"{path}/") for file in changed_files):
            changed_paths.append(path)
    yield f"Changed: {files}. To keep it: git add {' '.join(changed_paths)} && git commit"


def _changed_files() -> list[str]:
    """Return the files that differ from the last commit, relative to the project's folder."""
    options = ("-z", "--no-renames", "--untracked-files=all")
    status = git_output(Path(), "status", *options, "--", *_COMMITTED_PATHS)
    # Git names files from the top of the repository. The project may be a folder in it.
    prefix = git_output(Path(), "rev-parse", "--show-prefix")
    project_folder = prefix.decode(errors="replace").rstrip("\n")
    changed_files = []
    # With -z, each file ends with a zero byte. Before its path stand two letters and a space.
    for line in status.decode(errors="replace").split("\0")[:-1]:
        changed_files.append(line[3:].removeprefix(project_folder))
    return changed_files


def _comparison_with_commit(settings: Settings) -> str:
    """Return how many results equal the committed results of this experiment, in one line.

    The experiment's committed results are in HEAD, or in reports/EXPERIMENT if HEAD has another
    experiment.
    """
    from bleuprint.report.same_results import compare_records

    resolved = git_output(Path(), "show", f"HEAD:./{RESOLVED.as_posix()}").decode(errors="replace")
    is_in_head = f'"experiment": "{settings.experiment}"' in resolved
    committed_place = "HEAD" if is_in_head else (REPORTS / settings.experiment).as_posix()
    try:
        own_records = open_own_report().records
        committed_records = open_report(committed_place).records
        results, _ = compare_records(own_records, committed_records)
    except UserError:  # Nothing is committed, or an earlier version has written it.
        results = []
    if not results:
        return "Nothing to compare with: no results of this experiment are committed."
    total_count = len(own_records.runs)
    same_count = sum(result.is_same for result in results)
    different_count = len(results) - same_count
    new_count = total_count - len(results)
    gone_count = len(committed_records.runs) - len(results)
    if same_count == total_count and not gone_count:
        return (
            "The committed result to the byte: translations and scores are those of "
            f"{committed_place}."
        )
    if different_count:
        parts = [f"Not the committed result: {different_count} of {total_count} differ"]
    else:
        parts = [
            f"{same_count} of {total_count} results are those of {committed_place} to the byte"
        ]
    if new_count:
        parts.append(f"{new_count} {is_or_are(new_count)} new")
    if gone_count:
        parts.append(f"{gone_count} of {committed_place} {is_or_are(gone_count)} gone")
    line = f"{'; '.join(parts)}."
    if different_count:
        line += f" Where: bleuprint verify {committed_place}"
    return line


def _next_steps(settings: Settings) -> Iterator[str]:
    """Yield what the user can do next, one step per line."""
    yield "Next: open reports/index.html for learning curves, errors and sentences."
    yield "Change a setting: edit params.yaml; bleuprint plan says what would run."
    if _has_own_text(settings):
        yield "Translate: bleuprint translate --help; in a browser: bleuprint serve --help"
    else:
        yield "Your own text: make recipe NAME=own, then bleuprint new-corpus --help"


def _has_own_text(settings: Settings) -> bool:
    """Return whether a corpus has files in inputs/, that is, text of the user."""
    for corpus in settings.corpora.values():
        for file in corpus.files.files_by_name().values():
            if file.path is not None:
                return True
    return False
