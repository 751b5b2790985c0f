"""Adam, AdamW and SGD over all weights as one flat vector, and the weights' moving average.

The weights and gradients of all parameters become views of two vectors. So summing gradients over
processes, clipping and updating are one operation each, instead of one for each parameter. With 16
bits, matrix products take a copy of the weights, which each update renews. Nothing here waits for a
GPU.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from bleuprint.config.system import Train
from bleuprint.model.precision import use_copies
from bleuprint.model.rows import ROW_STEP
from bleuprint.training.loss_scale import LossScale

# On CPUs, parameters begin at multiples of this many elements. The gaps are 0 and stay 0.
_ALIGNED_ELEMENTS = 64
# The types of activations and matrix products, where they differ from the parameters' float32.
ACTIVATIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# The names of state vectors: the velocity of SGD, the two moments of Adam, and the moving average
# of the weights before its bias is corrected.
_VELOCITY = "momentum_buffer"
_FIRST_MOMENT = "exp_avg"
_SECOND_MOMENT = "exp_avg_sq"
_EMA = "ema"


class FlatOptimizer:
    """Adam, AdamW or SGD over all weights of a model as one vector.

    The gradient is clipped to the norm `clip_norm` (0: no clipping). With `ema`, each update also
    multiplies the moving average of the weights by the decay, and adds (1 - decay) times the new
    weights.

    Attributes:
        parameters: The parameters of the model.
        starts: The index in the vectors at which each parameter begins.
        weights: The vector of all weights, of which the parameters are views.
        gradient: The vector of all gradients.
        loss_scale: The scale of the loss in float16; None in other types.
    """

    def __init__(self, model: nn.Module, settings: Train) -> None:
        """Make the parameters of a model and their gradients views of two vectors.

        Args:
            model: The model, on its device.
            settings: The settings of the training.
        """
        self._settings = settings
        names: list[str] = []
        parameters: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            names.append(name)
            parameters.append(parameter)
        self.parameters: Sequence[nn.Parameter] = parameters
        self.starts: list[int] = []
        size = 0
        for parameter in parameters:
            self.starts.append(size)
            size += _aligned_size(parameter)
        self.weights = torch.zeros(size, device=parameters[0].device)
        self.gradient = torch.zeros_like(self.weights)
        self._vectors: dict[str, Tensor] = {}
        for kind in _state_vectors(settings):
            self._vectors[kind] = torch.zeros_like(self.weights)
        self._state = self._state_views(names)
        for parameter, start in zip(self.parameters, self.starts, strict=True):
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
        self._weights_16_bits: Tensor | None = None
        if settings.precision in ACTIVATIONS:
            self._weights_16_bits = self.weights.to(ACTIVATIONS[settings.precision])
            use_copies(model, self.weights, self._weights_16_bits)
        self.loss_scale: LossScale | None = None
        if settings.precision == "float16":
            self.loss_scale = LossScale(self.weights.device)
            self._state.update(self.loss_scale.state)

    def _state_views(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the state to save: views of the state vectors, named KIND.WEIGHT.

        The state is saved by the names of the weights, because another device may have other gaps
        between them.
        """
        state: dict[str, Tensor] = {}
        if _FIRST_MOMENT in self._vectors:
            state["step"] = torch.zeros((), device=self.weights.device)
        for name, parameter, start in zip(names, self.parameters, self.starts, strict=True):
            end = start + parameter.numel()
            for kind, vector in self._vectors.items():
                state[f"{kind}.{name}"] = vector[start:end].view_as(parameter)
        return state

    def zero_grad(self) -> None:
        """Set the gradient to 0."""
        self.gradient.zero_()

    def grad_norm(self) -> Tensor:
        """Return the Euclidean norm of the gradient, a scalar.

        In float16 this first divides the gradient by the scale of the loss: call it once an update.
        """
        if self.loss_scale is not None:
            self.gradient.div_(self.loss_scale.value)
        norm: Tensor = self.gradient.norm()
        return norm

    @torch.no_grad()
    def step(self, learning_rate: float, grad_norm: Tensor) -> None:
        """Clip the gradient and update the weights.

        In float16, a gradient that is not finite changes only the scale of the loss.

        Args:
            learning_rate: The learning rate of this update.
            grad_norm: The norm of the gradient.
        """
        # With overflow 1, the fused optimizers of torch leave weights and moments unchanged.
        overflow = None
        if self.loss_scale is not None:
            overflow = (~grad_norm.isfinite()).float()
            self.loss_scale.update(overflow)
        clip_norm = self._settings.clip_norm
        if clip_norm:
            # In float64, like a number of Python.
            factor = (clip_norm / grad_norm.double()).clamp(max=1.0)
            self.gradient.mul_(factor.float())
        if self._settings.optimizer.name == "sgd":
            self._sgd(learning_rate, overflow)
        else:
            self._adam(learning_rate, overflow)
        if self._settings.ema is not None:
            self._vectors[_EMA].lerp_(self.weights, 1 - self._settings.ema)
        self._copy_weights()

    def _sgd(self, learning_rate: float, overflow: Tensor | None) -> None:
        """Update the weights by torch's functional SGD, to which all weights are one parameter.

        Args:
            learning_rate: The learning rate.
            overflow: A scalar; if it is 1, the weights stay unchanged. None means 0.
        """
        settings = self._settings.optimizer
        assert settings.momentum is not None
        sgd(
            [self.weights],
            [self.gradient],
            [self._vectors[_VELOCITY]],
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
        """Update the weights by torch's functional Adam, to which all weights are one parameter.

        torch.optim.Adam is not used, because creating it imports torch's compiler, which takes
        longer than some stages.

        Args:
            learning_rate: The learning rate.
            overflow: A scalar; if it is 1, the weights stay unchanged. None means 0.
        """
        settings = self._settings.optimizer
        assert settings.betas is not None and settings.eps is not None
        beta1, beta2 = settings.betas
        adam(
            [self.weights],
            [self.gradient],
            [self._vectors[_FIRST_MOMENT]],
            [self._vectors[_SECOND_MOMENT]],
            [],  # The greatest second moments, which only AMSGrad needs.
            [self._state["step"]],
            fused=True,
            found_inf=overflow,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=learning_rate,
            weight_decay=settings.weight_decay,
            eps=settings.eps,
            maximize=False,
            decoupled_weight_decay=settings.name == "adamw",
        )

    def _copy_weights(self) -> None:
        """Renew the copy of the weights in 16 bits, if there is one."""
        if self._weights_16_bits is not None:
            self._weights_16_bits.copy_(self.weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state to save.

        It contains Adam's moments and step count, or SGD's velocity; the moving average of the
        weights and the scale of the loss, if there are any. What belongs to a weight is named
        KIND.WEIGHT, such as exp_avg.projection.weight.
        """
        return dict(self._state)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Copy a saved state; the weights must have been loaded before."""
        for name, tensor in tensors.items():
            self._state[name].copy_(tensor)
        self._copy_weights()


def _state_vectors(settings: Train) -> list[str]:
    """Return the names of the vectors that the optimizer needs, in the order of the state."""
    vectors = [_FIRST_MOMENT, _SECOND_MOMENT]
    if settings.optimizer.name == "sgd":
        vectors = [_VELOCITY]
    if settings.ema is not None:
        vectors.append(_EMA)
    return vectors


def _aligned_size(parameter: Tensor) -> int:
    """Return the number of elements of a parameter in the vectors, with the gap after it.

    On GPUs whole rows are added, up to a number of rows that their products prefer.
    """
    if parameter.device.type == "cpu":
        return _round_up(parameter.numel(), _ALIGNED_ELEMENTS)
    row_elements = parameter[0].numel()
    return _round_up(len(parameter), ROW_STEP) * row_elements


def _round_up(number: int, step: int) -> int:
    """Round a number up to a multiple of `step`."""
    # Floor division of the negative number rounds up.
    return -(-number // step) * step


def ema_weights(state: dict[str, Tensor], decay: float, updates: int) -> dict[str, Tensor]:
    """Return the moving average of the weights, by name.

    The saved average starts at 0, so after n updates its weightings add up to 1 - decay^n. It is
    divided by this sum, as Adam corrects its moments (Kingma and Ba 2015, section 3): after one
    update the average is equal to the weights.

    Args:
        state: The saved state of the optimizer.
        decay: The setting `train.ema`.
        updates: The number of updates.
    """
    prefix = f"{_EMA}."
    averages = {}
    for name, tensor in state.items():
        if name.startswith(prefix):
            averages[name.removeprefix(prefix)] = tensor / (1 - decay**updates)
    return averages
