"""Dynamic loss scaling for float16 (Micikevicius et al. 2018, Mixed Precision Training).

Gradients fall below the smallest numbers of float16. So losses are multiplied by a scale, and
gradients divided by it. An update whose gradient is not finite is skipped and the scale halved;
after 2,000 updates with finite gradients it is doubled. All computations stay on the device.
"""

import torch
from torch import Tensor

_INITIAL_SCALE = 2.0**16
_DOUBLED_AFTER_UPDATES = 2000
# With a smaller scale, a gradient that is not finite comes from a diverging model, not from the
# scale.
LOWEST_PLAUSIBLE_SCALE = 1e-4


class LossScale:
    """The number by which losses are multiplied in float16, so that gradients do not become 0.

    It is halved after an update whose gradient overflowed, that is, was not finite. It is doubled
    after 2,000 updates without overflow. Everything is computed on the device, so that the CPU
    never waits for a GPU.

    Attributes:
        state: Two scalars to save in a checkpoint: `loss_scale`, and `scaled_updates`, the number
            of updates since the scale changed.
    """

    def __init__(self, device: torch.device) -> None:
        """Start with a scale of 65,536.

        Args:
            device: The device of the model.
        """
        self.state = {
            "loss_scale": torch.full((), _INITIAL_SCALE, device=device),
            "scaled_updates": torch.zeros((), device=device),
        }

    @property
    def value(self) -> Tensor:
        """Return the scale, a scalar."""
        return self.state["loss_scale"]

    def update(self, overflow: Tensor) -> None:
        """Halve the scale if the gradient overflowed; double it after 2,000 updates if it did not.

        All values are tensors on the device, since `if` would make the CPU wait for a GPU. So
        conditions are written as products: a factor is 1 if its condition is false.

        Args:
            overflow: A scalar: 1 if the gradient of the update was not finite, 0 otherwise.
        """
        update_count = self.state["scaled_updates"]
        # Count the update; an overflow sets the count to 0.
        update_count.add_(1).mul_(1 - overflow)
        # After enough updates without overflow, double the scale, and count from 0 again.
        is_doubled = update_count >= _DOUBLED_AFTER_UPDATES
        self.value.mul_(torch.where(is_doubled, 2.0, 1.0))
        update_count.masked_fill_(is_doubled, 0)
        # After an overflow, halve the scale.
        self.value.mul_(1 - overflow / 2)
