"""The command `bleuprint verify`: are the results those of another report?

Of another report only results.json, costs.csv and dvc.lock are compared, so that it needs neither
the other's data nor its models; of a release all files by their sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.pipeline.dvc_lock import LOCK, LockFile, note_unrecorded
from bleuprint.pipeline.first_difference import first_difference
from bleuprint.pipeline.release_check import check_release
from bleuprint.report.frame import COSTS, RESULTS, Records, read
from bleuprint.report.revision import files_of
from bleuprint.report.same_results import Compared, Verdict, compared, deviations
from bleuprint.runtime.code import git
from bleuprint.runtime.counts import counted
from bleuprint.runtime.errors import UserError

# Causes, and groups of results, that are written out.
_MOST = 3
_OTHERWISE = "give a results.json, a release, a folder with reports/ or a commit"
_TEXTS = {
    Verdict.WITHIN_NOISE: "the same within the noise of seeds",
    Verdict.NOISE_UNKNOWN: "of a noise of seeds that is not known",
    Verdict.DIFFERENT: "different",
}


@dataclass(frozen=True)
class Report:
    """The records of a report, and the dvc.lock beside it, an empty one if there is none."""

    name: str
    records: Records
    lock: LockFile

    def is_portable(self, cell: Run) -> bool:
        """Whether dvc.lock has a training of the run with portable arithmetic."""
        settings = self.lock.settings(f"train@{'-'.join(map(str, cell))}")
        return bool(settings.get(f"runs.{cell.system}.{cell.corpus}.arithmetic") == "portable")


def open_own() -> Report:
    """The report of the project in the working folder; raises UserError if there is none."""
    return _report("here", RESULTS, Path())


def open_report(name: str) -> Report:
    """A results.json, a folder with it or with reports/, or a revision of git or DVC.

    Raises UserError if there is none, if it is this project's own, if its records contradict each
    other, or if a release is not as its sums say.
    """
    if not name.strip():
        raise UserError("the other report has an empty name: is a variable not set?")
    path = Path(name)
    if not (path / RESULTS).exists() and (path / RESULTS.name).exists():
        path /= RESULTS.name
    if path.is_dir():
        check_release(path)
    _check_other(name, path)
    if path.is_dir():
        return _report(name, path / RESULTS, path)
    if path.exists() and path.absolute().parent.name == RESULTS.parent.name:
        root = path.absolute().parents[1]
        check_release(root)
        return _report(name, path, root)
    if path.exists():  # maybe among other files, whose sums and costs are not of it
        return _report(name, path, path.parent)
    with files_of(name, (RESULTS, COSTS, LOCK)) as root:
        return _report(name, root / RESULTS, root)


def _check_other(name: str, path: Path) -> None:
    """Raise UserError if a path leads to this project's own results, which equal themselves."""
    results = path / RESULTS if path.is_dir() else path
    if results.exists() and RESULTS.exists() and results.samefile(RESULTS):
        raise UserError(f"{name}: leads to the results of this project: {_OTHERWISE}")


def _report(name: str, path: Path, root: Path) -> Report:
    records = read(path, root) if name == "here" else read(path, root, _OTHERWISE)
    # beside a file of another name, as of a colleague, is the dvc.lock of this project
    if path.name != RESULTS.name:
        return Report(name, records, LockFile(""))
    lock = LockFile.read(root, f"{name}: {LOCK}")
    note_unrecorded(RESULTS, root, name)
    return Report(name, records, lock)


