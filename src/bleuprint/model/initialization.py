"""Initial weights of the Transformer."""

import math

import torch
from torch import nn

from bleuprint.config.system import Model as Settings


def initialize(model: nn.Module, settings: Settings) -> None:
    """Draw the weights as `settings.init` names; biases are 0, norms the identity."""
    scheme, d_model = settings.init, settings.d_model
    queries, values = settings.heads * settings.d_k, settings.heads * settings.d_v
    for name, parameter in model.named_parameters():
        in_layer = name.startswith(("encoder", "decoder"))
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 1:
            pass  # the gain of a norm, which is 1 already
        elif scheme != "xavier" and not in_layer:
            nn.init.normal_(parameter, std=d_model**-0.5)
        elif scheme == "small":
            nn.init.normal_(parameter, std=math.sqrt(2 / (5 * d_model)))
        elif name.endswith("attention.in_proj.weight"):
            # queries, keys and values are three matrices stored as one
            for part in torch.split(parameter.detach(), [queries, queries, values]):
                nn.init.xavier_uniform_(part)
        elif name.endswith("fc1.weight") and settings.activation == "swiglu":
            for part in parameter.detach().chunk(2):  # two matrices as well
                nn.init.xavier_uniform_(part)
        else:
            nn.init.xavier_uniform_(parameter)
