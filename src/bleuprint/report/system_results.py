"""The result of a system on a test set: means over seeds, and the difference from the baseline.

With one seed, a difference is tested over the lines of the test set (scoring/significance.py); with
several it is tested over the seeds, which includes the variance between trainings. A row from
outside has one set of translations: see `largest_p`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.rules.letters import SCRIPTS
from bleuprint.scoring import metrics
from bleuprint.scoring.human_agreement import COEFFICIENTS, agreement_text, human_agreement
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.significance import SIGNIFICANT

# The scores, by the name of their column; COMET is missing unless params.yaml names a model.
_SACREBLEU = dict(zip(("bleu", "chrf2", "chrf2pp", "ter"), metrics.METRICS.values(), strict=True))
METRICS = {**_SACREBLEU, "comet": "COMET"}
# What tables say of a row from outside.
OUTSIDE = "not trained here"
# A system on a test set.
PLACE = ["system", "corpus", "test"]


def of_metric(metric: str, column: str) -> str:
    """The name of a column of differences: those of BLEU have no prefix."""
    return column if metric == "bleu" else f"{metric}_{column}"


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
    """A system's mean score minus the baseline's, in one metric.

    `p` is from a paired t-test over seeds, or with one seed from the paired bootstrap; of a row
    from outside from the bootstrap against each seed (largest_p). `randomization` is from
    approximate randomization, with one seed only. `corrected` is p by Holm's method, which corrects
    for the number of systems that are tested. `agreement`: see human_agreement; `scale`: the
    metric, or COMET's model, by whose coefficients.
    """

    baseline: str
    value: float
    p: float
    randomization: float | None
    corrected: float
    agreement: float | None
    scale: str = "BLEU"

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
    def agreement_text(self) -> str:
        return agreement_text(self.scale, self.agreement or 0.0)

    @property
    def disagreement(self) -> str:
        """randomization p=0.061, if that test decides otherwise; empty if both agree."""
        second = self.randomization
        if second is None or (second < SIGNIFICANT) == self.significant:
            return ""
        return f"randomization {p_text(second)}"

    def __str__(self) -> str:
        """+8.7‡ p=0.001, or -0.2 n.s. p=0.410; both tests where they disagree."""
        text = f"{self.value:+z.1f}{self.mark or ' n.s.'} {p_text(self.p)}"
        return f"{text} ({self.disagreement})" if self.disagreement else text


@dataclass(frozen=True, eq=False)
class SystemResult:
    """A system on a test set; `seeds` are its records. The baseline has no differences.

    `scores` and `differences` are by the keys of METRICS.
    """

    system: str
    corpus: str
    test: str
    seeds: pd.DataFrame
    scores: Mapping[str, Score]
    differences: Mapping[str, Difference]

    @property
    def bleu(self) -> Score:
        return self.scores["bleu"]

    @property
    def difference(self) -> Difference | None:
        """That of BLEU."""
        return self.differences.get("bleu")

    @property
    def outside(self) -> str | None:
        """What made the translations of a row from outside; None if it was trained here."""
        return None if pd.isna(self.first.outside) else str(self.first.outside)

    @property
    def name(self) -> str:
        """The system's, with the mark of a row from outside."""
        return f"{self.system} ({OUTSIDE})" if self.outside else self.system

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
            scores={
                metric: _score(seeds, metric) for metric in METRICS if seeds[metric].notna().all()
            },
            differences={
                metric: _difference(seeds, metric)
                for metric in METRICS
                if seeds[of_metric(metric, "difference")].notna().any()
            },
        )
        for (system, corpus, test), seeds in records.groupby(PLACE, sort=False)
    ]


