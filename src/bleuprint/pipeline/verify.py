"""The command `bleuprint verify`: compares the results of this project with another report's.

The other report needs results.json, costs.csv, resolved.json and dvc.lock: neither data nor models.
If it is a release, all its files are also checked by their checksums. Where results differ,
`first_difference.py` finds the first stage whose outputs differ.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import COSTS_CSV, RESOLVED, Run
from bleuprint.pipeline.dvc_lock import LOCK, LockFile, print_note_if_unrecorded
from bleuprint.pipeline.first_difference import first_difference
from bleuprint.pipeline.release_check import check_release
from bleuprint.report.accepted_notes import describe_accepted
from bleuprint.report.frame import RESULTS, Records, read
from bleuprint.report.revision import revision_files
from bleuprint.report.same_results import ResultPair, compare_records
from bleuprint.runtime.accepted_code import AcceptedChange, read_reported_changes
from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted, list_first

# What messages call the report of the project in the working folder.
_OWN_NAME = "here"
# How many causes of a difference are named, and how many groups of differing results.
_MAX_CAUSES = 3
_MAX_GROUPS = 3
_VALID_NAMES = "Name a results.json, a release, a folder with reports/ or a commit"


@dataclass(frozen=True)
class Report:
    """The results of a project.

    Attributes:
        name: What messages call the report.
        records: The results and costs of all runs.
        lock: The dvc.lock of the same project; an empty one if it is missing.
        accepted: The changes of code that were accepted in the project: results that were computed
            with older code were kept.
    """

    name: str
    records: Records
    lock: LockFile
    accepted: Sequence[AcceptedChange] = ()

    def is_portable(self, run: Run) -> bool:
        """Return whether the run was trained with portable arithmetic, by dvc.lock."""
        stage = f"train@{run.system}-{run.corpus}-{run.seed}"
        arithmetic = self.lock.settings(stage).get(f"runs.{run.system}.{run.corpus}.arithmetic")
        return bool(arithmetic == "portable")


def open_own_report() -> Report:
    """Read the results of the project in the working folder, from reports/results.json.

    Raises:
        UserError: There are no results.
    """
    return _read_report(_OWN_NAME, results=RESULTS, root=Path())


def open_report(name: str) -> Report:
    """Read the results of another project or commit, to compare this project's results with them.

    If they are in a release, a folder whose files are listed with their checksums, all files of the
    release are checked, too.

    Args:
        name: Where they are: the path of a file results.json, of a folder that contains it, or of a
            project or release with reports/results.json; or a commit of Git or an experiment of
            DVC.

    Raises:
        UserError: There are no results there, they are this project's own, they contradict each
            other, or a file of a release has been changed.
    """
    if not name.strip():
        raise UserError("the name of the other report is empty. Is a variable not set?")
    path = Path(name)
    if not path.exists():
        # The name must be a commit. Its files are written to a temporary folder.
        with revision_files(name, (RESULTS, COSTS_CSV, LOCK, RESOLVED)) as root:
            return _read_report(name, root / RESULTS, root)
    results = _results_file(path)
    root = path if path.is_dir() else _project_root(results)
    # A results.json belongs to a release only if it is in the folder reports. Elsewhere, such as in
    # a folder of downloads, a list of checksums next to it may be of other files.
    is_in_reports = results.absolute().parent.name == RESULTS.parent.name
    if is_in_reports:
        check_release(root)
    if results.exists() and RESULTS.exists() and results.samefile(RESULTS):
        raise UserError(f"{name} leads to the results of this project. {_VALID_NAMES}")
    return _read_report(name, results, root)


def _results_file(path: Path) -> Path:
    """Return the path of the file results.json that a user means, who may also name its folder.

    Args:
        path: The file itself, a project, which contains reports/results.json, or the folder reports
            under any name.

    Returns:
        The path of the file, which need not exist.
    """
    if not path.is_dir():
        return path
    in_project = path / RESULTS
    in_folder = path / RESULTS.name
    if in_folder.exists() and not in_project.exists():
        return in_folder
    # Also if neither exists: the error message then names the path that a project should have.
    return in_project


def _project_root(results: Path) -> Path:
    """Return the folder of the project that a file results.json belongs to.

    Args:
        results: The path of the file. A project contains it in its folder reports. If it is
            elsewhere, its own folder counts as the project.
    """
    folder = results.absolute().parent
    is_in_reports = folder.name == RESULTS.parent.name
    if is_in_reports:
        return folder.parent
    return results.parent


def _read_report(name: str, results: Path, root: Path) -> Report:
    """Read the results of a project, and its dvc.lock, in which DVC records the project's stages.

    A note is printed if dvc.lock records another version of the results file.

    Args:
        name: The name of the project in messages.
        results: The path of the file results.json. The user may have given the file another name.
        root: The folder of the project.
    """
    is_own = name == _OWN_NAME
    # The user has named the other report, so an error about it also says which names are valid.
    records = read(results, root) if is_own else read(results, root, _VALID_NAMES)
    # A file with another name, such as results-anna.json, may be a copy from another project. Then
    # the dvc.lock in this folder does not belong to it.
    if results.name != RESULTS.name:
        return Report(name, records, lock=LockFile(text=""))
    lock = LockFile.read(root, f"{name}: {LOCK}")
    print_note_if_unrecorded(RESULTS, root, name)
    accepted = read_reported_changes(results.with_name(RESOLVED.name))
    return Report(name, records, lock, accepted)


@dataclass(frozen=True)
class Verification:
    """How the results of two reports compare.

    Attributes:
        lines: The lines to print, at most twelve.
        is_same: Whether both reports have the same results, to the byte.
    """

    lines: list[str]
    is_same: bool


def compare_reports(first: Report, second: Report) -> Verification:
    """Compare the results of two projects, and describe the comparison in lines of text.

    A result is the score and the translations of one run on one test set. Where results differ, the
    lines also name the first stage that differs, and why.

    Args:
        first: The results of this project, as a rule.
        second: The results to compare with.

    Raises:
        UserError: The projects have no run and test set in common.
    """
    # Each pair is a result that both projects contain. A metric that only one of them has computed,
    # such as TER, is not compared.
    pairs, not_compared_metrics = compare_records(first.records, second.records)
    if not pairs:
        raise UserError(
            f"{second.name} and {first.name} are different experiments: they have no system, "
            "corpus, seed and test set in common"
        )
    differing = [pair for pair in pairs if not pair.is_same]
    same_results = counted(len(pairs) - len(differing), "result")
    first_line = f"{first.name} and {second.name}: {same_results} with the same bytes"
    if differing:
        first_line += f", {len(differing)} different"
    lines = [first_line]
    if first.name == _OWN_NAME and _is_only_committed():
        lines.append(
            "here, nothing has run: reports/ is the committed version. To run: make reproduce"
        )
    only_in_first = len(first.records.runs) - len(pairs)
    only_in_second = len(second.records.runs) - len(pairs)
    if only_in_first or only_in_second:
        lines.append(f"only here: {counted(only_in_first, 'result')}, only there: {only_in_second}")
    if not_compared_metrics:
        lines.append(f"not compared, since one side lacks them: {', '.join(not_compared_metrics)}")
    lines += _describe_differences(first, second, differing)
    for report in (first, second):
        if report.accepted:
            changes = describe_accepted(report.accepted)
            lines.append(f"{report.name}: code accepted without running it again: {changes}")
    is_same = not differing and not only_in_first and not only_in_second
    return Verification(lines, is_same)


def _describe_differences(
    first: Report, second: Report, differing: Sequence[ResultPair]
) -> list[str]:
    """Describe the results that differ between two projects, in two lines for each group of them.

    The results of a group differ from the same stage on and for the same reasons. The first line
    shows the scores of one result as an example, the second one names the stage and the reasons.
    If there are many groups, the first ones are described, and the remaining ones are counted.

    Args:
        first: The results of the first project.
        second: The results of the second project.
        differing: The results that both projects contain and that differ.
    """
    groups = defaultdict[str, list[ResultPair]](list)
    for pair in differing:
        groups[_stage_and_causes(first, second, pair)].append(pair)
    lines = []
    for stage_and_causes in list(groups)[:_MAX_GROUPS]:
        example = _describe_example(groups[stage_and_causes])
        lines.append(f"different: {example}")
        lines.append(f"  {stage_and_causes}")
    omitted_count = len(groups) - _MAX_GROUPS
    if omitted_count > 0:
        more_groups = counted(omitted_count, "more group")
        lines[-1] += f" (and {more_groups} of results, by where and why they differ)"
    return lines


def _stage_and_causes(first: Report, second: Report, pair: ResultPair) -> str:
    """Describe from which stage on a result differs, and why: `from train on: settings ...`.

    If texts differ, such as the translations, the stage is found with dvc.lock, which records the
    hashes of all outputs of each stage. If only scores differ, or if a project has no dvc.lock, the
    stage is the first one whose values in results.json differ.

    Args:
        first: The results of the first project.
        second: The results of the second project.
        pair: One result, as it is in both projects.
    """
    stage = pair.first_differing_stage
    causes = list(pair.causes())
    hashes_of_texts = {"sources_sha256", "references_sha256", "hypotheses_sha256"}
    do_texts_differ = not hashes_of_texts.isdisjoint(pair.differing_names)
    if do_texts_differ:
        difference = None
        first_stages = first.lock.stages
        second_stages = second.lock.stages
        if first_stages and second_stages:
            last_stage = _last_stage_to_compare(pair)
            difference = first_difference(first_stages, second_stages, last_stage)
        if difference is not None:
            stage = difference.stage_kind
            causes = list(difference.causes)
        # Another processor or library may be a cause, too. It is not one for portable arithmetic,
        # which computes the same on all machines.
        are_portable = first.is_portable(pair.run) and second.is_portable(pair.run)
        causes += pair.environment(are_portable)
    if not causes:
        return (
            f"from {stage} on: all recorded inputs are the same. The cause may be another machine "
            "or library, or an edited file"
        )
    return f"from {stage} on: {list_first(causes, _MAX_CAUSES, separator='; ')}"


def _last_stage_to_compare(pair: ResultPair) -> str:
    """Return the stage at which the search for the first difference of two runs may stop.

    If the translations (hypotheses) differ, this is the stage `translate`, which wrote them. If
    only sources or references differ, it is the stage `score`, which reads them.

    Args:
        pair: One result, as it is in both projects.
    """
    if "hypotheses_sha256" in pair.differing_names:
        # The names differ only before the @: score@small-own-1 and translate@small-own-1.
        return pair.score_stage.replace("score@", "translate@")
    return pair.score_stage


def _is_only_committed() -> bool:
    """Return whether the results in this project come from Git, and none were computed here.

    A comparison of such results says nothing about this machine.
    """
    is_in_git = bool(git_output(Path(), "ls-files", str(RESULTS)))
    is_edited = bool(git_output(Path(), "diff", "HEAD", str(RESULTS)))
    if not is_in_git or is_edited:
        return False
    # The stage score of each run writes a file results/SYSTEM/CORPUS/SEED/scores.json.
    has_scored_runs = any(Path("results").glob("*/*/*/scores.json"))
    return not has_scored_runs


def _describe_example(pairs: Sequence[ResultPair]) -> str:
    """Describe the result whose BLEU differs most between two projects; count the other results.

    Args:
        pairs: The results that differ, each as it is in both projects.
    """
    example = max(pairs, key=_bleu_difference)
    first_bleu, second_bleu = example.bleu
    run = example.run
    text = (
        f"{run.system} on {run.corpus}, seed {run.seed}, {example.first['test']}: "
        f"{first_bleu:.2f} and {second_bleu:.2f} BLEU"
    )
    other_count = len(pairs) - 1
    if other_count > 0:
        text += f", and {counted(other_count, 'other')}"
    return text


def _bleu_difference(pair: ResultPair) -> float:
    """Return the absolute difference in BLEU between the two reports."""
    first_bleu, second_bleu = pair.bleu
    return abs(second_bleu - first_bleu)
