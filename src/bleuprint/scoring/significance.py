"""Whether two systems differ by more than chance: sacreBLEU's paired tests of BLEU.

A test set is held in memory, and with it what the tests draw: about 10 bytes for each line and
each of the 10,000 trials of the randomisation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS, RESAMPLES, fixed_seed

TRIALS = 10_000


@dataclass(frozen=True)
class PValues:
    """p-values of a difference: of the paired bootstrap, and of approximate randomisation.

    The bootstrap (Koehn 2004) draws test sets from the lines there are; the randomisation (Riezler
    and Maxwell 2005) swaps lines between the systems, and supposes less. sacreBLEU's counts trials
    with a larger difference, not those with the same: of systems that differ in a line or two, it
    says too much.
    """

    bootstrap: float
    randomisation: float


def paired_tests(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], language: str
) -> dict[str, PValues]:
    """The p-values of each system's difference in BLEU from the first system's.

    Identical translations get 1: sacreBLEU's estimate, which counts the samples that differ by
    more than none, would call them significantly different. So do those of a single line, from
    which all samples are the same.
    """
    baseline, *others = systems
    values = [
        _p_values(systems, references, language, kind, samples)
        for kind, samples in (("bs", RESAMPLES), ("ar", TRIALS))
    ]
    return {
        name: PValues(1.0, 1.0)
        if len(references) == 1 or list(systems[name]) == list(systems[baseline])
        else PValues(*found)
        for name, *found in zip(others, *values, strict=True)
    }


def _p_values(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    language: str,
    kind: str,
    samples: int,
) -> list[float]:
    from sacrebleu.significance import PairedTest, Result

    metrics = {"BLEU": bleu_metric(references, language)}
    with fixed_seed():
        _, results = PairedTest(list(systems.items()), metrics, None, kind, n_samples=samples)()
    found = []
    for result in results["BLEU"][1:]:
        assert isinstance(result, Result) and result.p_value is not None
        found.append(round(result.p_value, DIGITS))
    return found
