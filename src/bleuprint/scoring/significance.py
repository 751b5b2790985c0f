"""sacreBLEU's paired significance tests of differences in BLEU.

A test set is held in memory together with the tests' samples: about 10 bytes a line for each of the
10,000 trials of approximate randomization.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS, RESAMPLES, fix_seed

TRIALS = 10_000


@dataclass(frozen=True)
class PValues:
    """p-values of a difference: paired bootstrap and approximate randomization.

    The bootstrap (Koehn 2004) resamples the test set; randomization (Riezler and Maxwell 2005)
    swaps lines between the systems and makes fewer assumptions. sacreBLEU's randomization counts
    trials with a larger difference, not those with an equal one: for systems that differ in one or
    two lines, its p-value is too small.
    """

    bootstrap: float
    randomization: float


def paired_tests(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], language: str
) -> dict[str, PValues]:
    """The p-values of each system's difference in BLEU from the first system's.

    Identical translations have p = 1: sacreBLEU counts samples with a difference above 0, and would
    report them as significantly different. So has a test set of a single line, whose samples are
    all the same.
    """
    baseline, *others = systems
    bootstrap = _p_values(systems, references, language, "bs", RESAMPLES)
    randomization = _p_values(systems, references, language, "ar", TRIALS)
    return {
        name: PValues(1.0, 1.0)
        if len(references) == 1 or list(systems[name]) == list(systems[baseline])
        else PValues(*p_values)
        for name, *p_values in zip(others, bootstrap, randomization, strict=True)
    }


def _p_values(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    language: str,
    kind: str,
    samples: int,
) -> list[float]:
    from sacrebleu.significance import PairedTest

    metrics = {"BLEU": bleu_metric(references, language)}
    fix_seed()
    _, results = PairedTest(list(systems.items()), metrics, None, kind, n_samples=samples)()
    differences: list[Any] = results["BLEU"][1:]
    return [round(difference.p_value, DIGITS) for difference in differences]
