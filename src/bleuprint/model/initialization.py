"""Initial weights of the Transformer."""

import math

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings


def initialize(model: nn.Module, settings: Settings) -> None:
    """Give a model random initial weights, by the scheme that the settings name.

    Biases are 0. With `xavier` all weights come from Xavier's uniform distribution. With `scaled`
    and `small`, embeddings and the output projection come from a normal distribution; with `small`,
    the weights of the layers do, too (docs/training.md).

    Args:
        model: The model, which is changed.
        settings: The settings of the model, with the scheme `init`.
    """
    # In this order: in another one, each weight would get other random numbers.
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
    """Return whether a weight belongs to the layers, and not to embeddings or output projection."""
    return name.startswith(("encoder", "decoder"))


def _separate_matrices(name: str, parameter: Tensor, settings: Settings) -> tuple[Tensor, ...]:
    """Return the weight matrices that are stored side by side in one parameter.

    The range of Xavier initialization depends on the size of a matrix, so that each of them must be
    drawn by itself.

    Args:
        name: The name of the parameter.
        parameter: The parameter. It may contain the projections of queries, keys and values; or the
            two halves of a gated feed-forward network.
        settings: The settings of the model.

    Returns:
        Views of the parameter; or the parameter itself, if it is one matrix.
    """
    if name.endswith("attention.in_proj.weight"):
        query_size = settings.heads * settings.d_k
        value_size = settings.heads * settings.d_v
        return torch.split(parameter.detach(), [query_size, query_size, value_size])
    if name.endswith("fc1.weight") and settings.activation == "swiglu":
        return parameter.detach().chunk(2)  # The gate and the value.
    return (parameter,)
