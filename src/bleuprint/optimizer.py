"""Adam over all weights as one flat vector.

The weights become views of one vector, their gradients of another: adding gradients up over
processes, clipping and updating are then one operation each instead of one for every weight.
"""

import torch
from torch import Tensor, nn

from bleuprint.settings import Train


class FlatAdam:
    """Adam (Kingma and Ba 2015) with the gradient clipped to a norm (0: not clipped)."""

    def __init__(self, model: nn.Module, settings: Train) -> None:
        parameters = list(model.parameters())
        self.weights = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.gradient = torch.zeros_like(self.weights)
        self.weights.grad = self.gradient
        start = 0
        for parameter in parameters:
            end = start + parameter.numel()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end
        self._clip = settings.clip_norm
        self._adam = torch.optim.Adam(
            [self.weights], betas=settings.betas, eps=settings.epsilon, fused=True
        )

    def clear(self) -> None:
        self.gradient.zero_()

    def norm(self) -> float:
        """The gradient's Euclidean norm."""
        return float(self.gradient.norm())

    def step(self, learning_rate: float, norm: float) -> None:
        """Clip the gradient, whose `norm` is given, and update the weights."""
        if self._clip and norm > self._clip:
            self.gradient.mul_(self._clip / norm)
        self._adam.param_groups[0]["lr"] = learning_rate
        self._adam.step()

    def tensors(self) -> dict[str, Tensor]:
        """Adam's moments and step count, empty before the first update."""
        state: dict[str, Tensor] = self._adam.state[self.weights]
        return dict(state)

    def load(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            self._adam.state[self.weights][name] = tensor.to(self.weights.device)
