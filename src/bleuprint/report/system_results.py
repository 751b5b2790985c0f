"""How systems stand on a test set: means over seeds, and the difference from the baseline.

With one seed, a difference is tested over the test set's lines (significance.py); with several it
is tested over the seeds, which say how much of it is the luck of a training.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bleuprint.report.records import Record
from bleuprint.scoring.metrics import DIGITS

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Score:
    """A metric: the mean over seeds with its standard deviation, or of one seed its interval."""

    mean: float
    deviation: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Difference:
    """A system's mean BLEU minus the baseline's.

    `p` is a paired t-test's over `seeds` of them, or of one seed the paired bootstrap's;
    `randomisation` is approximate randomisation's, of one seed alone. `corrected` is p by Holm's
    method: among the systems of a column some would seem to differ by chance.
    """

    baseline: str
    bleu: float
    seeds: int
    p: float
    randomisation: float | None
    corrected: float

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT

    @property
    def mark(self) -> str:
        """A dagger where p is below SIGNIFICANT, a double one where corrected is, too."""
        if not self.significant:
            return ""
        return "‡" if self.corrected < SIGNIFICANT else "†"


@dataclass(frozen=True)
class Standing:
    """A system on a test set; `records` has one for each seed. The baseline has no difference."""

    system: str
    corpus: str
    test: str
    records: tuple[Record, ...]
    difference: Difference | None

    @cached_property
    def bleu(self) -> Score:
        return _score(self.records, "bleu")

    @cached_property
    def chrf(self) -> Score:
        return _score(self.records, "chrf")

    @cached_property
    def ter(self) -> Score:
        return _score(self.records, "ter")


def standings(records: Sequence[Record]) -> list[Standing]:
    """Every system on every test set, in the order of the records."""
    columns = dict.fromkeys((record.corpus, record.test) for record in records)
    found = {
        (one.system, one.corpus, one.test): one
        for column in columns
        for one in _column([r for r in records if (r.corpus, r.test) == column])
    }
    return [found[key] for key in dict.fromkeys((r.system, r.corpus, r.test) for r in records)]


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm 1979), in the order given.

    The smallest of n is taken n times, the next n - 1 times, and so on; none becomes smaller than
    one before it, or larger than 1.
    """
    corrected, least = [0.0] * len(values), 0.0
    ranked = sorted(range(len(values)), key=values.__getitem__)
    for rank, index in enumerate(ranked):
        least = max(least, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = least
    return corrected


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value that the mean of `differences`, two or more, is 0 (Student's t).

    Differences that are all the same number have no deviation to be judged by, and get 1: nothing
    is shown by them.
    """
    if len(set(differences)) == 1:
        return 1.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def _column(records: Sequence[Record]) -> list[Standing]:
    by_system = {
        system: tuple(record for record in records if record.system == system)
        for system in dict.fromkeys(record.system for record in records)
    }
    # which alone was tested against none
    baseline = next(system for system, of in by_system.items() if of[0].paired is None)
    others = [system for system in by_system if system != baseline]
    found = [_difference(baseline, by_system[baseline], by_system[name]) for name in others]
    corrected = holm([one.p for one in found])
    differences = {
        name: dataclasses.replace(one, corrected=round(p, DIGITS))
        for name, one, p in zip(others, found, corrected, strict=True)
    }
    return [
        Standing(of[0].system, of[0].corpus, of[0].test, of, differences.get(system))
        for system, of in by_system.items()
    ]


def _difference(name: str, baseline: Sequence[Record], system: Sequence[Record]) -> Difference:
    by_seed = [
        one.bleu.score - other.bleu.score for one, other in zip(system, baseline, strict=True)
    ]
    mean = statistics.mean(by_seed)
    if len(by_seed) > 1:
        p = round(paired_t(by_seed), DIGITS)
        return Difference(name, mean, len(by_seed), p, None, math.nan)
    paired = system[0].paired
    assert paired is not None and paired.baseline == name
    p_values = paired.p_values
    return Difference(name, mean, 1, p_values.bootstrap, p_values.randomization, math.nan)


def _score(records: Sequence[Record], metric: str) -> Score:
    values = [getattr(record, metric) for record in records]
    mean = statistics.mean(value.score for value in values)
    if len(values) == 1:
        return Score(mean, None, values[0].low, values[0].high)
    return Score(mean, statistics.stdev(value.score for value in values), None, None)
