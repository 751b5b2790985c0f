"""What to try next: rules of thumb on the validation losses, by update, of a training."""

from collections.abc import Iterator, Mapping, Sequence

from bleuprint.training.history import Validation

# A loss that fell by 1 % in the last quarter of the training still falls; one that ends 2 % above
# its minimum has risen: less is noise between two validations.
FALLING, QUARTER, RISEN = 0.01, 0.25, 0.02
# Fewer validations are no curve.
CURVE = 3


def still_falling(validations: Sequence[Validation]) -> bool:
    """The loss of the last validation is the lowest, and well below that a quarter before."""
    if len(validations) < CURVE:
        return False
    *others, last = validations
    earlier = [each for each in others if each.update <= (1 - QUARTER) * last.update]
    before = (earlier or others[:1])[-1]
    return last.loss <= min((1 - FALLING) * before.loss, *(each.loss for each in validations))


def turned(validations: Sequence[Validation]) -> bool:
    """The lowest loss came before the end, and the last is well above it."""
    losses = [each.loss for each in validations]
    return bool(losses) and losses[-1] >= (1 + RISEN) * min(losses)


def advice(curves: Mapping[str, Sequence[Validation]]) -> Iterator[tuple[str, list[str]]]:
    """What to try and why, and the trainings that show it."""
    rules = {
        "Train longer (train.max_updates or train.max_epochs): at the end validation loss was "
        "still falling": still_falling,
        "Stop earlier (train.patience), average the best checkpoints, raise dropout or add text: "
        "validation loss rose again": turned,
    }
    for why, rule in rules.items():
        if found := [name for name, validations in curves.items() if rule(validations)]:
            yield why, found
