"""The findings in plain sentences: the best system on each test set, and what its test says.

None is stronger than its evidence: with one seed a difference is one of two trainings.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bleuprint.report.paired import p_text
from bleuprint.report.same_results import pairs_noise
from bleuprint.report.system_results import Difference, SystemResult, by_test, signed
from bleuprint.scoring.floor import MATCHES, SENTENCES, TOO_FEW
from bleuprint.scoring.measures import MEASURES

# Standard errors to each side of a 95 % interval.
_Z = 1.96
# Measures that may contradict BLEU.
_OTHERS = ("chrf2", "comet")


class Finding(NamedTuple):
    """A title, and a sentence or a few."""

    title: str
    text: str


def best_systems(
    results: Sequence[SystemResult], deviations: Mapping[str, float]
) -> Iterator[Finding]:
    """The best system on each test set, and whether it is better than the baseline.

    `deviations`: of BLEU over seeds, by the SHA-256 of the references.
    """
    tests = by_test(results)
    tasks = [task for task, _ in tests]
    for (task, test), of_test in tests.items():
        place = task if tasks.count(task) == 1 else f"{task}, {test}"
        best = max(of_test, key=lambda result: result.bleu.mean)
        if below := _below_floor(best, of_test):
            yield Finding(f"{place}: {below}", _why_untested(below, best))
        elif len(of_test) == 1:
            yield Finding(f"{place}: {best.name} is the only system", f"BLEU {best.bleu}")
        elif not best.difference:
            title = f"{place}: no system is better than the baseline {best.name}"
            yield Finding(title, f"BLEU {best.bleu}")
        else:
            yield _better(place, best, best.difference, deviations)


def _below_floor(best: SystemResult, results: Sequence[SystemResult]) -> str:
    """Why nothing is said of the best system; empty if it, or one beside it, was tested."""
    if best.baseline is not None:
        return best.floor
    others = [each.floor for each in results if each.baseline is not None]
    return others[0] if others and all(others) else ""


def _why_untested(below: str, best: SystemResult) -> str:
    if below == TOO_FEW:
        return f"{best.first.lines} sentences; a test over sentences needs {SENTENCES}."
    why = f"All systems match fewer than {MATCHES} 4-grams of the references."
    return f"{why} The highest BLEU is {best.bleu}."


def _better(
    place: str, best: SystemResult, tested: Difference, deviations: Mapping[str, float]
) -> Finding:
    size = f"{signed(abs(tested.value), tested.significant).removeprefix('+')} BLEU"
    made = best.outside or (best.baseline and best.baseline.outside)
    of = f" in these two {'translations' if made else 'trainings'}"
    if len(best.seeds) > 1:
        of = f" against each of {len(best.seeds)} seeds" if made else ""
    p = p_text(tested.p)
    if tested.mark != "‡":
        title = f"{place}: {best.name} is best, but perhaps not better than {tested.baseline}"
        text = f"not significant ({p}): this test does not tell them apart."
        if tested.mark:
            corrected = p_text(tested.corrected)
            text = f"significant alone ({p}), not corrected for all systems ({corrected})."
        return Finding(title, f"{size} above the baseline{of}: {text}{_against(best)}")
    if tested.deviation is not None:
        text = f"Significant over {len(best.seeds)} seeds ({p}), "
        text += _noise(tested, _Z * tested.error, f"the noise of {best.first.lines:,} test lines")
    else:
        text = f"Significant over the test lines ({p})"
        known = deviations.get(best.first.references_sha256)
        if known is not None and not made:
            seen = "the noise of seeds, as estimated from reports/"
            text += ", " + _noise(tested, pairs_noise(known), seen)
        elif not made:
            text += "; how much another seed would change it is not known"
    title = f"{place}: {best.name} is {size} better than {tested.baseline}{of}"
    return Finding(title, f"{text}.{_against(best)}{_cost(best)}")


def _cost(best: SystemResult) -> str:
    """What the better system takes, if that is another amount of training."""
    if best.outside or best.baseline is None or best.baseline.outside:
        return ""
    ratio = best.first.training_flops / best.baseline.first.training_flops
    if 0.95 < ratio < 1.05:
        return ""
    times = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f" Its own training takes {times} times the FLOPs."


def _against(best: SystemResult) -> str:
    """The measures by which the baseline is significantly better than the best system by BLEU."""
    tested = {name: best.differences.get(name) for name in _OTHERS}
    worse = [
        f"{MEASURES[name].label} {of.short}"
        for name, of in tested.items()
        if of and of.significant and of.value < 0
    ]
    return f" Others say the opposite: {', '.join(worse)}." if worse else ""


def _noise(tested: Difference, noise: float, name: str) -> str:
    """How the difference compares with a noise that its test does not count."""
    if abs(tested.value) > noise:
        return f"and beyond {name} ({noise:.1f} BLEU)"
    return f"but within {name} ({noise:.1f} BLEU): it may be chance"
