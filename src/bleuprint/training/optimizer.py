"""Adam, AdamW and SGD over all weights as one flat vector, and the weights' moving average.

Weights and gradients become views of two vectors, so that summing gradients over processes,
clipping and updating are one operation each instead of one for each parameter. With 16 bits,
matrix products take a copy of the vector, which each update makes once. Nothing here waits for a
GPU.
"""

from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from bleuprint.config.system import Train
from bleuprint.model.precision import use_copies
from bleuprint.model.rows import ROW_STEP
from bleuprint.training.loss_scale import LossScale

# Parameters are aligned to this many elements. The gaps are 0 and stay 0.
_ALIGNED = 64
# The types of activations and matrix products, if it is not that of the parameters.
ACTIVATIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# The moving average of the weights, not yet corrected.
_EMA = "ema"


class FlatOptimizer:
    """Adam, AdamW or SGD with the gradient clipped to `clip_norm` (0: no clipping).

    With `ema`, each update multiplies the moving average by the decay and adds (1 - decay) times
    the new weights.
    """

    def __init__(self, model: nn.Module, settings: Train) -> None:
        names, parameters = zip(*model.named_parameters(), strict=True)
        room = [_room(parameter) for parameter in parameters]
        self.parameters, self.starts = parameters, list(accumulate(room, initial=0))[:-1]
        self.weights = torch.zeros(sum(room), device=parameters[0].device)
        self.gradient = torch.zeros_like(self.weights)
        sgd = settings.optimizer.name == "sgd"
        kinds = ["momentum_buffer"] if sgd else ["exp_avg", "exp_avg_sq"]
        kinds += [] if settings.ema is None else [_EMA]
        self._vectors = {kind: torch.zeros_like(self.weights) for kind in kinds}
        # by the names of the weights, which another device may put elsewhere in the vectors
        self._state = {} if sgd else {"step": torch.zeros((), device=self.weights.device)}
        for name, parameter, start in zip(names, parameters, self.starts, strict=True):
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            for kind, vector in self._vectors.items():
                self._state[f"{kind}.{name}"] = vector[start:end].view_as(parameter)
        self._settings = settings
        self._copy: Tensor | None = None
        if settings.precision in ACTIVATIONS:
            self._copy = self.weights.to(ACTIVATIONS[settings.precision])
            use_copies(model, self.weights, self._copy)
        self.loss_scale: LossScale | None = None
        if settings.precision == "float16":
            self.loss_scale = LossScale(self.weights.device)
            self._state |= self.loss_scale.state

    def zero_grad(self) -> None:
        self.gradient.zero_()

    def grad_norm(self) -> Tensor:
        """The Euclidean norm of the gradient, which is divided by the scale of the loss first."""
        if self.loss_scale is not None:
            self.gradient.div_(self.loss_scale.value)
        norm: Tensor = self.gradient.norm()
        return norm

    @torch.no_grad()
    def step(self, learning_rate: float, grad_norm: Tensor) -> None:
        """Clip the gradient, whose norm is `grad_norm`, and update the weights.

        With a scale of the loss, a gradient that is not finite changes only the scale.
        """
        overflow = None
        if self.loss_scale is not None:
            overflow = (~grad_norm.isfinite()).float()
            self.loss_scale.update(overflow)
        if clip := self._settings.clip_norm:
            # in float64, as Python's numbers have it
            self.gradient.mul_((clip / grad_norm.double()).clamp(max=1.0).float())
        if self._settings.optimizer.momentum is None:
            self._adam(learning_rate, overflow)
        else:
            self._sgd(learning_rate, overflow)
        if self._settings.ema is not None:
            self._vectors[_EMA].lerp_(self.weights, 1 - self._settings.ema)
        self._copy_weights()

    def _sgd(self, learning_rate: float, overflow: Tensor | None) -> None:
        settings = self._settings.optimizer
        assert settings.momentum is not None
        sgd(
            [self.weights],
            [self.gradient],
            [self._vectors["momentum_buffer"]],
            fused=True,
            found_inf=overflow,
            weight_decay=settings.weight_decay,
            momentum=settings.momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def _adam(self, learning_rate: float, overflow: Tensor | None) -> None:
        settings = self._settings.optimizer
        assert settings.betas is not None and settings.eps is not None
        # torch's functional form: creating torch.optim.Adam imports torch's compiler, which takes
        # longer than some stages.
        adam(
            [self.weights],
            [self.gradient],
            [self._vectors["exp_avg"]],
            [self._vectors["exp_avg_sq"]],
            [],
            [self._state["step"]],
            fused=True,
            found_inf=overflow,
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
        if self._copy is not None:
            self._copy.copy_(self.weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Adam's moments and step count, or SGD's velocity; moving average and scale, if any.

        What there is for each weight is named KIND.WEIGHT, such as exp_avg.projection.weight.
        """
        return dict(self._state)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Copy the state from `tensors`, after the weights were loaded."""
        for name, tensor in tensors.items():
            self._state[name].copy_(tensor)
        self._copy_weights()


def _room(parameter: Tensor) -> int:
    """The elements for a parameter: on GPUs whole rows, a multiple that their products prefer."""
    if parameter.device.type == "cpu":
        return -(-parameter.numel() // _ALIGNED) * _ALIGNED
    return -(-len(parameter) // ROW_STEP) * ROW_STEP * parameter[0].numel()


def ema_weights(state: dict[str, Tensor], decay: float, updates: int) -> dict[str, Tensor]:
    """The moving average of the weights by name, from the state after `updates` updates.

    The sum of all weightings is 1 - decay^updates, by which it is divided, as Adam corrects its
    moments (Kingma and Ba 2015, section 3); after one update it is the weights themselves.
    """
    return {
        name.removeprefix(f"{_EMA}."): tensor / (1 - decay**updates)
        for name, tensor in state.items()
        if name.startswith(f"{_EMA}.")
    }
