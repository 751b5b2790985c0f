"""Which library computes a product, an attention, a loss, or the continuations of a search.

This is the one place that chooses: the model, the loss and the search ask here, and do not know
processors or GPUs. What the choices are:

- Products (linear.py): oneDNN or torch's own, on CPUs. For oneDNN, batches get round numbers of
  rows (layout.py).
- Dropout (dropout.py): our own on CPUs, torch's elsewhere.
- The type in which a layer norm (layers.py) and attention over padded sentences (layout.py)
  compute.
- Attention over packed sentences, on GPUs (packed_kernels.py): our Triton kernels or torch's flash
  attention; on CPUs, for tests, sentence by sentence.
- Attention of a decoding step (kv_cache.py) and the best continuations (decoding/beam_search.py):
  native/search.cpp or torch, on CPUs.
- Compiled layers (training/train_step.py), on GPUs.
- The loss (training/loss.py): native/loss.cpp or torch, on CPUs.

With portable arithmetic (arithmetic.py) every choice is the one that gives the same bits on all
processors.
"""

import ctypes
import os
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Literal

import torch
from torch import Tensor

from bleuprint import native
from bleuprint.config.system import Model
from bleuprint.model.arithmetic import is_portable
from bleuprint.runtime import processor

IS_PORTABLE = is_portable()

# Whether this build of torch contains oneDNN.
HAS_ONEDNN = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]

# The gradient of a weight with fewer elements is faster by torch's own product, which does not copy
# its operands into oneDNN's layout: 150 instead of 100 GFLOP/s for 256 x 128, 350 instead of 260 in
# bfloat16 for 384 x 128, on two Zen 5 cores. With portable arithmetic oneDNN computes all of them,
# since MKL then uses SSE2 alone.
_MIN_ONEDNN_GRADIENT = {torch.float32: 1 << 17, torch.bfloat16: 1 << 20}
if IS_PORTABLE:
    _MIN_ONEDNN_GRADIENT = dict.fromkeys(_MIN_ONEDNN_GRADIENT, 0)

# The vectors that native/search.cpp multiplies have a multiple of 8 elements.
_NATIVE_VECTOR = 8
# native/search.cpp keeps the best continuations sorted by insertion, which is fast for so many.
_MAX_NATIVE_CONTINUATIONS = 64

# The lowest compute capability of the GPUs for which torch.compile generates code (by Triton).
_MIN_COMPILE_CAPABILITY = (7, 0)
# The module of torch's flash attention over packed sentences, the least compute capability of a GPU
# that it needs, and the head sizes that it takes: multiples, up to the largest.
FLASH_ATTENTION = "torch.nn.attention.varlen"
_FLASH_CAPABILITY = (8, 0)
_FLASH_HEAD_MULTIPLE = 8
_FLASH_MAX_HEAD = 256
# What our Triton kernels take: head sizes, and tokens of a sentence. On longer sentences flash
# attention wastes little.
_TRITON_HEADS = (16, 32, 64, 128)
_TRITON_MAX_LENGTH = 256

PackedKernel = Literal["by sentence", "triton", "flash"]


def onednn_multiplies(dtype: torch.dtype) -> bool:
    """Return whether the library oneDNN computes matrix products of a type on this processor.

    Otherwise torch computes them, float32 products with the library MKL. On AMD processors, MKL
    reaches less than half of the peak (95 of 220 GFLOP/s on a Zen 5 core), so oneDNN is faster. On
    Intel processors, MKL is 1.28 times as fast as oneDNN (d_model 128, one thread of a processor
    with AMX). Portable arithmetic, which must give the same bits everywhere, uses oneDNN on both.

    Args:
        dtype: The floating-point type of both operands.
    """
    if not HAS_ONEDNN or not processor.THIS.is_x86:
        return False
    if dtype == torch.float32:
        return IS_PORTABLE or not processor.THIS.is_intel
    return dtype == torch.bfloat16 and processor.THIS.has_bfloat16


def onednn_takes(x: Tensor, weight: Tensor) -> bool:
    """Return whether the library oneDNN computes the product of two tensors; otherwise torch does.

    In compiled models, the compiler chooses a library, so the result is False.

    Args:
        x: The inputs of a linear layer.
        weight: The weight of the layer.
    """
    return (
        not torch.compiler.is_compiling()
        and x.device.type == "cpu"
        and x.dtype == weight.dtype
        and onednn_multiplies(x.dtype)
        and x.numel() > 0
    )


def onednn_takes_gradient(x: Tensor, gradient: Tensor) -> bool:
    """Return whether the library oneDNN computes the gradient of a linear layer's weight.

    For small weights, torch itself is faster.

    Args:
        x: The inputs of the layer, (rows, in_features).
        gradient: The gradient of its outputs, (rows, out_features).
    """
    if not onednn_takes(x, gradient):
        return False
    weight_elements = x.size(1) * gradient.size(1)
    return weight_elements >= _MIN_ONEDNN_GRADIENT[x.dtype]


def needs_round_row_counts(x: Tensor, is_compiled: bool) -> bool:
    """Return whether layers are faster on a tensor if batches get a round number of rows.

    On CPUs, the library oneDNN compiles a kernel for each number of rows, which takes time. Round
    numbers of rows need few kernels. GPUs and compiled layers do not need them.

    Args:
        x: The inputs of the layers.
        is_compiled: Whether torch.compile compiles the layers.
    """
    return x.device.type == "cpu" and not is_compiled


