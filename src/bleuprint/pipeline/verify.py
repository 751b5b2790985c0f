"""The command `bleuprint verify`: compares the results of this project with another report's.

The other report needs only results.json, costs.csv and dvc.lock: neither its data nor its models.
If it is a release, all its files are also checked by their checksums. Where results differ,
`first_difference.py` finds the first stage whose outputs differ.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.pipeline.dvc_lock import LOCK, LockFile, note_unrecorded
from bleuprint.pipeline.first_difference import first_difference
from bleuprint.pipeline.release_check import check_release
from bleuprint.report.frame import RESULTS, Records, read
from bleuprint.report.revision import revision_files
from bleuprint.report.same_results import ResultPair, compare_records
from bleuprint.report.training_costs import COSTS
from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted, list_first

# What messages call the report of the project in the working folder.
_OWN_NAME = "here"
# How many causes of a difference are named, and how many groups of differing results.
_MAX_CAUSES = 3
_MAX_GROUPS = 3
_VALID_NAMES = "give a results.json, a release, a folder with reports/ or a commit"


@dataclass(frozen=True)
class Report:
    """The results of a project.

    Attributes:
        name: What messages call the report.
        records: The results and costs of all runs.
        lock: The dvc.lock of the same project; an empty one if it is missing.
    """

    name: str
    records: Records
    lock: LockFile

    def is_portable(self, run: Run) -> bool:
        """Return whether the run was trained with portable arithmetic, by dvc.lock."""
        stage = f"train@{run.system}-{run.corpus}-{run.seed}"
        arithmetic = self.lock.settings(stage).get(f"runs.{run.system}.{run.corpus}.arithmetic")
        return bool(arithmetic == "portable")


def open_own_report() -> Report:
    """Open the report of the project in the working folder.

    Raises:
        UserError: There is none.
    """
    return _read_report(_OWN_NAME, RESULTS, Path())


def open_report(name: str) -> Report:
    """Open the report to compare with.

    Args:
        name: A path or a revision: the file results.json, a folder that contains it, a project or
            release with reports/results.json, or a revision of Git or DVC.

    Raises:
        UserError: There is no report of this name, it is this project's own, its records contradict
            each other, or a file of a release has been changed.
    """
    if not name.strip():
        raise UserError("the other report has an empty name: is a variable not set?")
    path = Path(name)
    if not path.exists():
        with revision_files(name, (RESULTS, COSTS, LOCK)) as root:
            return _read_report(name, root / RESULTS, root)
    results = _results_file(path)
    root = path if path.is_dir() else _project_root(results)
    # In a folder of downloads, results.json and SHA256SUMS may have nothing to do with each other.
    # Only in a folder named reports does results.json belong to a release.
    if results.absolute().parent.name == RESULTS.parent.name:
        check_release(root)
    if results.exists() and RESULTS.exists() and results.samefile(RESULTS):
        raise UserError(f"{name}: leads to the results of this project: {_VALID_NAMES}")
    return _read_report(name, results, root)


def _results_file(path: Path) -> Path:
    """Return the results.json of a folder: the one in reports/, else the one directly in it.

    A path that is not a folder is returned as it is.
    """
    if not path.is_dir():
        return path
    in_reports = path / RESULTS
    in_folder = path / RESULTS.name
    if in_folder.exists() and not in_reports.exists():
        return in_folder
    return in_reports


def _project_root(results: Path) -> Path:
    """Return the folder of the project with this results.json: the parent of a folder reports."""
    folder = results.absolute().parent
    if folder.name == RESULTS.parent.name:
        return folder.parent
    return results.parent


def _read_report(name: str, results: Path, root: Path) -> Report:
    """Read results.json, and the costs.csv and dvc.lock of the same project.

    Args:
        name: What messages call the report.
        results: The path of results.json, which may have another file name.
        root: The folder of the project.
    """
    is_own = name == _OWN_NAME
    records = read(results, root) if is_own else read(results, root, _VALID_NAMES)
    # A colleague's results may lie in this project under another name. Then its dvc.lock is ours.
    if results.name != RESULTS.name:
        return Report(name, records, LockFile(""))
    lock = LockFile.read(root, f"{name}: {LOCK}")
    note_unrecorded(RESULTS, root, name)
    return Report(name, records, lock)


@dataclass(frozen=True)
class Verification:
    """How the results of two reports compare.

    Attributes:
        lines: The lines to print, at most ten.
        is_same: Whether both reports have the same results, to the byte.
    """

    lines: list[str]
    is_same: bool


def compare_reports(first: Report, second: Report) -> Verification:
    """Compare the results of two reports.

    Args:
        first: The project's own report, as a rule.
        second: The report to compare with.

    Raises:
        UserError: They have no result in common.
    """
    pairs, not_compared = compare_records(first.records, second.records)
    if not pairs:
        raise UserError(
            f"{second.name}: another experiment: no system, corpus, seed and test set in common "
            f"with {first.name}"
        )
    differing = [pair for pair in pairs if not pair.is_same]
    same_count = counted(len(pairs) - len(differing), "result")
    different_count = f", {len(differing)} different" if differing else ""
    lines = [f"{first.name} and {second.name}: {same_count} with the same bytes{different_count}"]
    if first.name == _OWN_NAME and _is_only_committed():
        lines.append(
            "here, reports/ is as committed: nothing has run since. To run: make reproduce"
        )
    only_in_first = len(first.records.runs) - len(pairs)
    only_in_second = len(second.records.runs) - len(pairs)
    if only_in_first or only_in_second:
        lines.append(f"only here: {counted(only_in_first, 'result')}, only there: {only_in_second}")
    if not_compared:
        lines.append(f"not compared, since one side lacks them: {', '.join(not_compared)}")
    lines += _describe_differences(first, second, differing)
    is_same = not differing and not only_in_first and not only_in_second
    return Verification(lines, is_same)


def _describe_differences(
    first: Report, second: Report, differing: Sequence[ResultPair]
) -> list[str]:
    """Describe results that differ, in two lines for each group; only the first groups.

    The results of a group differ from the same stage on and for the same reasons. The first line
    of a group shows one result as an example, the second one names the stage and the reasons.
    """
    groups = defaultdict[str, list[ResultPair]](list)
    for pair in differing:
        groups[_stage_and_causes(first, second, pair)].append(pair)
    lines = []
    for stage_and_causes in list(groups)[:_MAX_GROUPS]:
        lines.append(f"different: {_describe_example(groups[stage_and_causes])}")
        lines.append(f"  {stage_and_causes}")
    rest = len(groups) - _MAX_GROUPS
    if rest > 0:
        more_groups = counted(rest, "more group")
        lines[-1] += f" (and {more_groups} of results, by where and why they differ)"
    return lines


def _stage_and_causes(first: Report, second: Report, pair: ResultPair) -> str:
    """Describe from which stage on a result differs, and why: `from train on: settings ...`.

    The two files dvc.lock give the exact stage, if both exist and the texts differ. Otherwise the
    stage is the first one whose figures in results.json differ.
    """
    stage = pair.first_differing_stage
    causes = list(pair.causes())
    have_texts_changed = any(
        name in pair.differing_names
        for name in ("sources_sha256", "references_sha256", "hypotheses_sha256")
    )
    if have_texts_changed:
        difference = None
        if first.lock.stages and second.lock.stages:
            last_stage = _last_stage_to_compare(pair)
            difference = first_difference(first.lock.stages, second.lock.stages, last_stage)
        if difference is not None:
            stage = difference.stage_kind
            causes = list(difference.causes)
        are_portable = first.is_portable(pair.run) and second.is_portable(pair.run)
        causes += pair.environment(are_portable)
    if not causes:
        return (
            f"from {stage} on: nothing that is recorded differs: another machine or library, "
            "or an edited file"
        )
    return f"from {stage} on: {list_first(causes, _MAX_CAUSES, separator='; ')}"


def _last_stage_to_compare(pair: ResultPair) -> str:
    """Return the stage that wrote the texts that differ: translate, or else score.

    The stage translate of a run has the name of its stage score, with the other kind in front.
    """
    if "hypotheses_sha256" in pair.differing_names:
        return pair.score_stage.replace("score@", "translate@")
    return pair.score_stage


def _is_only_committed() -> bool:
    """Whether results.json is the committed one, and no stage of its runs has run here."""
    is_in_git = bool(git_output(Path(), "ls-files", str(RESULTS)))
    is_changed = bool(git_output(Path(), "diff", "HEAD", str(RESULTS)))
    if not is_in_git or is_changed:
        return False
    return not any(Path("results").glob("*/*/*/scores.json"))


def _describe_example(pairs: Sequence[ResultPair]) -> str:
    """Describe the result whose BLEU differs most, and count the other results."""
    example = max(pairs, key=_bleu_difference)
    first_bleu, second_bleu = example.bleu
    run = example.run
    text = (
        f"{run.system} on {run.corpus}, seed {run.seed}, {example.first['test']}: "
        f"{first_bleu:.2f} and {second_bleu:.2f} BLEU"
    )
    rest = len(pairs) - 1
    if rest > 0:
        text += f", and {counted(rest, 'other')}"
    return text


def _bleu_difference(pair: ResultPair) -> float:
    """Return the absolute difference in BLEU between the two reports."""
    first_bleu, second_bleu = pair.bleu
    return abs(second_bleu - first_bleu)
