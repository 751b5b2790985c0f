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

# The number of rows for which oneDNN chooses the layout of packed weights, about a search batch.
# Products of other sizes are computed nearly as fast.
_PACKED_ROWS = 256


class Linear(nn.Linear):
    """nn.Linear that multiplies in the precision of its input, by the fastest library.

    Attributes:
        copies: Weight and bias in 16 bits, which multiply inputs in 16 bits; None if the model
            computes in float32.
        packed: The weight in the order of elements in which oneDNN multiplies fastest; None until
            `pack_weights` is called.
    """

    copies: tuple[Tensor, Tensor | None] | None = None
    packed: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        """Return input x weight^T + bias, as nn.Linear.

        Args:
            input: The inputs, (..., in_features).

        Returns:
            The outputs, (..., out_features).
        """
        weight, bias = self.parameters_as(input.dtype)
        packed = self.packed
        if packed is not None and not torch.is_grad_enabled() and onednn_takes(input, weight):
            return _onednn_linear(input, packed, bias)
        return linear(input, weight, bias)

    def values(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias in a floating-point type, without a way back for gradients.

        Args:
            dtype: float32, or the type of the copies in 16 bits.
        """
        if self.copies is None or dtype == self.weight.dtype:
            return self.weight, self.bias
        return self.copies

    def parameters_as(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Return weight and bias in a floating-point type, so that gradients reach the parameters.

        The optimizer updates the parameters in float32. If products use the copies in 16 bits, the
        gradients of these copies are added to those of the parameters.

        Args:
            dtype: float32, or the type of the copies in 16 bits.
        """
        weight, bias = self.values(dtype)
        if weight is self.weight:
            return weight, bias
        # `weight` and `bias` are copies. Autograd has to know the parameters that they copy.
        weight = _Copy.apply(self.weight, weight)  # type: ignore[no-untyped-call]
        if bias is not None:
            bias = _Copy.apply(self.bias, bias)  # type: ignore[no-untyped-call]
        return weight, bias


def pack_weights(model: nn.Module) -> None:
    """Store a copy of each linear layer's weight in the order in which oneDNN multiplies fastest.

    This makes inference 10% faster. It is only for inference: if the weights change later, as in
    training, the copies do not.

    Args:
        model: The model, whose layers are changed.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = module.weight if module.copies is None else module.copies[0]
            weight = weight.detach()
            # Inputs have the type and the device of the weight, which takes their place here.
            if onednn_takes(weight, weight):
                module.packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_ROWS)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight.T + bias, as `torch.nn.functional.linear`, by oneDNN where it is faster.

    Args:
        x: The inputs, (..., in_features).
        weight: The weight, (out_features, in_features).
        bias: The bias, (out_features,), or None.

    Returns:
        The outputs, (..., out_features).
    """
    if not onednn_takes(x, weight):
        return functional.linear(x, weight, bias)
    return _onednn_linear(x, weight, bias)


def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient of a linear layer's weight, gradient.T @ x, by oneDNN if it is faster.

    Args:
        x: The inputs of the layer, (rows, in_features).
        gradient: The gradient of its outputs, (rows, out_features).

    Returns:
        The gradient of the weight, (out_features, in_features).
    """
    if not onednn_takes_gradient(x, gradient):
        return gradient.t() @ x
    # oneDNN transposes its second operand: (x.T @ gradient).T is the same product.
    return _onednn_product(x.t(), gradient.t()).t()


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ weight.T + bias, as `torch.nn.functional.linear`, by the library oneDNN.

    Args:
        x: The inputs, (..., in_features).
        weight: The weight, (out_features, in_features). For inference, it may be a copy from
            `pack_weights`, in an order of elements that only oneDNN reads.
        bias: The bias, (out_features,), or None.

    Returns:
        The outputs, (..., out_features).
    """
    # oneDNN's operator takes a matrix, so all dimensions but the last are joined.
    matrix = x.reshape(-1, x.size(-1))
    if torch.is_grad_enabled():
        # torch does not know the gradient of oneDNN's operator; `_OnednnLinear` defines it.
        outputs: Tensor = _OnednnLinear.apply(matrix, weight, bias)  # type: ignore[no-untyped-call]
    else:
        outputs = _onednn_product(matrix, weight, bias)
    return outputs.view(*x.shape[:-1], weight.size(0))


def _onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ weight.T + bias for a matrix x, by torch's private operator for oneDNN.

    Args:
        x: The inputs, (rows, in_features).
        weight: The weight, (out_features, in_features).
        bias: The bias, (out_features,), or None.

    Returns:
        The outputs, (rows, out_features).
    """
    # The operator could also apply an activation function; the last three arguments choose none.
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return outputs


class _Copy(torch.autograd.Function):
    """Uses a copy of a parameter in 16 bits in place of the parameter, for autograd.

    To autograd, the copy is an unrelated tensor. This operation makes it a function of the
    parameter: the forward pass returns the existing copy instead of converting the parameter again,
    and the backward pass gives the gradient of the copy to the parameter.
    """

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, copy: Tensor) -> Tensor:
        """Return the 16-bit copy of a parameter, so that its gradient reaches the parameter.

        The layers compute with the copy, but the optimizer changes the parameter. autograd takes
        the result for a conversion of the parameter, although nothing is converted here.

        Args:
            ctx: Keeps the type of the parameter until the backward pass.
            parameter: The parameter, in float32.
            copy: The copy of it in 16 bits.
        """
        ctx.dtype = parameter.dtype
        # autograd attaches this operation to the tensor that is returned, so that must be a new
        # tensor object; it shares its memory with the copy.
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the parameter, in its type; the argument `copy` has none."""
        return gradients[0].to(ctx.dtype), None


class _OnednnLinear(torch.autograd.Function):
    """The product x @ weight.T + bias by oneDNN, for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return x @ weight.T + bias, and keep what the gradients need in `ctx`."""
        ctx.save_for_backward(x, weight)
        return _onednn_product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of x, weight and bias; None for those that are not needed.

        Args:
            ctx: The inputs that the forward pass has kept.
            gradients: The gradient of the outputs, the only one.
        """
        # After a sum of the outputs, all elements of the gradient are one and the same element in
        # memory, expanded. oneDNN is slow for such a tensor, so it is copied.
        gradient = gradients[0].contiguous()
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        x_grad = linear(gradient, weight.t(), None) if needs_x else None
        weight_grad = weight_gradient(x, gradient) if needs_weight else None
        bias_grad = gradient.sum(0) if needs_bias else None
        return x_grad, weight_grad, bias_grad
