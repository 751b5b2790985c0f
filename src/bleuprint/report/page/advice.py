"""Advice on what to change next: rules on the outputs, each with its evidence.

A rule examines one training or score and returns its evidence as text, or None. The thresholds are
rules of thumb: a result beyond them is worth a look; a change is not certain to help.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bleuprint.report.system_results import SystemResult
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.training.history import Validation

# A validation loss that fell by 1 % in the last quarter of the training is still falling.
FALLING, QUARTER = 0.01, 0.25
# One that ends 2 % above its minimum has risen: less is noise between two validations.
RISEN = 0.02
# A length ratio this far from 1 lowers BLEU: the brevity penalty is exp(1 - 1 / ratio).
LENGTH = 0.03
# Below this BLEU, translations share little more with their references than frequent words do.
LEARNED = 5.0
# Fewer lines give no reliable mean.
LINES = 30


@dataclass(frozen=True)
class Advice:
    """What to try, why, and the evidence, one text per training or score."""

    title: str
    why: str
    evidence: tuple[str, ...]


def still_falling(validations: Sequence[Validation]) -> str | None:
    """The loss of the last validation is the lowest, and well below that a quarter before."""
    if len(validations) < 2:
        return None
    last = validations[-1]
    start = (1 - QUARTER) * last.update
    earlier = [validation for validation in validations[:-1] if validation.update <= start]
    before = earlier[-1] if earlier else validations[0]
    lowest = min(validation.loss for validation in validations)
    if last.loss > min(lowest, (1 - FALLING) * before.loss):
        return None
    return (
        f"validation loss fell from {before.loss:.3f} (update {before.update:,}) "
        f"to {last.loss:.3f} at the end (update {last.update:,})"
    )


def turned(validations: Sequence[Validation]) -> str | None:
    """The lowest loss came before the end, and the last is well above it."""
    if not validations:
        return None
    best, last = min(validations, key=lambda validation: validation.loss), validations[-1]
    if last.loss < (1 + RISEN) * best.loss:
        return None
    return (
        f"validation loss was lowest at update {best.update:,} ({best.loss:.3f}) "
        f"and ended at {last.loss:.3f} (update {last.update:,})"
    )


def length_off(ratio: float) -> str | None:
    """Translations are longer or shorter than their references."""
    if abs(ratio - 1) < LENGTH:
        return None
    return f"{abs(ratio - 1):.1%} too {'long' if ratio > 1 else 'short'}"


def advice(
    results: Sequence[SystemResult], curves: Sequence[tuple[str, Sequence[Validation]]]
) -> list[Advice]:
    """Advice from the validations of trainings, each with a name, and from the scores."""
    trained = [result for result in results if not result.outside]
    every_result = [(f"{r.system}, {r.corpus}, {r.test}", r) for r in trained]
    named = [(name, r) for name, r in every_result if r.bleu.mean >= LEARNED]
    seeds = max((len(result.seeds) for result in trained), default=0)
    first = [(f"{name}, seed {r.first.seed}" if seeds > 1 else name, r) for name, r in named]
    every = (
        Advice(
            "Find out why it has not learned to translate",
            f"BLEU below {LEARNED:.0f} is that of texts with little in common: first look at its "
            "training curves (does validation loss fall?) and at its lines, then at learning rate, "
            "warmup, number of updates, and the training text. Other advice leaves it out.",
            tuple(f"{n}: BLEU {r.bleu}" for n, r in every_result if r.bleu.mean < LEARNED),
        ),
        Advice(
            "Train longer",
            "Validation loss was still falling when training ended: raise train.max_updates or "
            "train.max_epochs.",
            _evidence((name, still_falling(curve)) for name, curve in curves),
        ),
        Advice(
            "Stop earlier, or regularize",
            "Validation loss rose again before the end: the model overfits its training "
            "text. Set train.patience, average the best checkpoints, raise dropout, or add text.",
            _evidence((name, turned(curve)) for name, curve in curves),
        ),
        Advice(
            "Get more evidence where systems do not differ significantly",
            f"p of {SIGNIFICANT} or more: the difference may be chance. Train with more seeds "
            f"(now {seeds}), or test on more sentences; until then, count them as equal.",
            tuple(
                f"{name}: {tested.value:+z.1f} BLEU against {tested.baseline}, p={tested.p:.3f}"
                for name, result in named
                if (tested := result.difference) and not tested.significant
            ),
        ),
        Advice(
            "Train with several seeds",
            "With one, a difference compares two trainings, not yet two systems: another seed may "
            "change BLEU by several tenths. The t-test over two has little power. Set "
            "seeds: [1, 2, 3] or more.",
            ("every system was trained " + ("once" if seeds == 1 else "twice"),)
            if seeds < 3 and named
            else (),
        ),
        Advice(
            "Correct the length of the translations",
            "BLEU penalizes translations that are too short, and surplus words are wrong words. "
            "Try another decode.length_penalty.alpha (higher: longer), and look at what the "
            "filters drop.",
            _evidence((name, length_off(r.values("length_ratio")[0])) for name, r in first),
        ),
    )
    return [each for each in every if each.evidence]


def _evidence(results: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    return tuple(f"{name}: {text}" for name, text in results if text is not None)
