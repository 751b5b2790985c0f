"""Linear layers, whose products are computed by oneDNN where it is faster (backends.py).

torch contains oneDNN but uses it in compiled models only. The private operators that compiled
models use are called directly, in this module alone; without them, `backends.HAS_ONEDNN = False`
leaves all products to torch.

Dimensions in shapes: the number of rows, and of the inputs and outputs of a layer.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.model.backends import onednn_takes, onednn_takes_gradient

# The number of rows for which oneDNN chooses the layout of packed weights: about that of a search
# batch. Products of other sizes are computed nearly as fast.
_PACKED_ROWS = 256


class Linear(nn.Linear):
    """nn.Linear that multiplies in the precision of its input, by the library in backends.py.

    Attributes:
        copies: Weight and bias in 16 bits, for inputs in 16 bits (precision.py); None without.
        packed: The weight in oneDNN's blocked layout, once `pack_weights` was called.
    """

    copies: tuple[Tensor, Tensor | None] | None = None
    packed: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Multiply input (..., inputs) by the weight and add the bias: (..., outputs)."""
        weight, bias = self.parameters_as(input.dtype)
        packed = self.packed
        if packed is not None and not torch.is_grad_enabled() and onednn_takes(input, weight):
            return _onednn_linear(input, packed, bias)
        return linear(input, weight, bias)

    def values(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias in a type, without a connection to their gradients."""
        if self.copies is None or dtype == self.weight.dtype:
            return self.weight, self.bias
        return self.copies

    def parameters_as(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias in a type; their gradients are added to the float32 parameters."""
        weight, bias = self.values(dtype)
        if weight is self.weight:
            return weight, bias
        weight = _Copy.apply(self.weight, weight)  # type: ignore[no-untyped-call]
        if bias is not None:
            bias = _Copy.apply(self.bias, bias)  # type: ignore[no-untyped-call]
        return weight, bias


def pack_weights(model: nn.Module) -> None:
    """Store the weights of a model's linear layers in oneDNN's layout as well: 10% faster.

    For inference only: the packed weights do not follow later changes of the parameters.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = module.weight if module.copies is None else module.copies[0]
            weight = weight.detach()
            if onednn_takes(weight, weight):
                module.packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_ROWS)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Multiply by a transposed weight and add a bias, as `functional.linear`.

    Args:
        x: Inputs, (..., inputs).
        weight: The weight, (outputs, inputs).
        bias: The bias, (outputs,), or None.

    Returns:
        The outputs, (..., outputs).
    """
    if not onednn_takes(x, weight):
        return functional.linear(x, weight, bias)
    return _onednn_linear(x, weight, bias)


def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient of a weight in the product of `linear`.

    Args:
        x: The inputs, (rows, inputs).
        gradient: The gradient of the outputs, (rows, outputs).

    Returns:
        The gradient of the weight, (outputs, inputs).
    """
    if not onednn_takes_gradient(x, gradient):
        return gradient.t() @ x
    return _onednn_product(x.t(), gradient.t()).t()


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Multiply by a transposed weight and add a bias, with oneDNN.

    Args:
        x: Inputs, (..., inputs).
        weight: The weight, (outputs, inputs), either a plain tensor or in the blocked layout of
            `pack_weights`.
        bias: The bias, (outputs,), or None.

    Returns:
        The outputs, (..., outputs).
    """
    rows = x.reshape(-1, x.size(-1))
    if torch.is_grad_enabled():
        # torch does not know the gradient of oneDNN's operator; `_OnednnLinear` defines it.
        outputs: Tensor = _OnednnLinear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        outputs = _onednn_product(rows, weight, bias)
    return outputs.view(*x.shape[:-1], weight.size(0))


def _onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply by a transposed weight and add a bias, by the operator of oneDNN.

    Args:
        x: Inputs, (rows, inputs).
        weight: The weight, (outputs, inputs).
        bias: The bias, (outputs,), or None.

    Returns:
        The outputs, (rows, outputs).
    """
    # The last three arguments apply no activation function to the product.
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return outputs


class _Copy(torch.autograd.Function):
    """The copy of a parameter in another type, whose gradient is the parameter's, in float32.

    The copy exists already and is passed in, so that nothing is converted in the forward pass.
    """

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, copy: Tensor) -> Tensor:
        """Return the copy as a new tensor, which autograd connects to the parameter."""
        ctx.dtype = parameter.dtype
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient in the parameter's type; the copy itself has none."""
        return gradients[0].to(ctx.dtype), None


class _OnednnLinear(torch.autograd.Function):
    """`_onednn_product` with its gradients, which oneDNN computes too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply x (rows, inputs) by a transposed weight (outputs, inputs) and add a bias."""
        ctx.save_for_backward(x, weight)
        return _onednn_product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias, each None where nothing needs it."""
        # The gradient of a plain sum has stride 0, which oneDNN processes row by row.
        gradient = gradients[0].contiguous()
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        x_grad = linear(gradient, weight.t(), None) if needs_x else None
        weight_grad = weight_gradient(x, gradient) if needs_weight else None
        bias_grad = gradient.sum(0) if needs_bias else None
        return x_grad, weight_grad, bias_grad
