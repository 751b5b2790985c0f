"""Linear layers that call oneDNN on CPUs.

torch computes float32 products with MKL, which reaches half of the peak on AMD processors (95 of
220 GFLOP/s on a Zen 5 core). torch also contains oneDNN but uses it in compiled models only,
through the operators that are called directly here. On Intel's processors MKL is 1.28 times as fast
as oneDNN (d_model 128, one thread of a processor with AMX): there torch computes float32 itself,
but for portable arithmetic, whose bits are oneDNN's.
"""

import os
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.model.arithmetic import PORTABLE
from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError

# Whether this build of torch contains oneDNN.
_HAS_ONEDNN = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]

IS_PORTABLE = os.environ.get("MKL_CBWR") == PORTABLE["MKL_CBWR"]

# Gradients of weights with fewer elements are faster by torch's own product, which does not copy
# its operands into oneDNN's layout: 150 instead of 100 GFLOP/s for 256 x 128, 350 instead of 260 in
# bfloat16 for 384 x 128, on two Zen 5 cores. Not with portable arithmetic: its MKL has SSE2 alone.
_SMALL_WEIGHT = {torch.float32: 1 << 17, torch.bfloat16: 1 << 20}
if IS_PORTABLE:
    _SMALL_WEIGHT = dict.fromkeys(_SMALL_WEIGHT, 0)

Size = tuple[int, int]  # sentences B, and positions T of each

_ROWS = 16
ROW_STEP = 64  # of matrices on GPUs
_TF32_FROM = 8  # compute capability

# The batch size for which oneDNN chooses the layout of packed weights: about that of a search
# batch. Other sizes are computed nearly as fast.
_PACKED_ROWS = 256


