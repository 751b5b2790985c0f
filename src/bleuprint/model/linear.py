"""Linear layers whose products on CPUs are oneDNN's.

torch leaves those of float32 to MKL, which uses half of what AMD's processors can do (measured on
a Zen 5 core: 95 of 220 GFLOP/s; on Intel's the two are equals). torch has oneDNN as well, but
calls it for compiled models only: by the operator that is called here.
"""

import platform
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_HAS_ONEDNN = platform.machine().lower() in ("x86_64", "amd64") and bool(
    torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
)

# About as many rows as a batch of a search has; oneDNN's order suits others as well.
_ROWS = 256


class Linear(nn.Linear):
    """torch's, but for who multiplies; `packed` is the weight in oneDNN's own order, if it is."""

    packed: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        weight = self.weight
        if self.packed is not None and _takes(input, weight) and not torch.is_grad_enabled():
            return _linear(input, self.packed, self.bias)
        return linear(input, weight, self.bias)


def pack_weights(model: nn.Module) -> None:
    """Keep the weights of a model's linear layers in oneDNN's order too: a tenth faster.

    Once for all, for a model that translates and whose weights change no more.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = module.weight.detach()
            if _takes(weight, weight):
                module.packed = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`functional.linear`: x (..., K) times weight (V, K) transposed, and bias (V,)."""
    if not _takes(x, weight):
        return functional.linear(x, weight, bias)
    return _linear(x, weight, bias)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = x.reshape(-1, x.size(-1))
    if torch.is_grad_enabled():
        result: Tensor = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        result = _product(rows, weight, bias)
    return result.view(*x.shape[:-1], weight.size(0))


def _takes(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN is there for these, and torch would not round or compile their product."""
    return (
        _HAS_ONEDNN
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, K) times weight (V, K) transposed, and bias (V,): (N, V)."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Linear(torch.autograd.Function):
    """The product with its gradients, which are products too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        # that of a bare sum has one number for memory, and oneDNN takes it row by row
        gradient = gradients[0].contiguous()
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if of_x else None,
            _product(x.t(), gradient.t()).t() if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )
