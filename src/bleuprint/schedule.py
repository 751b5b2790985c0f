"""Learning-rate schedules, as pure functions of the update (from 1)."""

import math


def inverse_square_root(update: int, peak: float, warmup: int) -> float:
    """Linear from 0 to `peak` over `warmup` updates, then peak * sqrt(warmup / update).

    The paper's schedule (section 5.3), d_model^-0.5 * min(update^-0.5, update * warmup^-1.5),
    is this one with peak = (d_model * warmup)^-0.5.
    """
    return peak * min(update / warmup, math.sqrt(warmup / update))