def lines(here: Report, there: Report) -> tuple[list[str], Verdict]:  # noqa: C901
    """What differs in the results of two reports, in at most ten lines, and the whole's verdict.

    Raises UserError if they have no result in common.
    """
    measured = cache(deviations)  # reads files, if there is a difference
    results, left_out = compared(here.records, there.records, lambda it: measured().get(it))
    if not results:
        raise UserError(
            f"{there.name}: another experiment: no system, corpus, seed and test set in common "
            f"with {here.name}"
        )
    verdicts = [each.verdict for each in results]
    counts = [f"{verdicts.count(of)} {text}" for of, text in _TEXTS.items() if of in verdicts]
    same = counted(verdicts.count(Verdict.SAME_BYTES), "result")
    counts.insert(0, f"{same} the same bytes")
    text = [f"{here.name} and {there.name}: {', '.join(counts)}"]
    if here.name == "here" and _only_committed():
        text.append("here, reports/ is as committed: nothing has run since. To run: make reproduce")
    alone = [len(side.records.runs) - len(results) for side in (here, there)]
    if any(alone):
        text.append(f"only here: {counted(alone[0], 'result')}, only there: {alone[1]}")
    if left_out:
        text.append(f"not compared, since one side lacks them: {', '.join(left_out)}")
    # by verdict, and by where and why they differ; different ones first
    groups: dict[tuple[Verdict, str], list[Compared]] = {}
    for each in sorted(results, key=lambda each: -each.verdict):
        if each.verdict != Verdict.SAME_BYTES:
            groups.setdefault((each.verdict, _where_and_why(here, there, each)), []).append(each)
    for (of, why), members in islice(groups.items(), _MOST):
        text += [f"{_TEXTS[of]}: {_example(members)}", f"  {why}"]
    if (left := len(groups) - _MOST) > 0:
        text[-1] += f" (and {counted(left, 'more group')} of results, by where and why they differ)"
    if any(each.verdict == Verdict.WITHIN_NOISE for each in results):
        seeds = len({each.cell.seed for each in results})
        basis = "those that reports/ has on these test lines" if seeds == 1 else str(seeds)
        text.append(
            "noise: 95 % of differences between two runs of one experiment, by the deviation over "
            f"seeds: {basis}"
        )
    if any(each.verdict == Verdict.NOISE_UNKNOWN for each in results):
        text.append("one seed does not say by how much trainings differ by chance: give several")
    return text, Verdict.DIFFERENT if any(alone) else max(verdicts)


def _where_and_why(here: Report, there: Report, each: Compared) -> str:
    """The first stage from which the translations, or else the scores, differ, and the causes."""
    stage, causes = each.stage, list(each.causes())
    if {"sources_sha256", "references_sha256", "hypotheses_sha256"} & {*each.names}:
        if here.lock.stages and there.lock.stages:
            last = ("score@", "translate@" if "hypotheses_sha256" in each.names else "score@")
            name = each.scored_by.replace(*last)
            found = first_difference(here.lock.stages, there.lock.stages, name)
            stage, causes = found or (stage, causes)
        causes += each.environment(here.is_portable(each.cell) and there.is_portable(each.cell))
    unknown = "nothing that is recorded differs: another machine or library, or an edited file"
    more = f"; and {len(causes) - _MOST} more" if len(causes) > _MOST else ""
    return f"from {stage} on: {'; '.join(causes[:_MOST]) or unknown}{more}"


def _only_committed() -> bool:
    """Whether results.json is as in git, and the stages of which it shows results have not run."""
    same = git(Path(), "ls-files", str(RESULTS)) and not git(Path(), "diff", "HEAD", str(RESULTS))
    return bool(same) and not any(Path("results").glob("*/*/*/scores.json"))


def _example(members: Sequence[Compared]) -> str:
    """The result that differs most, and how many others there are."""
    most = max(members, key=lambda each: abs(each.difference))
    (system, corpus, seed), bleu = most.cell, most.bleu
    # smaller and yet different: not comparable, for the reason that the next line says
    comparable = most.noise is not None and (
        most.verdict == Verdict.WITHIN_NOISE or abs(most.difference) > most.noise
    )
    noise = f", noise ± {most.noise:.2f}" if comparable else ""
    others = f", and {counted(len(members) - 1, 'other')}" if len(members) > 1 else ""
    return (
        f"{system} on {corpus}, seed {seed}, {most.first['test']}: {bleu[0]:.2f} and "
        f"{bleu[1]:.2f} BLEU (mean difference {most.difference:+z.2f}{noise}){others}"
    )
