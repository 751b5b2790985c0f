"""Initial weights of the Transformer."""

import math

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings


def initialize(model: nn.Module, settings: Settings) -> None:
    """Draw the weights by the scheme `settings.init`; biases are 0, norms the identity.

    Weights are drawn in the order of `model.named_parameters()`: another order would give each of
    them other random numbers. docs/training.md describes the schemes.
    """
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 1:
            continue  # The gain of a norm, which is 1 already.
        elif settings.init != "xavier" and not _is_in_layer(name):
            nn.init.normal_(parameter, std=settings.d_model**-0.5)
        elif settings.init == "small":
            nn.init.normal_(parameter, std=math.sqrt(2 / (5 * settings.d_model)))
        else:
            for matrix in _separate_matrices(name, parameter, settings):
                nn.init.xavier_uniform_(matrix)


def _is_in_layer(name: str) -> bool:
    """Return whether a weight belongs to a layer, not to embeddings or the output projection."""
    return name.startswith(("encoder", "decoder"))


def _separate_matrices(name: str, parameter: Tensor, settings: Settings) -> tuple[Tensor, ...]:
    """Return the matrices of the paper that a parameter stores as one, as views of it.

    Xavier initialization depends on a matrix's size, so that each must be drawn by itself.
    """
    if name.endswith("attention.in_proj.weight"):
        query_size = settings.heads * settings.d_k
        value_size = settings.heads * settings.d_v
        return torch.split(parameter.detach(), [query_size, query_size, value_size])
    if name.endswith("fc1.weight") and settings.activation == "swiglu":
        return parameter.detach().chunk(2)  # The gate and the value.
    return (parameter,)
