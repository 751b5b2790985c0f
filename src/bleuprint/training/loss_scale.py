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
LOWEST = 1e-4


class LossScale:
    """The scale of the loss.

    Attributes:
        state: The scale, and the number of updates since it changed: scalars to save in a
            checkpoint.
    """

    def __init__(self, device: torch.device) -> None:
        """Create the initial scale on a device."""
        self.state = {
            "loss_scale": torch.full((), _INITIAL_SCALE, device=device),
            "scaled_updates": torch.zeros((), device=device),
        }

    @property
    def value(self) -> Tensor:
        """Return the scale, a scalar."""
        return self.state["loss_scale"]

    def update(self, overflow: Tensor) -> None:
        """Adapt the scale after an update.

        Args:
            overflow: A scalar: 1 if the gradient of the update was not finite, 0 otherwise.
        """
        update_count = self.state["scaled_updates"]
        # Counts the update; an overflow sets the count to 0.
        update_count.add_(1).mul_(1 - overflow)
        is_doubled = update_count >= _DOUBLED_AFTER_UPDATES
        self.value.mul_(torch.where(is_doubled, 2.0, 1.0))
        # An overflow multiplies the scale by 1/2.
        self.value.mul_(1 - overflow / 2)
        update_count.masked_fill_(is_doubled, 0)
