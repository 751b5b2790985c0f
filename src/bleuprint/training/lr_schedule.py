"""Learning-rate schedules, as pure functions of the update (from 1)."""

import math

from bleuprint.config.system import Cosine, InverseSquareRoot, Noam, Schedule


def learning_rate(schedule: Schedule, update: int, d_model: int) -> float:
    """The learning rate of an update."""
    if schedule.inverse_square_root is not None:
        return inverse_square_root(schedule.inverse_square_root, update)
    if schedule.noam is not None:
        return noam(schedule.noam, update, d_model)
    if schedule.cosine is not None:
        return cosine(schedule.cosine, update)
    assert schedule.constant is not None
    return schedule.constant.rate


def inverse_square_root(settings: InverseSquareRoot, update: int) -> float:
    """Linear from `start` to `peak` over `warmup` updates, then peak * sqrt(warmup / update)."""
    start, peak, warmup = settings.start, settings.peak, settings.warmup
    return min(start + (peak - start) * update / warmup, peak * math.sqrt(warmup / update))


def noam(settings: Noam, update: int, d_model: int) -> float:
    """factor * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5) (Vaswani et al., 5.3)."""
    rise, fall = update / math.pow(settings.warmup, 1.5), 1 / math.sqrt(update)
    return settings.factor / math.sqrt(d_model) * min(rise, fall)


def cosine(settings: Cosine, update: int) -> float:
    """Linear from 0 to `peak` over `warmup` updates, then half a cosine down to `end`.

    It is there at `updates`, and stays (Loshchilov and Hutter 2017, without restarts).
    """
    if update < settings.warmup:
        return settings.peak * update / settings.warmup
    share = min(1.0, (update - settings.warmup) / (settings.updates - settings.warmup))
    return settings.end + (settings.peak - settings.end) * (1 + math.cos(math.pi * share)) / 2
