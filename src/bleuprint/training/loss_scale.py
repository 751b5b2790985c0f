"""Dynamic loss scaling for float16, whose smallest numbers gradients fall below.

Losses are multiplied by a scale and gradients divided by it. An update whose gradient is not finite
is left out and the scale halved; after 2,000 updates without one it is doubled (Micikevicius et al.
2018, Mixed Precision Training). All stays on the device.
"""

import torch
from torch import Tensor

_INITIAL, _DOUBLED_AFTER = 2.0**16, 2000
# Below this it is no longer a matter of the scale.
LOWEST = 1e-4


class LossScale:
    """`state`: the scale and the number of updates since it changed, tensors to save."""

    def __init__(self, device: torch.device) -> None:
        self.state = {
            "loss_scale": torch.full((), _INITIAL, device=device),
            "scaled_updates": torch.zeros((), device=device),
        }

    @property
    def value(self) -> Tensor:
        return self.state["loss_scale"]

    def update(self, overflow: Tensor) -> None:
        """`overflow`: 1 if the gradient of this update was not finite, 0 otherwise."""
        count = self.state["scaled_updates"]
        count.add_(1).mul_(1 - overflow)
        doubled = count >= _DOUBLED_AFTER
        self.value.mul_(torch.where(doubled, 2.0, 1.0)).mul_(1 - overflow / 2)
        count.masked_fill_(doubled, 0)
