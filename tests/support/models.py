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
# Two sentences of 5 and 3 tokens, with EOS.
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
# What the decoder reads: BOS and the tokens before the one that it predicts.
TARGET = torch.tensor([[1, 6, 7, 5], [1, 9, PAD, PAD]])


def model_of(source=11, target=11, **changes):
    """Return a new model in double precision.

    Args:
        source: The size of the source vocabulary.
        target: The size of the target vocabulary.
        changes: Settings that differ from SHAPE.
    """
    torch.manual_seed(3)
    return Transformer(dataclasses.replace(SHAPE, **changes), source, target).double().eval()


def trained_model_of(source=11, target=11, **changes):
    """Return a model as `model_of` does, but with all weights changed, as after a training.

    A new model has biases of 0 and norm weights of 1, which would hide errors in their use.
    """
    model = model_of(source, target, **changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def input_of(layer, run):
    """Return the first input of a layer while a function runs."""
    first_inputs: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: first_inputs.append(inputs[0]))
    run()
    hook.remove()
    return first_inputs[0]
