"""The command `bleuprint verify`: are the results those of another report?

Of another report only results.json, costs.csv and dvc.lock are compared, so that it needs neither
the other's data nor its models; of a release all files by their sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.pipeline.dvc_lock import LOCK, LockFile, note_unrecorded
from bleuprint.pipeline.first_difference import first_difference
from bleuprint.pipeline.release_check import check_release
from bleuprint.report.frame import COSTS, RESULTS, Records, read
from bleuprint.report.revision import revision_files
from bleuprint.report.same_results import ResultPair, compare_records
from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted

# Causes, and groups of results, that are written out.
_MOST = 3
_OTHERWISE = "give a results.json, a release, a folder with reports/ or a commit"


@dataclass(frozen=True)
class Report:
    """The records of a report, and the dvc.lock beside it, an empty one if there is none."""

    name: str
    records: Records
    lock: LockFile

    def is_portable(self, run: Run) -> bool:
        """Whether dvc.lock has a training of the run with portable arithmetic."""
        settings = self.lock.settings(f"train@{'-'.join(map(str, run))}")
        return bool(settings.get(f"runs.{run.system}.{run.corpus}.arithmetic") == "portable")


def open_own_report() -> Report:
    """The report of the project in the working folder; raises UserError if there is none."""
    return _report("here", RESULTS, Path())


def open_report(name: str) -> Report:
    """Open the report to compare with.

    Args:
        name: A path or a revision: the file results.json, a folder that holds it, a project or
            release with reports/results.json, or a revision of git or DVC.

    Raises:
        UserError: There is no report of this name, it is this project's own, its records contradict
            each other, or a file of a release has been changed.
    """
    if not name.strip():
        raise UserError("the other report has an empty name: is a variable not set?")
    path = Path(name)
    if not path.exists():
        with revision_files(name, (RESULTS, COSTS, LOCK)) as root:
            return _report(name, root / RESULTS, root)
    results = _results_file(path)
    root = path if path.is_dir() else _root(results)
    # A results.json that stands elsewhere, as in a folder of downloads, is of no release: a file
    # of check sums beside it is of something else.
    if results.absolute().parent.name == RESULTS.parent.name:
        check_release(root)
    if results.exists() and RESULTS.exists() and results.samefile(RESULTS):
        raise UserError(f"{name}: leads to the results of this project: {_OTHERWISE}")
    return _report(name, results, root)


def _results_file(path: Path) -> Path:
    """Return the results.json of a path: of a folder the one in reports/, else the one in it."""
    if not path.is_dir():
        return path
    in_reports = path / RESULTS
    in_folder = path / RESULTS.name
    if in_folder.exists() and not in_reports.exists():
        return in_folder
    return in_reports


def _root(results: Path) -> Path:
    """Return the root of the project whose results.json this is, else the folder that holds it."""
    folder = results.absolute().parent
    if folder.name == RESULTS.parent.name:
        return folder.parent
    return results.parent


def _report(name: str, path: Path, root: Path) -> Report:
    records = read(path, root) if name == "here" else read(path, root, _OTHERWISE)
    # beside a file of another name, as of a colleague, is the dvc.lock of this project
    if path.name != RESULTS.name:
        return Report(name, records, LockFile(""))
    lock = LockFile.read(root, f"{name}: {LOCK}")
    note_unrecorded(RESULTS, root, name)
    return Report(name, records, lock)


@dataclass(frozen=True)
class Verification:
    """How the results of two reports compare.

    Attributes:
        lines: What to say of it, at most ten lines.
        is_same: Whether both reports have the same results, to the byte.
    """

    lines: list[str]
    is_same: bool


def compare_reports(here: Report, there: Report) -> Verification:
    """Compare the results of two reports.

    Raises:
        UserError: They have no result in common.
    """
    results, not_compared = compare_records(here.records, there.records)
    if not results:
        raise UserError(
            f"{there.name}: another experiment: no system, corpus, seed and test set in common "
            f"with {here.name}"
        )
    differing = [result for result in results if not result.is_same]
    same = counted(len(results) - len(differing), "result")
    different = f", {len(differing)} different" if differing else ""
    lines = [f"{here.name} and {there.name}: {same} the same bytes{different}"]
    if here.name == "here" and _only_committed():
        lines.append(
            "here, reports/ is as committed: nothing has run since. To run: make reproduce"
        )
    only_here = len(here.records.runs) - len(results)
    only_there = len(there.records.runs) - len(results)
    if only_here or only_there:
        lines.append(f"only here: {counted(only_here, 'result')}, only there: {only_there}")
    if not_compared:
        lines.append(f"not compared, since one side lacks them: {', '.join(not_compared)}")
    lines += _differences(here, there, differing)
    is_same = not differing and not only_here and not only_there
    return Verification(lines, is_same)


def _differences(here: Report, there: Report, differing: Sequence[ResultPair]) -> list[str]:
    """Return two lines for each of the first groups of results that differ.

    A group has the results that differ from the same stage on and for the same reasons.
    """
    groups: dict[str, list[ResultPair]] = {}
    for result in differing:
        groups.setdefault(_where_and_why(here, there, result), []).append(result)
    lines = []
    for reason in list(groups)[:_MOST]:
        lines += [f"different: {_example(groups[reason])}", f"  {reason}"]
    more = len(groups) - _MOST
    if more > 0:
        lines[-1] += (
            f" (and {counted(more, 'more group')} of results, by where and why they differ)"
        )
    return lines


def _where_and_why(here: Report, there: Report, each: ResultPair) -> str:
    """The first stage from which the translations, or else the scores, differ, and the causes."""
    stage, causes = each.first_differing_stage, list(each.causes())
    if {"sources_sha256", "references_sha256", "hypotheses_sha256"} & {*each.differing_names}:
        if here.lock.stages and there.lock.stages:
            last = (
                "score@",
                "translate@" if "hypotheses_sha256" in each.differing_names else "score@",
            )
            name = each.score_stage.replace(*last)
            found = first_difference(here.lock.stages, there.lock.stages, name)
            stage, causes = found or (stage, causes)
        causes += each.environment(here.is_portable(each.run) and there.is_portable(each.run))
    unknown = "nothing that is recorded differs: another machine or library, or an edited file"
    more = f"; and {len(causes) - _MOST} more" if len(causes) > _MOST else ""
    return f"from {stage} on: {'; '.join(causes[:_MOST]) or unknown}{more}"


def _only_committed() -> bool:
    """Whether results.json is as in git, and the stages of which it shows results have not run."""
    same = git_output(Path(), "ls-files", str(RESULTS)) and not git_output(
        Path(), "diff", "HEAD", str(RESULTS)
    )
    return bool(same) and not any(Path("results").glob("*/*/*/scores.json"))


def _example(results: Sequence[ResultPair]) -> str:
    """Return the result whose BLEU differs most, and the number of other results."""
    most = max(results, key=_bleu_difference)
    system, corpus, seed = most.run
    bleu_here, bleu_there = most.bleu
    others = len(results) - 1
    and_others = f", and {counted(others, 'other')}" if others else ""
    return (
        f"{system} on {corpus}, seed {seed}, {most.first['test']}: {bleu_here:.2f} and "
        f"{bleu_there:.2f} BLEU{and_others}"
    )


def _bleu_difference(result: ResultPair) -> float:
    """Return by how much BLEU differs."""
    first, second = result.bleu
    return abs(second - first)
