"""Small models for tests, and inputs for them."""

import dataclasses

import torch
from torch import Tensor

import systems
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.transformer import Transformer

SHAPE = systems.model(
    encoder_layers=2, decoder_layers=3, d_model=16, d_ff=24, d_k=4, d_v=4, tie_embeddings="none"
)
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
WORDS = 2  # PAD and BOS come before them
TARGET = torch.tensor([[1, 6, 7, 5], [1, 9, PAD, PAD]])


def model_of(source=11, target=11, **changes):
    torch.manual_seed(3)
    return Transformer(dataclasses.replace(SHAPE, **changes), source, target).double().eval()


def trained_model_of(source=11, target=11, **changes):
    """As after training: no bias is 0, no norm plain."""
    model = model_of(source, target, **changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def input_of(layer, run):
    """What `layer` is given when `run` runs."""
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    run()
    hook.remove()
    return seen[0]
