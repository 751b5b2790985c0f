"""What a position adds to an embedding, or turns queries and keys by."""

import math

import torch
from torch import Tensor


def sinusoidal_positions(positions: Tensor, d_model: int) -> Tensor:
    """Sinusoids (T, D) of section 3.5 at positions (T,): sin in even, cos in odd dimensions."""
    dimension = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float32)
    angle = positions[:, None].float() * torch.exp(dimension * (-math.log(10000.0) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def rotate(x: Tensor, start: int) -> Tensor:
    """Rotary encoding (Su et al. 2021) of queries or keys (..., T, K) at positions from `start`.

    Dimensions 2i and 2i + 1 are a complex number, which is multiplied by
    exp(j position 10000^(-2i / K)).
    """
    positions = torch.arange(start, start + x.size(-2), device=x.device)
    sinusoids = sinusoidal_positions(positions, x.size(-1))
    sin, cos = sinusoids[:, 0::2], sinusoids[:, 1::2]
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    real, imaginary = wide[..., 0::2], wide[..., 1::2]
    turned = torch.stack((real * cos - imaginary * sin, real * sin + imaginary * cos), -1)
    return turned.flatten(-2).to(x.dtype)
