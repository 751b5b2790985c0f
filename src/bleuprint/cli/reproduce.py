"""What `bleuprint reproduce` prints: a line for each stage that begins, then what has changed.

`make reproduce` runs this command. The stages themselves are run by `pipeline.stage_runner`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

# A stage that took longer than this when it last ran is announced with its duration.
_NOTABLE_SECONDS = 5.0
# If more files have changed, they are counted instead of named.
_MAX_NAMED_FILES = 4
# The files and folders that a user commits: what decides the results, and the results themselves.
_COMMITTED_PATHS = (
    "params.yaml",
    "dvc.lock",
    "reports",
    "corpora",
    "own",
    "src",
    "stages",
    "dvc.yaml",
)


def run_stages() -> None:
    """Run the stages that `dvc repro` would run, and print a line when a stage begins.

    Stages that do not need each other run at the same time. If another process runs stages of this
    project, this one waits until it has ended.

    Raises:
        SystemExit: A stage has failed; it has printed why.
    """
    with hold_project("bleuprint reproduce"):
        with show_elapsed_time("reading what has changed"):
            write_resolved()
            lines = StageLines(_last_seconds_by_stage())

        def print_stage_line(name: str, is_restored: bool) -> None:
            """Print the line of a stage that begins."""
            print_escaped(lines.next(name, is_restored))

        status = stage_runner.run_changed_stages(print_stage_line)
    if status:
        sys.exit(status)


def _last_seconds_by_stage() -> dict[str, float | None]:
    """Return the names of the stages that will run, with the seconds that each took last time.

    The seconds are None for a stage that has not run on this machine.
    """
    seconds_by_stage = {}
    for planned_stage in planned_stages():
        seconds_by_stage[planned_stage.stage.name] = planned_stage.last_seconds
    return seconds_by_stage


class StageLines:
    """The lines that announce stages, numbered in the order in which the stages begin.

    This is not the order of dvc.yaml: of independent stages, the longest training begins first.
    """

    def __init__(self, last_seconds_by_stage: Mapping[str, float | None]) -> None:
        """Begin to count, before the first stage begins.

        Args:
            last_seconds_by_stage: The names of the stages that will run, with the seconds that each
                took last time; None if this is not known.
        """
        self._last_seconds_by_stage = last_seconds_by_stage
        self._started_stages = 0

    def next(self, name: str, is_restored: bool) -> str:
        """Return the line of the stage that begins now, such as `[2/5] train@small-a-1`.

        A stage that was not planned may begin, too, because a stage before it has changed its
        inputs. Its line has no number.

        Args:
            name: The name of the stage.
            is_restored: Whether DVC copies the outputs from its run cache, that is, the stage has
                run with the same inputs before.
        """
        number = ""
        if name in self._last_seconds_by_stage:
            self._started_stages += 1
            number = f"[{self._started_stages}/{len(self._last_seconds_by_stage)}] "
        last_seconds = self._last_seconds_by_stage.get(name)
        return f"{number}{_stage_line(name, last_seconds, is_restored)}"


def _stage_line(name: str, last_seconds: float | None, is_restored: bool) -> str:
    """Return the line that announces a stage, without its number.

    Args:
        name: The name of the stage.
        last_seconds: How long the stage took last time; None if this is not known.
        is_restored: Whether DVC copies the outputs from its run cache, that is, the stage has run
            with the same inputs before.
    """
    if is_restored:
        return f"{name}: outputs from the run cache"
    # A training prints a forecast of its time itself, from its current settings.
    is_training = name.startswith("train")
    if last_seconds is None or last_seconds <= _NOTABLE_SECONDS or is_training:
        return name
    return f"{name} (took {duration(last_seconds)} before)"


def closing_lines(settings: Settings) -> list[str]:
    """Return what `bleuprint reproduce` prints after the scores.

    The first lines say whether the results differ from the committed results. The last lines say
    what the user can do next.
    """
    return [*_lines_about_changes(settings), *_next_steps(settings)]


def _lines_about_changes(settings: Settings) -> Iterator[str]:
    """Yield lines that say whether results have changed since the last Git commit.

    If they have, the last line says how to commit them. If the project has no commit yet, there is
    nothing to compare with, and no line.
    """
    has_commit = bool(git_output(Path(), "rev-parse", "--verify", "HEAD"))
    if not has_commit:
        return
    changed_files = _changed_files()
    if not changed_files:
        yield "Same results as in the last commit: dvc.lock and reports/ have not changed."
        return
    yield _comparison_with_commit(settings)
    files_text = ", ".join(changed_files)
    if len(changed_files) > _MAX_NAMED_FILES:
        files_text = f"{len(changed_files)} files"
    paths_to_commit = " ".join(_paths_to_commit(changed_files))
    yield f"Changed: {files_text}. To keep it: git add {paths_to_commit} && git commit"


def _paths_to_commit(changed_files: Sequence[str]) -> list[str]:
    """Return the paths to pass to `git add`, such as `["params.yaml", "reports"]`.

    Args:
        changed_files: The changed files, relative to the project's folder.
    """
    paths = []
    for path in _COMMITTED_PATHS:
        if any(file == path or file.startswith(f"{path}/") for file in changed_files):
            paths.append(path)
    return paths


def _changed_files() -> list[str]:
    """Return the files that differ from the last Git commit, relative to the project's folder.

    Only files that a user commits are compared, such as params.yaml, dvc.lock and reports/.
    """
    options = ("-z", "--no-renames", "--untracked-files=all")
    status = git_output(Path(), "status", *options, "--", *_COMMITTED_PATHS)
    # Git's paths are relative to the top of the repository. If the project is a folder below it,
    # this prefix, such as `projects/mt/`, is removed from them.
    prefix = git_output(Path(), "rev-parse", "--show-prefix")
    project_folder = prefix.decode(errors="replace").rstrip("\n")
    changed_files = []
    # With -z, Git ends each entry with a zero byte, so the text after the last one is empty.
    entries = status.decode(errors="replace").split("\0")[:-1]
    for entry in entries:
        # An entry such as " M params.yaml": two characters say what has changed, then come a space
        # and the path.
        path = entry[3:]
        changed_files.append(path.removeprefix(project_folder))
    return changed_files


def _comparison_with_commit(settings: Settings) -> str:
    """Compare the results of the last run with the committed results of the same experiment.

    One result is the translations and scores of one run (a system, a corpus and a seed) on one test
    set.

    Returns:
        A line that says how many results are the same, different, new or gone.
    """
    from bleuprint.report.same_results import compare_records

    committed_place = _place_of_committed_results(settings.experiment)
    try:
        own_records = open_own_report().records
        committed_records = open_report(committed_place).records
        # Each pair is a result of the last run and the committed result for the same test set.
        pairs_of_results, _ = compare_records(own_records, committed_records)
    except UserError:  # No results are committed, or another version of bleuprint wrote them.
        pairs_of_results = []
    if not pairs_of_results:
        return "Nothing to compare with: no results of this experiment are committed."
    counts = _ResultCounts(
        total=len(own_records.runs),
        equal=sum(pair.is_same for pair in pairs_of_results),
        differing=sum(not pair.is_same for pair in pairs_of_results),
        uncommitted=len(own_records.runs) - len(pairs_of_results),
        missing=len(committed_records.runs) - len(pairs_of_results),
    )
    return _describe_counts(counts, committed_place)


def _place_of_committed_results(experiment: str) -> str:
    """Return where the committed results of an experiment are, in the form for `bleuprint verify`.

    Returns:
        `HEAD` if reports/ has results of this experiment in the last Git commit. Otherwise the
        folder reports/EXPERIMENT, where this project keeps results of several experiments.
    """
    resolved = git_output(Path(), "show", f"HEAD:./{RESOLVED.as_posix()}").decode(errors="replace")
    # A search, since another version of bleuprint may have written the file in another form. The
    # text is empty if the file is not committed.
    if f'"experiment": "{experiment}"' in resolved:
        return "HEAD"
    return (REPORTS / experiment).as_posix()


@dataclass(frozen=True)
class _ResultCounts:
    """How many results equal the committed results.

    Attributes:
        total: The results of the last run.
        equal: Results that are equal to the byte in both.
        differing: Results that both have, but that are not equal.
        uncommitted: Results of the last run that are not committed.
        missing: Committed results that the last run does not have.
    """

    total: int
    equal: int
    differing: int
    uncommitted: int
    missing: int


def _describe_counts(counts: _ResultCounts, committed_place: str) -> str:
    """Describe in a line how many results equal the committed results.

    An example is `2 of 6 results differ from HEAD; 1 is new. To see where: bleuprint verify HEAD`.

    Args:
        counts: The numbers of results.
        committed_place: Where the committed results are: `HEAD`, or a folder.
    """
    are_all_the_same = counts.equal == counts.total and counts.missing == 0
    if are_all_the_same:
        return f"Same results as {committed_place}: translations and scores are equal to the byte."
    if counts.differing:
        parts = [f"{counts.differing} of {counts.total} results differ from {committed_place}"]
    else:
        parts = [f"{counts.equal} of {counts.total} results equal {committed_place} to the byte"]
    if counts.uncommitted:
        parts.append(f"{counts.uncommitted} {is_or_are(counts.uncommitted)} new")
    if counts.missing:
        parts.append(f"{counts.missing} of {committed_place} {is_or_are(counts.missing)} missing")
    line = f"{'; '.join(parts)}."
    if counts.differing:
        line += f" To see where: bleuprint verify {committed_place}"
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
    """Return whether the user has added text of their own: whether a corpus reads local files.

    The corpora of the recipes are downloaded. Their files have a URL instead of a path.
    """
    for corpus in settings.corpora.values():
        files_of_corpus = corpus.files.files_by_name()
        for file in files_of_corpus.values():
            if file.path is not None:
                return True
    return False
