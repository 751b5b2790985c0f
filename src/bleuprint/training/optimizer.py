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
from bleuprint.model.rows import GPU_ROW_MULTIPLE
from bleuprint.runtime.rounding import round_up
from bleuprint.training.loss_scale import LossScale

# On CPUs, parameters begin at multiples of this many elements. The gaps are 0 and stay 0.
_ALIGNED_ELEMENTS = 64
# The types of activations and matrix products, where they differ from the parameters' float32.
ACTIVATION_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# The names of state vectors: the velocity of SGD, the two moments of Adam, and the moving average
# of the weights before its bias is corrected.
_VELOCITY = "momentum_buffer"
_FIRST_MOMENT = "exp_avg"
_SECOND_MOMENT = "exp_avg_sq"
_EMA = "ema"


class FlatOptimizer:
    """Adam, AdamW or SGD, which sees all weights of a model as one vector.

    So clipping, updating and summing gradients over processes are one operation each, instead of
    one for each parameter. With the setting `ema`, it also keeps an exponential moving average of
    the weights.

    Attributes:
        parameters: The parameters of the model.
        starts: The index in the vectors at which each parameter begins.
        weights: The vector of all weights, of which the parameters are views.
        gradient: The vector of all gradients.
        loss_scale: The scale of the loss in float16; None in other types.
    """

    def __init__(self, model: nn.Module, settings: Train) -> None:
        """Make the parameters of a model parts of one vector, and their gradients of another one.

        So an update of all weights is one operation instead of one for each parameter.

        Args:
            model: The model, on its device. Its parameters become views of the vector of weights.
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
        # What the optimizer remembers for each weight, such as the moments of Adam: one vector for
        # each kind, by its name in a checkpoint.
        self._vectors: dict[str, Tensor] = {}
        for kind in _state_vectors(settings):
            self._vectors[kind] = torch.zeros_like(self.weights)
        # The state to save in a checkpoint.
        self._state = self._state_views(names)
        self._make_parameters_views()
        # If the model computes in 16 bits, it multiplies by this copy of the weights. Updates are
        # added to the weights in float32, because small ones would be lost in 16 bits.
        self._weights_16_bits: Tensor | None = None
        if settings.precision in ACTIVATION_DTYPES:
            self._weights_16_bits = self.weights.to(ACTIVATION_DTYPES[settings.precision])
            use_copies(model, self.weights, self._weights_16_bits)
        self.loss_scale: LossScale | None = None
        if settings.precision == "float16":
            self.loss_scale = LossScale(self.weights.device)
            self._state.update(self.loss_scale.state)

    def _make_parameters_views(self) -> None:
        """Copy the parameters into the vector of weights, and make them views of it.

        Their gradients become views of the vector of gradients.
        """
        for parameter, start in zip(self.parameters, self.starts, strict=True):
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)

    def _state_views(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the state to save in a checkpoint, as views of the optimizer's vectors.

        A vector such as the first moment of Adam is saved as one tensor for each parameter. So a
        checkpoint can be loaded on another device, on which the parameters may begin at other
        elements of the vector. The tensor is named after the vector and the parameter, such as
        exp_avg.projection.weight.

        Args:
            names: The names of the parameters, in the order of `self.parameters`.
        """
        state: dict[str, Tensor] = {}
        if _FIRST_MOMENT in self._vectors:
            # Adam counts its updates: its moments start at 0, and how much too small they are
            # depends on this number. SGD needs no such count.
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

        Call this only once per update, because in float16 it also changes the gradient: it undoes
        the scaling of the loss.
        """
        if self.loss_scale is not None:
            # The loss was multiplied by the scale, and so was its gradient.
            self.gradient.div_(self.loss_scale.value)
        norm: Tensor = self.gradient.norm()
        return norm

    @torch.no_grad()
    def step(self, learning_rate: float, grad_norm: Tensor) -> None:
        """Clip the gradient to the norm `clip_norm`, and update the weights.

        The moving average of the weights is updated as well, if there is one. In float16, the
        gradient may overflow, that is, contain infinity or NaN. Then the weights stay unchanged,
        and the scale by which the loss is multiplied is halved.

        Args:
            learning_rate: The learning rate of this update.
            grad_norm: The norm of the gradient, a scalar.
        """
        # A scalar on the device: 1 after an overflow, otherwise 0. The optimizers of torch read it
        # there, and change nothing if it is 1. So the CPU need not wait for the GPU to know it.
        overflow = None
        if self.loss_scale is not None:
            overflow = (~grad_norm.isfinite()).float()
            self.loss_scale.update(overflow)
        clip_norm = self._settings.clip_norm
        if clip_norm:
            # In float64, like a quotient of two numbers in Python.
            factor = (clip_norm / grad_norm.double()).clamp(max=1.0)
            self.gradient.mul_(factor.float())
        if self._settings.optimizer.name == "sgd":
            self._sgd(learning_rate, overflow)
        else:
            self._adam(learning_rate, overflow)
        if self._settings.ema is not None:
            # average = ema x average + (1 - ema) x weights.
            self._vectors[_EMA].lerp_(self.weights, 1 - self._settings.ema)
        self._copy_weights()

    def _sgd(self, learning_rate: float, overflow: Tensor | None) -> None:
        """Update the weights by SGD with momentum.

        torch's function expects lists of tensors, one for each parameter. Here each list contains
        one tensor, the vector for all weights.

        Args:
            learning_rate: The learning rate.
            overflow: A scalar; if it is 1, the gradient is not finite, and the weights stay
                unchanged. None means 0.
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
        """Update the weights by Adam, or by AdamW if the settings name it.

        torch's function expects lists of tensors, one for each parameter. Here each list contains
        one tensor, the vector for all weights. The class torch.optim.Adam is not used, because
        creating it imports torch's compiler, which takes longer than some stages of the pipeline.

        Args:
            learning_rate: The learning rate.
            overflow: A scalar; if it is 1, the gradient is not finite, and the weights stay
                unchanged. None means 0.
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
            [self._state["step"]],  # The number of updates so far, which torch increases.
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
        """Renew the copy of the weights in 16 bits, with which the model multiplies, if any."""
        if self._weights_16_bits is not None:
            self._weights_16_bits.copy_(self.weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state to save in a checkpoint, by name.

        It contains Adam's moments and step count, or SGD's velocity. Depending on the settings, it
        also contains the moving average of the weights, and the scale of the loss. A tensor for one
        parameter is named after it, such as exp_avg.projection.weight.
        """
        return dict(self._state)

    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Restore a state that `state_dict` returned.

        Load the weights of the model before: if the model computes in 16 bits, this also renews the
        16-bit copy of the weights.

        Args:
            tensors: The state, by name. Tensors that it does not contain stay as they are.
        """
        for name, tensor in tensors.items():
            self._state[name].copy_(tensor)
        self._copy_weights()


def _state_vectors(settings: Train) -> list[str]:
    """Return what an optimizer remembers for each weight, as the names of vectors.

    Adam remembers two moments, SGD the velocity (momentum). With the setting `ema`, both also keep
    the moving average. Each vector is as long as the vector of all weights.
    """
    vectors = [_FIRST_MOMENT, _SECOND_MOMENT]
    if settings.optimizer.name == "sgd":
        vectors = [_VELOCITY]
    if settings.ema is not None:
        vectors.append(_EMA)
    return vectors


def _aligned_size(parameter: Tensor) -> int:
    """Return how many elements a parameter takes in the vector of all weights, with padding.

    Matrix products are faster if a parameter begins at a multiple of 64 elements (CPUs), or has a
    multiple of 64 rows (GPUs). So zeros follow a parameter up to such a multiple.
    """
    if parameter.device.type == "cpu":
        return round_up(parameter.numel(), _ALIGNED_ELEMENTS)
    row_elements = parameter[0].numel()
    return round_up(len(parameter), GPU_ROW_MULTIPLE) * row_elements


def ema_weights(state: dict[str, Tensor], decay: float, updates: int) -> dict[str, Tensor]:
    """Return the moving average of the weights, by name, from a saved state of the optimizer.

    The saved average started at 0, so it is too small, in particular after few updates. After n
    updates it is 1 - decay^n times as large as it should be, and so is divided by this factor. Adam
    corrects its moments in the same way (Kingma and Ba 2015, section 3).

    Args:
        state: The saved state of the optimizer.
        decay: The setting `train.ema`, such as 0.999.
        updates: The number of updates.
    """
    prefix = f"{_EMA}."
    averages = {}
    for name, tensor in state.items():
        if name.startswith(prefix):
            averages[name.removeprefix(prefix)] = tensor / (1 - decay**updates)
    return averages
