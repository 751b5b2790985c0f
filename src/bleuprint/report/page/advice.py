"""What to try next: rules of thumb on the page's figures, each with what it was seen on."""

from collections.abc import Mapping, Sequence

from bleuprint.report.system_results import SystemResult
from bleuprint.training.history import Validation

# A loss that fell by 1 % in the last quarter of the training still falls; one that ends 2 % above
# its minimum has risen: less is noise between two validations.
FALLING, QUARTER, RISEN = 0.01, 0.25, 0.02
# Below this BLEU, translations share little more with their references than frequent words do.
LEARNED = 5.0


def still_falling(validations: Sequence[Validation]) -> str | None:
    """The loss of the last validation is the lowest, and well below that a quarter before."""
    if len(validations) < 2:
        return None
    *others, last = validations
    earlier = [each for each in others if each.update <= (1 - QUARTER) * last.update]
    before = (earlier or others[:1])[-1]
    if last.loss > min((1 - FALLING) * before.loss, *(each.loss for each in validations)):
        return None
    return (
        f"validation loss fell from {before.loss:.3f} (update {before.update:,}) "
        f"to {last.loss:.3f} at the end (update {last.update:,})"
    )


def turned(validations: Sequence[Validation]) -> str | None:
    """The lowest loss came before the end, and the last is well above it."""
    if not validations:
        return None
    best, last = min(validations, key=lambda each: each.loss), validations[-1]
    if last.loss < (1 + RISEN) * best.loss:
        return None
    return (
        f"validation loss was lowest at update {best.update:,} ({best.loss:.3f}) "
        f"and ended at {last.loss:.3f} (update {last.update:,})"
    )


def advice(
    results: Sequence[SystemResult], curves: Mapping[str, Sequence[Validation]]
) -> list[tuple[str, list[str]]]:
    """What to try and why, with its evidence: validations by training, and scores."""
    trained = {f"{r.system}, {r.corpus}, {r.test}": r for r in results if not r.outside}
    learned = {name: r for name, r in trained.items() if r.bleu.mean >= LEARNED}
    others = [f"{name}: BLEU {r.bleu}" for name, r in trained.items() if name not in learned]
    falling = [f"{n}: {text}" for n, curve in curves.items() if (text := still_falling(curve))]
    risen = [f"{n}: {text}" for n, curve in curves.items() if (text := turned(curve))]
    seeds = max((len(r.seeds) for r in learned.values()), default=3)
    few = [f"every system was trained {'once' if seeds == 1 else 'twice'}"] if seeds < 3 else []
    found = (
        (
            f"Find out why it has not learned to translate: BLEU is below {LEARNED:.0f}. Look at "
            "its curves and lines, then at learning rate, warmup, updates and training text.",
            others,
        ),
        (
            "Train longer (train.max_updates or train.max_epochs): validation loss was still "
            "falling at the end.",
            falling,
        ),
        (
            "Stop earlier (train.patience), average the best checkpoints, raise dropout or add "
            "text: validation loss rose again.",
            risen,
        ),
        (
            "Train with three seeds or more (seeds: [1, 2, 3]): with one, a difference is of two "
            "trainings, not of two systems.",
            few,
        ),
    )
    return [(why, evidence) for why, evidence in found if evidence]
