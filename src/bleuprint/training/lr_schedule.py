"""Learning-rate schedules, as pure functions of the update (counted from 1)."""

import math

from bleuprint.config.optimization import Cosine, InverseSqrt, LrSchedule, Noam


def learning_rate(schedule: LrSchedule, update: int, d_model: int) -> float:
    """The learning rate of an update."""
    if schedule.inverse_sqrt is not None:
        return inverse_sqrt(schedule.inverse_sqrt, update)
    if schedule.noam is not None:
        return noam(schedule.noam, update, d_model)
    if schedule.cosine is not None:
        return cosine(schedule.cosine, update)
    assert schedule.constant is not None
    return schedule.constant.lr


def inverse_sqrt(settings: InverseSqrt, update: int) -> float:
    """Linear from `warmup_init_lr` to `lr` in `warmup_updates`, then lr * sqrt(warmup / update).

    Without warmup: lr / sqrt(update), as with one update of it, which already has `lr`.
    """
    start, peak, warmup = settings.warmup_init_lr, settings.lr, max(1, settings.warmup_updates)
    return min(start + (peak - start) * update / warmup, peak * math.sqrt(warmup / update))


def noam(settings: Noam, update: int, d_model: int) -> float:
    """factor * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5) (Vaswani et al., 5.3).

    The limit for a warmup of 0, factor * d_model^-0.5 * update^-0.5, is also the value for 1.
    """
    rise, fall = update / math.pow(max(1, settings.warmup_updates), 1.5), 1 / math.sqrt(update)
    return settings.factor / math.sqrt(d_model) * min(rise, fall)


def cosine(settings: Cosine, update: int) -> float:
    """Linear from 0 to `lr` in `warmup_updates`, then half a cosine down to `min_lr`.

    From `max_updates` on it is `min_lr` (Loshchilov and Hutter 2017, without restarts).
    """
    peak, end, warmup = settings.lr, settings.min_lr, settings.warmup_updates
    if update < warmup:
        return peak * update / warmup
    share = min(1.0, (update - warmup) / (settings.max_updates - warmup))
    return end + (peak - end) * (1 + math.cos(math.pi * share)) / 2
