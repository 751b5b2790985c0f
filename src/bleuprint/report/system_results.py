"""The result of a system on a test set: means over seeds, and the difference from the baseline.

With one seed, a difference is tested over the lines of the test set (scoring/significance.py); with
several it is tested over the seeds, which includes the variance between trainings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.scoring.metrics import DIGITS

SIGNIFICANT = 0.05
# A system on a test set.
PLACE = ["system", "corpus", "test"]


@dataclass(frozen=True)
class Score:
    """A metric: the mean over seeds with its standard deviation, or of one seed its interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.deviation is not None:
            return f"{self.mean:.1f} ± {self.deviation:.1f}"
        return f"{self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True)
class Difference:
    """A system's mean BLEU minus the baseline's.

    `p` is from a paired t-test over seeds, or with one seed from the paired bootstrap;
    `randomization` from approximate randomization, with one seed only. `corrected` is p by Holm's
    method, which corrects for the number of systems that are tested.
    """

    baseline: str
    bleu: float
    p: float
    randomization: float | None
    corrected: float

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT

    @property
    def mark(self) -> str:
        """† where p is below SIGNIFICANT, ‡ where corrected is, too."""
        if not self.significant:
            return ""
        return "‡" if self.corrected < SIGNIFICANT else "†"

    @property
    def disagreement(self) -> str:
        """randomization p=0.061, if that test decides otherwise; empty if both agree."""
        second = self.randomization
        if second is None or (second < SIGNIFICANT) == self.significant:
            return ""
        return f"randomization {p_text(second)}"

    def __str__(self) -> str:
        """+8.7‡ p=0.001, or -0.2 n.s. p=0.410; both tests where they disagree."""
        text = f"{self.bleu:+z.1f}{self.mark or ' n.s.'} {p_text(self.p)}"
        return f"{text} ({self.disagreement})" if self.disagreement else text


@dataclass(frozen=True, eq=False)
class SystemResult:
    """A system on a test set; `seeds` are its records. The baseline has no difference."""

    system: str
    corpus: str
    test: str
    seeds: pd.DataFrame
    bleu: Score
    chrf2: Score
    ter: Score
    difference: Difference | None

    @property
    def first(self) -> Any:
        """The record of the first seed."""
        return self.seeds.iloc[0]


def system_results(records: pd.DataFrame) -> list[SystemResult]:
    """Every system on every test set, in the order of the records."""
    return [
        SystemResult(
            system=system,
            corpus=corpus,
            test=test,
            seeds=seeds,
            bleu=_score(seeds, "bleu"),
            chrf2=_score(seeds, "chrf2"),
            ter=_score(seeds, "ter"),
            difference=_difference(seeds),
        )
        for (system, corpus, test), seeds in records.groupby(PLACE, sort=False)
    ]


def with_differences(records: pd.DataFrame) -> pd.DataFrame:
    """The records with the columns difference, p and p_holm: the same for all seeds of a system."""
    alike = ["corpus", "seed", "test"]
    baseline = records[records.baseline.isna()].set_index(alike).bleu.rename("of_baseline")
    tested = records[records.baseline.notna()].join(baseline, on=alike)
    tested["difference"] = tested.bleu - tested.of_baseline
    systems = tested.groupby(PLACE, sort=False)
    one_seed = records.seed.nunique() == 1
    p = systems.p_bootstrap.first() if one_seed else systems.difference.agg(paired_t)
    table = pd.DataFrame({"difference": systems.difference.mean(), "p": p.astype(float)})
    table["p_holm"] = table.groupby(["corpus", "test"]).p.transform(holm)
    return records.join(table.round(DIGITS), on=PLACE)


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in the order given.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller than
    the one before it, or larger than 1.
    """
    ranked = pd.Series(list(values), dtype=float).sort_values(kind="stable")
    factors = np.arange(len(ranked), 0, -1)
    return list((ranked * factors).cummax().clip(upper=1.0).sort_index())


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value that the mean of `differences`, two or more, is 0 (Student's t).

    It is 1 if all differences are the same number: without a deviation, nothing can be tested.
    """
    if len(set(differences)) == 1:
        return 1.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def p_text(p: float) -> str:
    """p=0.012; p<0.001 instead of 0.000."""
    return "p<0.001" if p < 0.0005 else f"p={p:.3f}"


def _score(seeds: pd.DataFrame, metric: str) -> Score:
    values = seeds[metric]
    if len(values) > 1:
        return Score(float(values.mean()), float(values.std()), None, None)
    first = seeds.iloc[0]
    return Score(first[metric], None, first[f"{metric}_low"], first[f"{metric}_high"])


def _difference(seeds: pd.DataFrame) -> Difference | None:
    first = seeds.iloc[0]
    if pd.isna(first.baseline):
        return None
    randomization = None if len(seeds) > 1 else first.p_randomization
    return Difference(first.baseline, first.difference, first.p, randomization, first.p_holm)