def has_slow_dropout(x: Tensor) -> bool:
    """Return whether torch's own dropout is slow for a tensor.

    On CPUs, torch draws one random number after the other on a single thread. A compiled model
    draws them in its own kernel.

    Args:
        x: The tensor whose elements are dropped.
    """
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def layer_norm_dtype(x: Tensor) -> torch.dtype:
    """Return the type to which a layer norm converts its input, so that it computes in float32.

    torch's kernel for CPUs computes in float32 by itself, whatever the type of the input.

    Args:
        x: The input of the layer norm.
    """
    return x.dtype if x.device.type == "cpu" else torch.float32


def padded_attention_dtype(query: Tensor) -> torch.dtype:
    """Return the type in which torch computes attention over padded sentences fastest.

    In bfloat16, torch's kernel for CPUs takes six times as long for a gradient as in float32.

    Args:
        query: The queries.
    """
    has_16_bits = query.dtype.itemsize == 2
    return torch.float32 if has_16_bits and query.device.type == "cpu" else query.dtype


def native_attention(key: Tensor, value: Tensor) -> ctypes.CDLL | None:
    """Return the compiled library whose C++ function computes attention in a decoding step.

    Args:
        key: The keys, (..., key_dim).
        value: The values, (..., value_dim).

    Returns:
        The library of native/search.cpp; None if torch must compute attention. The C++ code needs
        float32 on a CPU, and sizes of keys and values that are multiples of 8. Portable arithmetic
        excludes it, since its results differ in some bits between processors.
    """
    if IS_PORTABLE or key.device.type != "cpu" or key.dtype != torch.float32:
        return None
    if key.size(-1) % _NATIVE_VECTOR or value.size(-1) % _NATIVE_VECTOR:
        return None
    return native.library()


def native_continuations(log_probs: Tensor, count: int) -> ctypes.CDLL | None:
    """Return the compiled library whose C++ function finds the best continuations in a search.

    Args:
        log_probs: The log-probabilities of all continuations.
        count: The number of continuations to find for each sentence.

    Returns:
        The library of native/search.cpp; None if torch must find them. With portable arithmetic,
        torch finds them everywhere: if two continuations are equally good, C++ and torch may choose
        different ones.
    """
    if IS_PORTABLE or log_probs.device.type != "cpu" or count > _MAX_NATIVE_CONTINUATIONS:
        return None
    return native.library()


def native_cross_entropy(logits: Tensor) -> ctypes.CDLL | None:
    """Return the compiled library whose C++ function computes the cross-entropy of logits.

    Args:
        logits: The logits.

    Returns:
        The library of native/loss.cpp; None if torch must compute the loss. The C++ code needs
        float32 or bfloat16 on a CPU. Portable arithmetic excludes it, since its rounding depends on
        the processor.
    """
    is_supported_type = logits.dtype in (torch.float32, torch.bfloat16)
    if IS_PORTABLE or logits.device.type != "cpu" or not is_supported_type:
        return None
    return native.library()


def has_triton() -> bool:
    """Return whether Triton is installed and can compile kernels.

    For this it needs a C compiler and the header files of Python.
    """
    compilers = (os.environ.get("CC", "cc"), "gcc", "clang")
    header = Path(sysconfig.get_path("include"), "Python.h")
    return (
        find_spec("triton") is not None
        and any(which(compiler) for compiler in compilers)
        and header.exists()
    )


# Looked up once, outside of functions: torch.compile cannot trace a search of the file system.
_HAS_TRITON = has_triton()


def compiles_by_default(device: torch.device) -> bool:
    """Return whether to use torch.compile on a device: on GPUs that Triton supports.

    torch.compile generates its GPU code with Triton.

    Args:
        device: The device that trains.
    """
    return (
        device.type == "cuda"
        and has_triton()
        and torch.cuda.get_device_capability(device) >= _MIN_COMPILE_CAPABILITY
    )


def can_pack(model: Model, dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether a model can be trained on packed sentences, which have no padding.

    Packed sentences need torch's flash attention. This needs a GPU of the Ampere generation or
    newer and activations in 16 bits, and cannot drop attention weights. Rotary positions are not
    implemented for packed sentences.

    Args:
        model: The settings of the model's shape.
        dtype: The type of its activations.
        device: The device that trains.
    """
    return (
        device.type == "cuda"
        and find_spec(FLASH_ATTENTION) is not None
        and torch.cuda.get_device_capability(device) >= _FLASH_CAPABILITY
        and dtype in (torch.bfloat16, torch.float16)
        and model.d_k == model.d_v <= _FLASH_MAX_HEAD
        and model.d_k % _FLASH_HEAD_MULTIPLE == 0
        and not model.dropout.attention
        and model.positional_encoding != "rotary"
        and not model.needs_padded_batches
    )


def packed_kernel(device_type: str, head_size: int, max_length: int) -> PackedKernel:
    """Choose the kernel that computes attention over packed sentences, which have no padding.

    Args:
        device_type: The kind of device that computes, such as `cuda`.
        head_size: The number of dimensions of a head's keys.
        max_length: A number of tokens that no sentence exceeds.

    Returns:
        `triton`, our kernels for short sentences, if Triton is installed; `flash`, torch's flash
        attention; or, on CPUs, `by sentence`, a simple form for tests.
    """
    if device_type != "cuda":
        return "by sentence"
    if _HAS_TRITON and head_size in _TRITON_HEADS and max_length <= _TRITON_MAX_LENGTH:
        return "triton"
    return "flash"
