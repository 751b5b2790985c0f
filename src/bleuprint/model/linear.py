"""Linear layers that call oneDNN on CPUs.

torch computes float32 products with MKL, which reaches half of the peak on AMD processors (95 of
220 GFLOP/s on a Zen 5 core; on Intel's the two are equal). torch also contains oneDNN but uses it
in compiled models only, through the operators that are called directly here.
"""

import platform
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_HAS_ONEDNN = platform.machine().lower() in ("x86_64", "amd64") and bool(
    torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
)

# The batch size for which oneDNN chooses the layout of packed weights: about that of a search
# batch. Other sizes are computed nearly as fast.
_PACKED_ROWS = 256


class Linear(nn.Linear):
    """nn.Linear that calls oneDNN on CPUs.

    `packed`: the weight in oneDNN's blocked layout, once `pack_weights` was called.
    """

    packed: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        weight = self.weight
        if self.packed is not None and _onednn_takes(input, weight) and not torch.is_grad_enabled():
            return _onednn_linear(input, self.packed, self.bias)
        return linear(input, weight, self.bias)


def pack_weights(model: nn.Module) -> None:
    """Store the weights of a model's linear layers in oneDNN's layout as well: 10 % faster.

    For inference only: the packed copies do not follow later changes of the weights.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = module.weight.detach()
            if _onednn_takes(weight, weight):
                module.packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_ROWS)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`functional.linear`: x (..., K) times the transpose of weight (V, K), plus bias (V,)."""
    if not _onednn_takes(x, weight):
        return functional.linear(x, weight, bias)
    return _onednn_linear(x, weight, bias)


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = x.reshape(-1, x.size(-1))
    if torch.is_grad_enabled():
        result: Tensor = _LinearFunction.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        result = _product(rows, weight, bias)
    return result.view(*x.shape[:-1], weight.size(0))


def _onednn_takes(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN can compute this product; False under autocast and torch.compile."""
    return (
        _HAS_ONEDNN
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, K) times the transpose of weight (V, K), plus bias (V,): (N, V)."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _LinearFunction(torch.autograd.Function):
    """`_product` with its gradients, which are computed by oneDNN too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # the gradient of a plain sum has stride 0, which oneDNN processes row by row
        gradient = gradients[0].contiguous()
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if needs_x else None,
            _product(x.t(), gradient.t()).t() if needs_weight else None,
            gradient.sum(0) if needs_bias else None,
        )
