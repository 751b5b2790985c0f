"""Adam, AdamW and SGD over all weights as one flat vector, and the weights' moving average.

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
# Before the names of weights in the state: their moving average, not yet corrected.
_EMA = "ema."


class FlatOptimizer:
    """Adam, AdamW or SGD with the gradient clipped to `clip_norm` (0: no clipping).

    With `ema`, each update multiplies the moving average by the decay and adds (1 - decay) times
    the new weights.
    """

    def __init__(self, model: nn.Module, settings: Train) -> None:
        names, parameters = zip(*model.named_parameters(), strict=True)
        room = [-(-parameter.numel() // _ALIGNED) * _ALIGNED for parameter in parameters]
        self.weights = torch.zeros(sum(room), device=parameters[0].device)
        self.gradient = torch.zeros_like(self.weights)
        self._ema = None if settings.ema is None else torch.zeros_like(self.weights)
        sgd = settings.optimizer.name == "sgd"
        moments = ("momentum_buffer",) if sgd else ("exp_avg", "exp_avg_sq")
        self._state = {name: torch.zeros_like(self.weights) for name in moments}
        if not sgd:
            self._state["step"] = torch.zeros((), device=self.weights.device)
        starts = accumulate(room, initial=0)
        for name, parameter, start in zip(names, parameters, starts, strict=False):
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            if self._ema is not None:
                self._state[_EMA + name] = self._ema[start:end].view_as(parameter)
        self._settings = settings
        self._bfloat16: Tensor | None = None
        if settings.precision == "bfloat16":
            self._bfloat16 = self.weights.bfloat16()
            use_copies(model, self.weights, self._bfloat16)

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
        if settings.momentum is None:
            self._adam(learning_rate)
        else:
            self.gradient.add_(self.weights, alpha=settings.weight_decay)
            velocity = self._state["momentum_buffer"].mul_(settings.momentum).add_(self.gradient)
            self.weights.add_(velocity, alpha=-learning_rate)
        if self._ema is not None and self._settings.ema is not None:
            self._ema.lerp_(self.weights, 1 - self._settings.ema)
        self._copy_weights()

    def _adam(self, learning_rate: float) -> None:
        settings = self._settings.optimizer
        assert settings.betas is not None and settings.eps is not None
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

    def _copy_weights(self) -> None:
        if self._bfloat16 is not None:
            self._bfloat16.copy_(self.weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Adam's moments and step count, or SGD's velocity; the moving average, if any."""
        return dict(self._state)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Copy the state from `tensors`, after the weights were loaded."""
        for name, tensor in tensors.items():
            self._state[name].copy_(tensor)
        self._copy_weights()


def ema_weights(state: dict[str, Tensor], decay: float, updates: int) -> dict[str, Tensor]:
    """The moving average of the weights by name, from the state after `updates` updates.

    The sum of all weightings is 1 - decay^updates, by which it is divided, as Adam corrects its
    moments (Kingma and Ba 2015, section 3); after one update it is the weights themselves.
    """
    return {
        name.removeprefix(_EMA): tensor / (1 - decay**updates)
        for name, tensor in state.items()
        if name.startswith(_EMA)
    }
