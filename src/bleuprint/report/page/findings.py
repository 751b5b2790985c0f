"""The findings in plain sentences: the best system on each test set, and what its test says."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bleuprint.report.paired import p_text
from bleuprint.report.system_results import Difference, SystemResult, by_test, signed
from bleuprint.runtime.html import counted

# Fewer lines give no reliable mean.
LINES = 30


class Finding(NamedTuple):
    """A sentence or a few, and the anchor of the section that has more, if any."""

    title: str
    text: str
    anchor: str = ""


def best_systems(results: Sequence[SystemResult]) -> Iterator[Finding]:
    """The best system on each test set, and whether it is better than the baseline."""
    tests = by_test(results)
    tasks = [task for task, _ in tests]
    for (task, test), of_test in tests.items():
        place = task if tasks.count(task) == 1 else f"{task}, {test}"
        yield _finding(place, sorted(of_test, key=lambda result: -result.bleu.mean))


def _finding(place: str, ranked: Sequence[SystemResult]) -> Finding:
    best, tested, texts = ranked[0], ranked[0].difference, list[str]()
    if len(ranked) == 1:
        title = f"{best.name} is the only system on {place}"
    elif tested:
        better = f"better than the baseline {tested.baseline}"
        title = f"{best.name} is {better} on {place}"
        if tested.mark != "‡":
            title = f"{best.name} is best on {place}, but perhaps not {better}"
        texts.append(f"It is {_size(tested)} BLEU above it: {_verdict(tested)}")
    else:
        title = f"No system is better than the baseline {best.name} on {place}"
    if (lines := int(best.first.lines)) < LINES:
        texts.append(f"With {counted(lines, 'sentence')}, this is weak evidence.")
    return Finding(title, " ".join(texts), "scores")


def _size(tested: Difference) -> str:
    return signed(abs(tested.value), tested.significant).removeprefix("+")


def _verdict(tested: Difference) -> str:
    """What the tests say; of one seed it is the difference of two trainings."""
    p = p_text(tested.p)
    if not tested.mark:
        return f"not significant ({p}): count the two as equal."
    if tested.mark == "†":
        corrected = p_text(tested.corrected)
        text = f"significant alone ({p}), not corrected for the number of systems ({corrected})."
    else:
        of = "" if tested.deviation else " for these two trainings, another seed may differ"
        text = f"significant ({p}){of}."
    if tested.agreement:
        text += f" People prefer the better one of such pairs in {tested.agreement} (estimated)."
    return text