class Linear(nn.Linear):
    """nn.Linear that calls oneDNN on CPUs and multiplies in the precision of its input.

    `copies`: weight and bias in 16 bits, for inputs in 16 bits (see `use_copies`). `packed`: the
    weight in oneDNN's blocked layout, once `pack_weights` was called.
    """

    copies: tuple[Tensor, Tensor | None] | None = None
    packed: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = self.parameters_as(input.dtype)
        if self.packed is not None and _onednn_takes(input, weight) and not torch.is_grad_enabled():
            return _onednn_linear(input, self.packed, bias)
        return linear(input, weight, bias)

    def values(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Weight and bias in `dtype`."""
        if self.copies is None or dtype == self.weight.dtype:
            return self.weight, self.bias
        return self.copies

    def parameters_as(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Weight and bias in `dtype`; their gradients are added to the float32 parameters."""
        weight, bias = self.values(dtype)
        if weight is self.weight:
            return weight, bias
        return (
            _Copy.apply(self.weight, weight),  # type: ignore[no-untyped-call]
            None if bias is None else _Copy.apply(self.bias, bias),  # type: ignore[no-untyped-call]
        )


def use_copies(model: nn.Module, weights: Tensor, copy: Tensor) -> None:
    """Make linear layers multiply by `copy`; parameters are views of the vector `weights`."""

    def view(parameter: Tensor) -> Tensor:
        offset = parameter.storage_offset() - weights.storage_offset()
        return copy[offset : offset + parameter.numel()].view_as(parameter)

    for module in model.modules():
        if isinstance(module, Linear):
            bias = None if module.bias is None else view(module.bias)
            module.copies = view(module.weight), bias


def check_precision(setting: str, precision: str, device: torch.device) -> None:
    """Raise UserError, naming `setting`, if the device has no units for `precision`.

    BLEUPRINT_EMULATE=1 permits it.
    """
    on_gpu = device.type == "cuda"
    if precision == "bfloat16":
        has = torch.cuda.is_bf16_supported(False) if on_gpu else processor.THIS.has_bfloat16
    elif precision == "tf32":
        has = on_gpu and torch.cuda.get_device_properties(device).major >= _TF32_FROM
    else:
        has = on_gpu or precision == "float32"
    if has or environment.is_emulating():
        return
    if on_gpu:
        name = torch.cuda.get_device_name(device)
        instead = "float16 for training, float32 for decoding"
        why = f"{name} has no units for it: set {'float32' if precision == 'tf32' else instead}"
    elif precision == "bfloat16":
        why = "this CPU has no instructions for it (AVX512_BF16 or AMX), so that float32 is faster"
    else:
        why = "it is for GPUs; on CPUs float32 is faster"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not on_gpu and hidden is not None:
        why += f" (CUDA_VISIBLE_DEVICES is {hidden!r}, which hides GPUs)"
    raise UserError(f"{setting} {precision}: {why}; BLEUPRINT_EMULATE=1 uses it anyway")


def round_to_bfloat16(model: nn.Module) -> None:
    """Give linear layers weights in bfloat16, for inference; tied embeddings stay float32."""
    for module in model.modules():
        if isinstance(module, Linear):
            bias = None if module.bias is None else module.bias.detach().bfloat16()
            module.copies = module.weight.detach().bfloat16(), bias


def pack_weights(model: nn.Module) -> None:
    """Store the weights of a model's linear layers in oneDNN's layout as well: 10 % faster.

    For inference only: the packed copies do not follow later changes of the weights.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            weight = (module.copies or (module.weight,))[0].detach()
            if _onednn_takes(weight, weight):
                module.packed = torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_ROWS)


def pad_rows(x: Tensor) -> Tensor:
    """x (B, T, D) as rows (R, D), the last of them zeros, so that few numbers R occur.

    oneDNN compiles a kernel for each new shape, which takes as long as several products, and keeps
    it. R has at most seven significant bits, and is a multiple of _ROWS.
    """
    rows = x.flatten(0, -2)
    missing = -len(rows) % max(_ROWS, 1 << max(0, len(rows).bit_length() - 7))
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def unpad_rows(rows: Tensor, size: Size) -> Tensor:
    """The sentences (B, T, D) of `pad_rows`."""
    sentences, positions = size
    return rows[: sentences * positions].view(*size, rows.size(-1))


def aligned_rows(matrix: Tensor) -> Tensor:
    """A matrix or vector and what follows in its memory, up to a multiple of ROW_STEP rows.

    Kernels of GPUs take up to twice as long for products whose sizes are no multiples of 8 or 64.
    The rows after those of the matrix are 0 in the optimizer's vector (FlatOptimizer); whatever
    they are, their results must not be used. Without room for them: the matrix itself.
    """
    rows = -(-len(matrix) // ROW_STEP) * ROW_STEP
    room = matrix.untyped_storage().size() // matrix.itemsize - matrix.storage_offset()
    fits = rows * matrix[0].numel() <= room
    return matrix.as_strided((rows, *matrix.shape[1:]), matrix.stride()) if fits else matrix


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`functional.linear`: x (..., K) times the transpose of weight (V, K), plus bias (V,)."""
    if not _onednn_takes(x, weight):
        return functional.linear(x, weight, bias)
    return _onednn_linear(x, weight, bias)


def weight_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient (V, K) of a weight, for x (N, K) and the gradient (N, V) of the product."""
    if not _onednn_takes(x, gradient) or x.size(1) * gradient.size(1) < _SMALL_WEIGHT[x.dtype]:
        return gradient.t() @ x
    return _product(x.t(), gradient.t()).t()


def _onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = x.reshape(-1, x.size(-1))
    if torch.is_grad_enabled():
        result: Tensor = _LinearFunction.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        result = _product(rows, weight, bias)
    return result.view(*x.shape[:-1], weight.size(0))


def _onednn_takes(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN computes this product; False under torch.compile."""
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.dtype == weight.dtype
        and onednn_multiplies(x.dtype)
        and x.numel() > 0
    )


def onednn_multiplies(dtype: torch.dtype) -> bool:
    """Whether products of matrices of this type are oneDNN's on this processor."""
    if not _HAS_ONEDNN or not processor.THIS.is_x86:
        return False
    if dtype == torch.float32:
        return IS_PORTABLE or not processor.THIS.is_intel
    return dtype == torch.bfloat16 and processor.THIS.has_bfloat16


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, K) times the transpose of weight (V, K), plus bias (V,): (N, V)."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Copy(torch.autograd.Function):
    """A copy of a parameter in another type, which exists already; its gradient in float32."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, copy: Tensor) -> Tensor:
        ctx.dtype = parameter.dtype
        return copy.view_as(copy)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0].to(ctx.dtype), None


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
            linear(gradient, weight.t(), None) if needs_x else None,
            weight_gradient(x, gradient) if needs_weight else None,
            gradient.sum(0) if needs_bias else None,
        )
