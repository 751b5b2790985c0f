"""Adam and AdamW over all weights as one flat vector.

Weights and gradients become views of two vectors, so that summing gradients over processes,
clipping and updating are one operation each instead of one for each parameter. With precision
bfloat16, matrix products take a bfloat16 copy of the vector, which each update makes once.
"""

from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from bleuprint.config.system import Train
from bleuprint.model.linear import use_copies

# Parameters are aligned to this many elements, which fast matrix products on GPUs require. The
# gaps are 0 and stay 0.
_ALIGNED = 64


class FlatAdam:
    """Adam or AdamW with the gradient clipped to `clip_norm` (0: no clipping)."""

    def __init__(self, model: nn.Module, settings: Train) -> None:
        parameters = list(model.parameters())
        room = [-(-parameter.numel() // _ALIGNED) * _ALIGNED for parameter in parameters]
        self.weights = torch.zeros(sum(room), device=parameters[0].device)
        self.gradient = torch.zeros_like(self.weights)
        for parameter, start in zip(parameters, accumulate(room, initial=0), strict=False):
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
        self._settings = settings
        self._bfloat16: Tensor | None = None
        if settings.precision == "bfloat16":
            self._bfloat16 = self.weights.bfloat16()
            use_copies(model, self.weights, self._bfloat16)
        self._state = {
            "exp_avg": torch.zeros_like(self.weights),
            "exp_avg_sq": torch.zeros_like(self.weights),
            "step": torch.zeros((), device=self.weights.device),
        }

    def zero_grad(self) -> None:
        self.gradient.zero_()

    def grad_norm(self) -> float:
        """The Euclidean norm of the gradient."""
        return float(self.gradient.norm())

    @torch.no_grad()
    def step(self, learning_rate: float, grad_norm: float) -> None:
        """Clip the gradient, whose norm is `grad_norm`, and update the weights."""
        clip, settings = self._settings.clip_norm, self._settings.optimizer
        if clip and grad_norm > clip:
            self.gradient.mul_(clip / grad_norm)
        # torch's functional form: creating torch.optim.Adam imports torch's compiler, which takes
        # longer than some stages.
        adam(
            [self.weights],
            [self.gradient],
            [self._state["exp_avg"]],
            [self._state["exp_avg_sq"]],
            [],
            [self._state["step"]],
            fused=True,
            amsgrad=False,
            beta1=settings.betas[0],
            beta2=settings.betas[1],
            lr=learning_rate,
            weight_decay=settings.weight_decay,
            eps=settings.eps,
            maximize=False,
            decoupled_weight_decay=settings.name == "adamw",
        )
        self._copy_weights()

    def _copy_weights(self) -> None:
        if self._bfloat16 is not None:
            self._bfloat16.copy_(self.weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Adam's moments and step count."""
        return dict(self._state)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Copy moments and step count from `tensors`; raises ValueError if shapes differ.

        To be called after the weights were loaded.
        """
        shapes = {name: tensor.shape for name, tensor in self._state.items()}
        if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
            raise ValueError("the optimizer's state does not belong to this model")
        for name, tensor in tensors.items():
            self._state[name].copy_(tensor)
        self._copy_weights()
