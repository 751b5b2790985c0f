"""Initial weights of the Transformer."""

import math

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings


def initialize(model: nn.Module, settings: Settings) -> None:
    """Give a model random initial weights, by the scheme that the settings name.

    A module with the attribute `initializes_itself` keeps its weights. Biases are 0 in all schemes.
    The other weights are drawn:

    - `xavier`: all weights from Xavier's uniform distribution
    - `scaled`: embeddings and output projection from a normal distribution, the rest as in `xavier`
    - `small`: all weights from normal distributions, those of the layers from a narrower one

    Args:
        model: The model, which is changed.
        settings: The settings of the model, with the scheme `init`.
    """
    # The order of the parameters decides which random numbers each gets, so it must stay.
    initialized_by_modules = _weights_initialized_by_modules(model)
    for name, parameter in model.named_parameters():
        if id(parameter) in initialized_by_modules:
            continue
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 1:
            continue  # The gain of a norm, which PyTorch has set to 1.
        elif settings.init != "xavier" and not _is_in_layer(name):
            # Embeddings or the output projection.
            nn.init.normal_(parameter, std=settings.d_model**-0.5)
        elif settings.init == "small":
            nn.init.normal_(parameter, std=math.sqrt(2 / (5 * settings.d_model)))
        else:
            for matrix in _separate_matrices(name, parameter, settings):
                nn.init.xavier_uniform_(matrix)


def _weights_initialized_by_modules(model: nn.Module) -> set[int]:
    """Return the identities of the parameters that their modules have initialized themselves."""
    identities = set[int]()
    for module in model.modules():
        if getattr(module, "initializes_itself", False):
            identities.update(id(parameter) for parameter in module.parameters())
    return identities


def _is_in_layer(name: str) -> bool:
    """Return whether a weight belongs to the layers, and not to embeddings or output projection."""
    return name.startswith(("encoder", "decoder"))


def _separate_matrices(name: str, parameter: Tensor, settings: Settings) -> tuple[Tensor, ...]:
    """Return the weight matrices of which a parameter consists, to initialize each by itself.

    For speed, some parameters combine several matrices: the projections of queries, keys and
    values, or the two halves of a gated feed-forward network. The range of Xavier initialization
    depends on the size of a matrix: if they were drawn together, the weights would be too small.

    Args:
        name: The name of the parameter.
        parameter: The parameter.
        settings: The settings of the model.

    Returns:
        Views of the parameter, whose changes change it; or the parameter itself, if it is one
        matrix.
    """
    if name.endswith("attention.in_proj.weight"):
        query_size = settings.heads * settings.d_k
        value_size = settings.heads * settings.d_v
        return torch.split(parameter.detach(), [query_size, query_size, value_size])
    if name.endswith("fc1.weight") and settings.activation == "swiglu":
        return parameter.detach().chunk(2)  # The matrices of the gate and of the value.
    return (parameter,)