def with_differences(records: pd.DataFrame) -> pd.DataFrame:
    """The records with the columns difference, p, p_holm and human_agreement of each metric.

    They are the same for all seeds of a system.
    """
    alike = ["corpus", "seed", "test"]
    baseline = records[records.baseline.isna()].set_index(alike)
    systems = records[records.baseline.notna()]
    for metric in METRICS:
        scale = _scale(metric, records)
        if records[metric].isna().all():  # COMET without a model
            names = (of_metric(metric, each) for each in ("difference", "p", "p_holm"))
            missing = dict.fromkeys([*names, of_metric(metric, "human_agreement")])
            records = records.assign(**missing)
            continue
        tested = systems.join(baseline[metric].rename("of_baseline"), on=alike)
        tested["difference"] = tested[metric] - tested.of_baseline
        groups = tested.groupby(PLACE, sort=False)
        table = pd.DataFrame({"difference": groups.difference.mean()})
        bootstrap = of_metric(metric, "p_bootstrap")
        table["p"] = pd.Series([_p(of, of[bootstrap]) for _, of in groups], table.index, float)
        table["p_holm"] = table.groupby(["corpus", "test"]).p.transform(holm)
        if scale in COEFFICIENTS or metric == "comet":
            natural = groups.target.first().isin(SCRIPTS)  # and not symbols to be copied
            agreement = [human_agreement(scale, difference) for difference in table.difference]
            table["human_agreement"] = pd.Series(agreement, table.index).where(natural)
        table = table.rename(columns=partial(of_metric, metric))
        records = records.join(table.astype(float).round(DIGITS), on=PLACE)
    return records


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in the order given.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller than
    the one before it, or larger than 1. Missing ones, of rows without COMET, do not count.
    """
    given = pd.Series(list(values), dtype=float)
    ranked = given.dropna().sort_values(kind="stable")
    factors = np.arange(len(ranked), 0, -1)
    return list((ranked * factors).cummax().clip(upper=1.0).reindex(given.index))


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value that the mean of `differences`, two or more, is 0 (Student's t).

    It is 1 if all differences are the same number: without a deviation, nothing can be tested.
    """
    if len(set(differences)) == 1:
        return 1.0
    from scipy.special import stdtr  # scipy.stats would take half a second to load

    n = len(differences)
    t = np.mean(differences) / (np.std(differences, ddof=1) / np.sqrt(n))
    return float(2 * stdtr(n - 1, -abs(t)))


def largest_p(differences: Sequence[float], values: Sequence[float]) -> float:
    """The p-value that one set of translations is better, or worse, than those of every seed.

    `values` are those of its difference from each seed. The largest of them tests the union of
    their null hypotheses (Berger 1982); it is 1 if the differences do not agree which is better.
    """
    return max(values) if len(set(np.sign(differences))) == 1 else 1.0


def p_text(p: float) -> str:
    """p=0.012; p<0.001 instead of 0.000."""
    return "p<0.001" if p < 0.0005 else f"p={p:.3f}"


def _p(seeds: pd.DataFrame, bootstrap: Sequence[float]) -> float:
    """That of a difference, from those of its seeds by the bootstrap, or from their differences."""
    if len(seeds) == 1:
        return next(iter(bootstrap))
    if seeds.outside.notna().all():
        return largest_p(seeds.difference, bootstrap)
    return paired_t(seeds.difference)


def _score(seeds: pd.DataFrame, metric: str) -> Score:
    values = seeds[metric]
    if len(values) > 1 and seeds.outside.isna().all():
        return Score(float(values.mean()), float(values.std()), None, None)
    first = seeds.iloc[0]
    return Score(first[metric], None, first[f"{metric}_low"], first[f"{metric}_high"])


def _difference(seeds: pd.DataFrame, metric: str) -> Difference:
    first = seeds.iloc[0]
    columns = ("difference", "p", "p_randomization", "p_holm")
    value, p, randomization, corrected = (first[of_metric(metric, each)] for each in columns)
    scale = _scale(metric, seeds)
    return Difference(
        baseline=first.baseline,
        value=value,
        p=p,
        randomization=None if len(seeds) > 1 else randomization,
        corrected=corrected,
        agreement=human_agreement(scale, value) if first.target in SCRIPTS else None,
        scale=scale,
    )


def _scale(metric: str, records: pd.DataFrame) -> str:
    """The metric, or COMET's model by the signature, whose coefficients of agreement are used."""
    if metric == "comet" and len(signatures := records.comet_signature.dropna()):
        return str(signatures.iloc[0]).split("|")[3]
    return METRICS[metric]
