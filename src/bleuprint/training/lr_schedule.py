"""Learning-rate schedules: pure functions of the update, which is counted from 1.

Each begins with a warmup, in which the learning rate rises linearly.
"""

import math

from bleuprint.config.optimization import Cosine, InverseSqrt, LrSchedule, Noam


def learning_rate(schedule: LrSchedule, update: int, d_model: int) -> float:
    """Return the learning rate of an update, by the schedule in the settings.

    Args:
        schedule: The settings. Exactly one of the four schedules is not None.
        update: The number of the update, from 1.
        d_model: The number of dimensions of the model's hidden states, on which `noam` depends.
    """
    if schedule.inverse_sqrt is not None:
        return inverse_sqrt(schedule.inverse_sqrt, update)
    if schedule.noam is not None:
        return noam(schedule.noam, update, d_model)
    if schedule.cosine is not None:
        return cosine(schedule.cosine, update)
    assert schedule.constant is not None
    return schedule.constant.lr


def inverse_sqrt(settings: InverseSqrt, update: int) -> float:
    """Return the learning rate of the inverse square root schedule.

    It rises linearly from `warmup_init_lr` to `lr` in `warmup_updates`, then it is
    lr * sqrt(warmup_updates / update). Without warmup it is lr / sqrt(update).

    Args:
        settings: The settings of the schedule.
        update: The number of the update, from 1.
    """
    # Without warmup, the formula is the same as with a warmup of 1 update, whose rate is `lr`.
    warmup_updates = max(1, settings.warmup_updates)
    slope = settings.lr - settings.warmup_init_lr
    rising_rate = settings.warmup_init_lr + slope * update / warmup_updates
    falling_rate = settings.lr * math.sqrt(warmup_updates / update)
    # The two curves meet at the end of the warmup; before it, the rising one is lower.
    return min(rising_rate, falling_rate)


def noam(settings: Noam, update: int, d_model: int) -> float:
    """Return the learning rate of "Attention Is All You Need" (Vaswani et al. 2017, section 5.3).

    It is factor * d_model^-0.5 * min(update^-0.5, update * warmup_updates^-1.5). It rises linearly
    during the warmup, and then falls with the inverse square root of the update.

    Args:
        settings: The settings of the schedule.
        update: The number of the update, from 1.
        d_model: The number of dimensions of the model's hidden states.
    """
    # Without warmup, the formula is the same as with a warmup of 1 update: the rate only falls.
    warmup_updates = max(1, settings.warmup_updates)
    rising_rate = update / math.pow(warmup_updates, 1.5)
    falling_rate = 1 / math.sqrt(update)
    return settings.factor / math.sqrt(d_model) * min(rising_rate, falling_rate)


def cosine(settings: Cosine, update: int) -> float:
    """Return the learning rate of the cosine schedule (Loshchilov and Hutter 2017, no restarts).

    It rises linearly from 0 to `lr` in `warmup_updates`, then falls along half a cosine to
    `min_lr`, which it reaches at `max_updates` and keeps.

    Args:
        settings: The settings of the schedule.
        update: The number of the update, from 1.
    """
    if update < settings.warmup_updates:
        return settings.lr * update / settings.warmup_updates
    falling_updates = settings.max_updates - settings.warmup_updates
    # How much of the falling part is done, from 0 (warmup over) to 1 (`max_updates` reached).
    progress = min(1.0, (update - settings.warmup_updates) / falling_updates)
    # Half a cosine, from 1 at the start of the falling part to 0 at its end.
    remaining_share = (1 + math.cos(math.pi * progress)) / 2
    return settings.min_lr + (settings.lr - settings.min_lr) * remaining_share
