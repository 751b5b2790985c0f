"""The command `bleuprint verify`: are the results those of another report?

Of another report only results.json, costs.csv and dvc.lock are read, so that it needs neither the
other's data nor its models.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from bleuprint.pipeline.dvc_lock import check_no_conflict
from bleuprint.pipeline.first_difference import first_difference
from bleuprint.report.frame import COSTS, RESULTS, Records, read
from bleuprint.report.revision import files_of
from bleuprint.report.same_results import SEEDS_BLEU, Compared, Verdict, compared
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import parse_yaml

_LOCK = Path("dvc.lock")
# Causes, and groups of results, that are written out.
_MOST = 3
_TEXTS = {Verdict.DIFFERENT: "different", Verdict.WITHIN_NOISE: "within the noise of seeds"}


@dataclass(frozen=True)
class Report:
    """A results.json with its MD5, and the content of the dvc.lock beside it, if there is one."""

    name: str
    records: Records
    md5: str
    lock: str

    @cached_property
    def stages(self) -> Mapping[str, Any]:
        """Those of dvc.lock, of which only a difference is explained: parsing takes a while."""
        path = f"{self.name}: {_LOCK}"
        content = parse_yaml(self.lock, path) if self.lock else {"stages": {}}
        if not isinstance(content, dict) or not isinstance(content.get("stages"), dict):
            raise UserError(
                f"{path}: damaged, as by a killed process; run: git checkout dvc.lock, dvc repro"
            )
        return dict(content["stages"])

    @property
    def edited(self) -> bool:
        """Whether the file is not the one that dvc.lock names."""
        if self.md5 in self.lock:
            return False
        outs = self.stages.get("report", {}).get("outs", ())
        recorded = [out.get("md5") for out in outs if out["path"] == RESULTS.as_posix()]
        return recorded not in ([], [self.md5])


def open_report(name: str) -> Report:
    """A results.json, a folder with it or with reports/, or a revision of git or DVC.

    Raises UserError if there is none, or if its records contradict each other.
    """
    path = Path(name)
    if not (path / RESULTS).exists() and (path / RESULTS.name).exists():
        path /= RESULTS.name
    if path.is_dir():
        return _report("here" if name == "." else name, path / RESULTS, path)
    if path.exists():
        of_project = path.absolute().parent.name == RESULTS.parent.name
        return _report(name, path, path.absolute().parents[1] if of_project else path.parent)
    with files_of(name, (RESULTS, COSTS, _LOCK)) as root:
        return _report(name, root / RESULTS, root)


def lines(here: Report, there: Report) -> tuple[list[str], Verdict]:
    """What differs in the results of two reports, in at most ten lines, and the whole's verdict.

    Raises UserError if they have no result in common.
    """
    results, left_out = compared(here.records, there.records)
    if not results:
        raise UserError(
            f"{there.name}: another experiment: no system, corpus, seed and test set in common "
            f"with {here.name}"
        )
    verdict = max(each.verdict for each in results)
    counts = [
        f"{sum(each.verdict == of for each in results)} {text}" for of, text in _TEXTS.items()
    ]
    same = sum(each.verdict == Verdict.SAME_BYTES for each in results)
    text = [f"{here.name} and {there.name}: {same} results the same bytes, {', '.join(counts)}"]
    alone = [len(side.records.cells) - len(results) for side in (here, there)]
    if any(alone):
        text.append(f"only here: {alone[0]} results, only there: {alone[1]}")
        verdict = Verdict.DIFFERENT
    if edited := [side.name for side in (here, there) if side.edited]:
        text.append(f"not the results.json that dvc.lock names, but edited: {', '.join(edited)}")
        verdict = Verdict.DIFFERENT
    if left_out:
        text.append(f"not compared, since one side lacks them: {_first(left_out)}")
    groups = _groups(here, there, results)
    shown = _MOST - (len(text) > 2)
    for (of, why), members in islice(groups.items(), shown):
        text += [f"{_TEXTS[of]}: {_examples(members)}", f"  {why}"]
    if (left := len(groups) - shown) > 0:
        text.append(f"and {left} more groups of results, by where and why they differ")
    if any(each.verdict == Verdict.WITHIN_NOISE for each in results):
        seeds = len({each.cell.seed for each in results})
        basis = (
            f"the deviation over {seeds} seeds (two-sample t)"
            if seeds > 1
            else f"a deviation of {SEEDS_BLEU} BLEU over seeds, from the literature, not measured"
        )
        text.append(f"noise: 95 % of differences between two runs of one experiment, by {basis}")
    return text, verdict


def _report(name: str, path: Path, root: Path) -> Report:
    records, lock, text = read(path, root), root / _LOCK, ""
    # beside a file of another name, as of a colleague, is the dvc.lock of this project
    if path.name == RESULTS.name and lock.exists():
        check_no_conflict(lock)
        text = lock.read_text(encoding="utf-8", errors="replace")
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return Report(name, records, digest, text)


def _first(names: Sequence[str]) -> str:
    """The first of some measures, and how many others there are."""
    more = f" and {len(names) - _MOST} more measures" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _groups(
    here: Report, there: Report, results: Sequence[Compared]
) -> dict[tuple[Verdict, str], list[Compared]]:
    """The results that are not the same, by verdict, and by where and why; different ones first."""
    groups: dict[tuple[Verdict, str], list[Compared]] = {}
    for each in sorted(results, key=lambda each: -each.verdict):
        if each.verdict != Verdict.SAME_BYTES:
            groups.setdefault((each.verdict, _where_and_why(here, there, each)), []).append(each)
    return groups


def _where_and_why(here: Report, there: Report, each: Compared) -> str:
    """The first stage from which a result differs, and all that is recorded of causes."""
    stage, causes = each.stage, list(each.causes())
    translated = {"sources_sha256", "references_sha256", "hypotheses_sha256"} & {*each.names}
    if translated and here.stages and there.stages:
        found = first_difference(here.stages, there.stages, each.scored_by)
        if found:
            stage, causes = found
        else:
            causes.append("dvc.lock has the same outputs: a results.json is not of its dvc.lock")
    if translated:
        causes += each.environment()
    if not causes and not translated:
        causes = [f"{each.names[0]} edited by hand: the translations are the same"]
    unknown = "nothing that is recorded differs: another machine or library, or an edited file"
    more = f"; and {len(causes) - _MOST} more" if len(causes) > _MOST else ""
    return f"from {stage} on: {'; '.join(causes[:_MOST]) or unknown}{more}"


def _examples(members: Sequence[Compared]) -> str:
    """The result that differs most, and how many others there are."""
    most = max(members, key=lambda each: abs(each.difference))
    (system, corpus, seed), bleu = most.cell, most.bleu
    text = (
        f"{system} on {corpus}, seed {seed}, {most.first['test']}: {bleu[0]:.2f} and "
        f"{bleu[1]:.2f} BLEU (mean difference {most.difference:+z.2f}"
    )
    # smaller and yet different: not comparable, for the reason that the next line says
    small = abs(most.difference) <= most.noise
    shows = most.verdict == Verdict.WITHIN_NOISE or not small
    text += f", noise ± {most.noise:.2f})" if shows else ")"
    return f"{text}, and {len(members) - 1} others" if len(members) > 1 else text
