"""The precision of products: float32, or 16 bits with copies of the weights."""

import os

import torch
from torch import Tensor, nn

from bleuprint.model.linear import Linear
from bleuprint.runtime import environment, processor
from bleuprint.runtime.errors import UserError

# The least compute capability of GPUs that compute in TF32: the Ampere generation.
_TF32_CAPABILITY = 8


def check_precision(setting: str, precision: str, device: torch.device) -> None:
    """Check that a GPU or CPU has hardware for a precision, which would be slow without it.

    Args:
        setting: The setting that the message names, such as `decode.precision`.
        precision: The value of the setting, such as `bfloat16`.
        device: The device that computes.

    Raises:
        UserError: The device has no such hardware, and the environment variable BLEUPRINT_EMULATE=1
            is not set.
    """
    if _has_hardware(precision, device) or environment.is_emulating():
        return
    reason = _reason_and_advice(precision, device)
    visible_gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    if device.type != "cuda" and visible_gpus is not None:
        # The user may not know that the machine has a GPU that this variable hides.
        reason += f". CUDA_VISIBLE_DEVICES is {visible_gpus!r}, which hides GPUs"
    raise UserError(f"{setting} {precision}: {reason}. To use it anyway: BLEUPRINT_EMULATE=1")


def _has_hardware(precision: str, device: torch.device) -> bool:
    """Return whether a GPU or CPU has hardware for a precision.

    Args:
        precision: `float32`, `tf32`, `bfloat16` or `float16`.
        device: The device.
    """
    is_gpu = device.type == "cuda"
    if precision == "bfloat16":
        if is_gpu:
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))
        return processor.THIS.has_bfloat16
    if precision == "tf32":
        return is_gpu and torch.cuda.get_device_properties(device).major >= _TF32_CAPABILITY
    # Left are float32, which every device has, and float16, which every GPU has.
    return is_gpu or precision == "float32"


def _reason_and_advice(precision: str, device: torch.device) -> str:
    """Say in two sentences why a device does not suit a precision, and what to set.

    Args:
        precision: The precision that the device has no hardware for.
        device: The device.
    """
    if device.type == "cuda":
        # Missing is either bfloat16 or TF32, since every GPU has float16 and float32.
        alternative = "float16 for training, float32 for decoding"
        if precision == "tf32":
            alternative = "float32"
        return f"{torch.cuda.get_device_name(device)} has no units for it. Set {alternative}"
    if precision == "bfloat16":
        return (
            "this CPU has no instructions for it (AVX512_BF16 or AMX). Set float32, which is faster"
        )
    return "this precision is for GPUs. On CPUs set float32, which is faster"


def use_copies(model: nn.Module, weights: Tensor, copy: Tensor) -> None:
    """Make linear layers multiply inputs in 16 bits by a copy of their weights in 16 bits.

    In training, the optimizer updates the exact weights and then the copy, which makes products
    faster.

    Args:
        model: The model, whose parameters are parts of `weights`. Its layers are changed.
        weights: All weights of the model as one vector, in float32.
        copy: A copy of this vector in 16 bits.
    """

    def view_of_copy(parameter: Tensor) -> Tensor:
        """Return the part of the copy that belongs to a parameter, in the parameter's shape."""
        # A parameter begins at the same index in the copy as in the vector of all weights.
        offset = parameter.storage_offset() - weights.storage_offset()
        return copy[offset : offset + parameter.numel()].view_as(parameter)

    for module in model.modules():
        if isinstance(module, Linear):
            bias = None if module.bias is None else view_of_copy(module.bias)
            module.copies = (view_of_copy(module.weight), bias)


def round_to_bfloat16(model: nn.Module) -> None:
    """Make linear layers multiply by weights in bfloat16, for inference.

    The rounded weights are copies, and the parameters stay in float32. So embeddings stay exact,
    even if they share their weights with the output projection, which is a linear layer.

    Args:
        model: The model, whose layers are changed.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            bias = None if module.bias is None else module.bias.detach().bfloat16()
            module.copies = (module.weight.detach().bfloat16(), bias)
