"""The result of a system on a test set: means over seeds, and differences from the baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from bleuprint.report.frame import Records
from bleuprint.report.grid import Number
from bleuprint.report.paired import p_text
from bleuprint.report.task import Task, tasks_of
from bleuprint.rules.letters import SCRIPTS
from bleuprint.scoring.floor import MATCHED, reason_not_tested
from bleuprint.scoring.human_agreement import agreement_text, human_agreement
from bleuprint.scoring.measures import MEASURES, SCORES
from bleuprint.scoring.significance import SIGNIFICANT

# What tables say of a row from outside.
OUTSIDE = "not trained here"
# A system on a test set.
PLACE = ["system", "corpus", "test"]


@dataclass(frozen=True)
class Score:
    """A measure: the mean over seeds with its standard deviation, or an interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None
    digits: int = 1

    @property
    def number(self) -> str:
        return f"{self.mean:.{self.digits}f}"

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval; of several seeds one standard deviation to each side."""
        if self.low is None or self.high is None:
            return self.mean - (self.deviation or 0.0), self.mean + (self.deviation or 0.0)
        return self.low, self.high

    def __str__(self) -> str:
        if self.deviation is not None:
            digits = self.digits or 1
            return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"
        if self.low is None:
            return self.number
        return f"{self.number} [{self.low:.{self.digits}f}, {self.high:.{self.digits}f}]"


@dataclass(frozen=True)
class Difference:
    """A system's mean value minus the baseline's, in one measure.

    `p`: see report/paired.py; NaN where the difference is not tested, below the floor. `corrected`:
    p by Holm's method, for the number of systems that are tested. `agreement`: of people, if it is
    significant. `error`: the standard error over lines, the mean over seeds, 0 if it is not known;
    `deviation`: of the difference over seeds.
    """

    baseline: str
    value: float
    p: float
    corrected: float
    agreement: Number | None = None
    error: float = 0.0
    deviation: float | None = None

    @property
    def is_tested(self) -> bool:
        return not isnan(self.p)

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT and self.value != 0

    @property
    def mark(self) -> str:
        """† where p is below SIGNIFICANT, ‡ where corrected is, too."""
        if not self.significant:
            return ""
        return "‡" if self.corrected < SIGNIFICANT else "†"

    @property
    def short(self) -> str:
        """+8.7‡, or -0.2 n.s.; +3.1 if it is not tested."""
        number = signed(self.value, self.significant)
        if not self.is_tested:
            return number
        return f"{number}{self.mark or ' n.s.'}"

    def __str__(self) -> str:
        """+8.7‡ p=0.001, or -0.2 n.s. p=0.410."""
        return f"{self.short} {p_text(self.p)}" if self.is_tested else self.short


@dataclass(frozen=True, eq=False)
class SystemResult:
    """A system on a test set of a task. `seeds`: the facts of its cells; `rows`: by measure and
    group, what was measured, by seed. The baseline has no differences.
    """

    system: str
    corpus: str
    test: str
    task: Task
    seeds: pd.DataFrame
    rows: Mapping[tuple[str, str], Sequence[Any]]
    baseline: "SystemResult | None" = None

    @property
    def outside(self) -> bool:
        """Whether its translations were not made here."""
        return bool(pd.notna(self.first.outside))

    @property
    def label(self) -> str:
        """The name of its row: `small`, or `small, bpe-4000` where corpora share a task."""
        return self.task.row(self.system, self.corpus)

    @property
    def name(self) -> str:
        """The label, with the mark of a row from outside."""
        return f"{self.label} ({OUTSIDE})" if self.outside else self.label

    @cached_property
    def first(self) -> Any:
        """The facts of the first seed."""
        return self.seeds.iloc[0]

    def values(self, measure: str = "bleu", group: str = "") -> list[float]:
        """By seed."""
        return [row.value for row in self.rows[measure, group]]

    def score(self, measure: str = "bleu", group: str = "") -> Score | None:
        """None if it was not measured."""
        if not (rows := self.rows.get((measure, group))):
            return None
        several = len(rows) > 1 and not self.outside and not group
        low, high = fmean(row.low for row in rows), fmean(row.high for row in rows)
        without = several or isnan(low)
        return Score(
            mean=fmean(values := self.values(measure, group)),
            deviation=stdev(values) if several else None,
            low=None if without else low,
            high=None if without else high,
            digits=MEASURES[measure].digits if measure in MEASURES else 1,
        )

    def difference_in(self, measure: str = "bleu", group: str = "") -> Difference | None:
        """None of the baseline, and of scores that are not comparable."""
        rows = self.rows.get((measure, group))
        if not rows or pd.isna(rows[0].difference) or self.baseline is None:
            return None
        if pd.isna(rows[0].p) and not self._is_untested(measure, group):
            return None
        first, several = rows[0], len(rows) > 1
        pairs = zip(self.values(measure, group), self.baseline.values(measure, group), strict=True)
        found = Difference(
            baseline=first.baseline,
            value=first.difference,
            p=first.p,
            corrected=first.p_holm,
            error=fmean(0.0 if isnan(row.standard_error) else row.standard_error for row in rows),
            deviation=stdev(a - b for a, b in pairs) if several and not self.outside else None,
        )
        if not found.significant:
            return found
        agree = agreement(measure, first.signature, found.value, self.first.target)
        return replace(found, agreement=agree)

    def _is_untested(self, measure: str, group: str) -> bool:
        """Whether scores that are comparable are below the floor."""
        if not self.floor or self.baseline is None:
            return False
        of_baseline = self.baseline.rows.get((measure, group), ())
        signatures = {row.signature for row in (*of_baseline, *self.rows[measure, group])}
        return len(of_baseline) > 0 and len(signatures) == 1

    @property
    def is_too_low(self) -> bool:
        """Whether the translations of every seed match too few 4-grams for a test."""
        return len(self.rows.get((MATCHED, ""), ())) == len(self.seeds)

    @property
    def floor(self) -> str:
        """Why its difference from the baseline is not tested; empty if it is."""
        return "" if self.baseline is None else floor_between(self.baseline, self)

    @property
    def scores(self) -> dict[str, Score]:
        """Those of all lines, by measure."""
        return {measure: of for measure in SCORES if (of := self.score(measure))}

    @property
    def differences(self) -> dict[str, Difference]:
        return {measure: of for measure in SCORES if (of := self.difference_in(measure))}

    @property
    def bleu(self) -> Score:
        score = self.score()
        assert score is not None
        return score

    @property
    def difference(self) -> Difference | None:
        """That of BLEU."""
        return self.difference_in()


def floor_between(first: SystemResult, second: SystemResult) -> str:
    """Why the difference of two results on one test set is not tested; empty if it is."""
    trained = not first.outside and not second.outside
    is_over_sentences = not trained or len(second.seeds) == 1
    are_both_low = first.is_too_low and second.is_too_low
    return reason_not_tested(int(second.first.lines), is_over_sentences, are_both_low)


@lru_cache(maxsize=4)  # all tables of a report are made from the same records
def system_results(records: Records) -> list[SystemResult]:
    """Every system on every test set, in the order of the records."""
    rows: dict[tuple[str, ...], dict[tuple[str, str], list[Any]]] = {}
    tasks = tasks_of(records.cells)
    for row in records.measures.itertuples(index=False):
        of_place = rows.setdefault((row.system, row.corpus, row.test), {})
        of_place.setdefault((row.measure, row.group), []).append(row)
    alone = {
        (system, corpus, test): SystemResult(
            *(system, corpus, test, tasks[corpus]),
            *(cells, rows.get((system, corpus, test), {})),
        )
        for (system, corpus, test), cells in records.cells.groupby(PLACE, sort=False)
    }

    by_label = {(each.task, each.test, each.label): each for each in alone.values()}

    def baseline(result: SystemResult) -> SystemResult | None:
        names = (of[0].baseline for of in result.rows.values() if pd.notna(of[0].baseline))
        return by_label.get((result.task, result.test, next(names, "")))

    return [replace(result, baseline=baseline(result)) for result in alone.values()]


def by_test(results: Sequence[SystemResult]) -> dict[tuple[str, str], list[SystemResult]]:
    """The results by the name of their task and test set."""
    found: dict[tuple[str, str], list[SystemResult]] = {}
    for result in results:
        found.setdefault((result.task.name, result.test), []).append(result)
    return found


def signed(value: float, significant: bool) -> str:
    """+8.7; a significant difference has the decimals that it takes not to read 0.0: +0.04."""
    digits = 1
    while significant and value and not float(f"{value:.{digits}f}"):
        digits += 1
    return f"{value:+z.{digits}f}"


def agreement(measure: str, signature: str, difference: float, target: str) -> Number | None:
    """The share of pairs with such a difference in which people prefer the better system.

    None for a measure or COMET model without coefficients, and of symbols that are no language.
    """
    scale = signature.split("|")[3] if measure == "comet" else MEASURES[measure].label
    per_cent = human_agreement(scale, difference) if target in SCRIPTS else None
    return None if per_cent is None else Number(agreement_text(scale, per_cent), per_cent)
