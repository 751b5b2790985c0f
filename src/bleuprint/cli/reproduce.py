"""`bleuprint reproduce`, which `make reproduce` runs: a line for each stage, then what changed."""

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

# Seconds that are worth a word; files that are named one by one.
_NOTABLE, _NAMED = 5.0, 4


def run_stages() -> None:
    """Run what `dvc repro` would run, independent stages beside each other.

    Exits if a stage fails. Errors and progress of the stages pass through. Waits for another run.
    """
    with hold_project("bleuprint reproduce"):
        with show_elapsed_time("reading what has changed"):
            write_resolved()
            lines = StageLines({each.stage.name: each.last_seconds for each in planned_stages()})
        status = stage_runner.run_changed_stages(lambda *begun: print_escaped(lines.next(*begun)))
    if status:
        sys.exit(status)


class StageLines:
    """The lines of stages that begin, numbered in the order in which they begin.

    Independent stages do not begin in the order of dvc.yaml: the longest training comes first.
    """

    def __init__(self, planned: Mapping[str, float | None]) -> None:
        """`planned`: the stages that may run, with the seconds that each took before."""
        self._planned = planned
        self._begun = 0

    def next(self, name: str, restored: bool) -> str:
        """Return the line of the stage that begins now; `restored` if from the cache."""
        number = ""
        if name in self._planned:
            self._begun += 1
            number = f"[{self._begun}/{len(self._planned)}] "
        return f"{number}{_described(name, self._planned.get(name), restored)}"


def _described(name: str, seconds: float | None, restored: bool) -> str:
    """A stage that begins: its name, and its outputs' origin or how long it took before."""
    took = seconds or 0.0
    # a training says itself how long it will take, with its settings and beside what runs now
    known = took > _NOTABLE and not name.startswith("train")
    if restored:
        return f"{name}: outputs from the run cache"
    return f"{name} (took {duration(took)} before)" if known else name


def ending(settings: Settings) -> list[str]:
    """Whether the results are the committed ones, how to keep them, and what to do next."""
    return [*_kept(settings), *_next(settings)]


def _kept(settings: Settings) -> Iterator[str]:
    paths = "params.yaml", "dvc.lock", "reports", "corpora", "src", "stages", "dvc.yaml"
    if not git_output(Path(), "rev-parse", "--verify", "HEAD"):  # not in git, or nothing in it
        return
    status = git_output(
        Path(), "status", "-z", "--no-renames", "--untracked-files=all", "--", *paths
    )
    # from the top of the repository, of which the project may be a folder
    below = git_output(Path(), "rev-parse", "--show-prefix").decode(errors="replace").rstrip("\n")
    lines = status.decode(errors="replace").split("\0")[:-1]
    if not (changed := [line[3:].removeprefix(below) for line in lines]):
        yield "The committed result to the byte: dvc.lock and reports/ have not changed."
        return
    yield _compared(settings)
    named = ", ".join(changed) if len(changed) <= _NAMED else f"{len(changed)} files"
    added = [path for path in paths if any(f"{each}/".startswith(f"{path}/") for each in changed)]
    yield f"Changed: {named}. To keep it: git add {' '.join(added)} && git commit"


def _compared(settings: Settings) -> str:
    """How many results equal those that are committed of this experiment, and how many differ."""
    from bleuprint.report.same_results import compare_records

    committed = git_output(Path(), "show", f"HEAD:./{RESOLVED.as_posix()}").decode(errors="replace")
    of_head = f'"experiment": "{settings.experiment}"' in committed
    place = "HEAD" if of_head else (REPORTS / settings.experiment).as_posix()
    try:
        here = open_own_report().records
        there = open_report(place).records
        results, _ = compare_records(here, there)
    except UserError:  # none there, or written by an earlier version
        results = []
    if not results:
        return "No result of this experiment is committed: there is none to compare with."
    total = len(here.runs)
    same = sum(result.is_same for result in results)
    new, gone = (len(side.runs) - len(results) for side in (here, there))
    if same == total and not gone:
        return f"The committed result to the byte: translations and scores are those of {place}."
    more = [f"{new} {is_or_are(new)} new"] * bool(new)
    more += [f"{gone} of {place} {is_or_are(gone)} gone"] * bool(gone)
    if different := len(results) - same:
        more = [f"Not the committed result: {different} of {total} differ", *more]
        return f"{'; '.join(more)}. Where: bleuprint verify {place}"
    return "; ".join([f"{same} of {total} results are those of {place} to the byte", *more]) + "."


def _next(settings: Settings) -> Iterator[str]:
    yield "Next: open reports/index.html for learning curves, errors and sentences."
    yield "Change a setting: edit params.yaml; bleuprint plan says what would run."
    files = (
        file
        for corpus in settings.corpora.values()
        for file in corpus.files.files_by_name().values()
    )
    if any(file.path for file in files):
        yield "Translate: bleuprint translate --help; in a browser: bleuprint serve --help"
    else:
        yield "Your own text: make recipe NAME=own, then bleuprint new-corpus --help"
