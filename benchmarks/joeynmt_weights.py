"""The weights of our models under the names that JoeyNMT's models have for them.

`joeynmt_weights` returns them; benchmarks/decode.py passes them to JoeyNMT.
"""

from typing import Any

import torch


def joeynmt_weights(model: Any) -> dict[str, Any]:
    """Return our weights under the names that they have in JoeyNMT's state dict.

    Args:
        model: Our model.
    """
    modules = {
        "src_embed.lut": model.target_embedding,
        "trg_embed.lut": model.target_embedding,
        "decoder.output_layer": model.projection,
    }
    weights: dict[str, Any] = {}
    for index, layer in enumerate(model.encoder):
        prefix = f"encoder.layers.{index}"
        weights |= joeynmt_attention(f"{prefix}.src_src_att", layer.self_attention)
        modules |= {
            f"{prefix}.src_src_att.output_layer": layer.self_attention.out_proj,
            f"{prefix}.layer_norm": layer.self_attention_residual.norm,
        }
        modules |= joeynmt_feed_forward(prefix, layer)
    for index, layer in enumerate(model.decoder):
        prefix = f"decoder.layers.{index}"
        weights |= joeynmt_attention(f"{prefix}.trg_trg_att", layer.self_attention)
        weights |= joeynmt_attention(f"{prefix}.src_trg_att", layer.cross_attention)
        modules |= {
            f"{prefix}.trg_trg_att.output_layer": layer.self_attention.out_proj,
            f"{prefix}.src_trg_att.output_layer": layer.cross_attention.out_proj,
            f"{prefix}.x_layer_norm": layer.self_attention_residual.norm,
            f"{prefix}.dec_layer_norm": layer.cross_attention_residual.norm,
        }
        modules |= joeynmt_feed_forward(prefix, layer)
    for module_name, module in modules.items():
        for weight_name, weight in module.state_dict().items():
            weights[f"{module_name}.{weight_name}"] = weight
    return weights


def joeynmt_attention(prefix: str, attention: Any) -> dict[str, Any]:
    """Split our joint projection of queries, keys and values into JoeyNMT's three projections.

    Args:
        prefix: The name of the attention in JoeyNMT's state dict.
        attention: Our attention, whose `in_proj` computes all three at once.
    """
    split_weights = torch.split(attention.in_proj.weight, attention.qkv_sizes)
    split_biases = torch.split(attention.in_proj.bias, attention.qkv_sizes)
    weights = {}
    for letter, weight, bias in zip("qkv", split_weights, split_biases, strict=True):
        weights[f"{prefix}.{letter}_layer.weight"] = weight.clone()
        weights[f"{prefix}.{letter}_layer.bias"] = bias
    return weights


def joeynmt_feed_forward(prefix: str, layer: Any) -> dict[str, Any]:
    """Return the modules of a layer's feed-forward block by JoeyNMT's names.

    Args:
        prefix: The name of the layer in JoeyNMT's state dict.
        layer: Our layer.
    """
    return {
        f"{prefix}.feed_forward.pwff_layer.0": layer.feed_forward.fc1,
        f"{prefix}.feed_forward.pwff_layer.3": layer.feed_forward.fc2,
        f"{prefix}.feed_forward.layer_norm": layer.feed_forward_residual.norm,
    }
