"""How the model learns the positions of tokens: added to embeddings, or as rotations.

Dimensions in shapes: `batch` is the number of sentences, `rows` the number of packed tokens,
`d_model` the size of an embedding.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.config.system import Model as Settings


class PositionalEncoding(nn.Module):
    """The positional encoding that is added to embeddings (section 3.5).

    Rotary encodings are not added to embeddings: self-attention rotates its queries and keys
    (`rotate`). For them, and for models without positions, `forward` returns its input.

    Attributes:
        weight: The learned encodings, (max_positions, d_model); only for learned encodings.
    """

    def __init__(self, settings: Settings) -> None:
        """Create the encoding that the settings name: sinusoidal, learned, rotary or none."""
        super().__init__()
        self.name = settings.positional_encoding
        self.d_model = settings.d_model
        if self.name == "learned":
            self.weight = nn.Embedding(settings.max_positions, settings.d_model).weight

    def forward(self, embedded: Tensor, positions: range | Tensor) -> Tensor:
        """Add the encodings of positions to embeddings.

        With rotary encodings, nothing is added: attention rotates its queries and keys instead.

        Args:
            embedded: The embeddings of padded sentences, (sentences, length, d_model); or of
                sentences one after the other, without padding, (tokens, d_model).
            positions: The positions of the tokens: a range for padded sentences; a tensor (tokens,)
                without padding.

        Returns:
            The sum, in the shape of `embedded`.
        """
        if self.name == "learned":
            return embedded + self._learned_encodings(positions)
        if self.name == "sinusoidal":
            if isinstance(positions, range):
                positions = torch.arange(positions.start, positions.stop, device=embedded.device)
            return embedded + sinusoidal_positions(positions, self.d_model)
        return embedded  # Rotary or none.

    def _learned_encodings(self, positions: range | Tensor) -> Tensor:
        """Return the learned encodings of positions, (positions, d_model).

        Args:
            positions: A range or a tensor of positions, from 0.
        """
        if isinstance(positions, range):
            # A slice copies nothing, unlike a look-up of each position.
            return self.weight[positions.start : positions.stop]
        return functional.embedding(positions, self.weight)


def sinusoidal_positions(positions: Tensor, d_model: int) -> Tensor:
    """Return the sinusoids of section 3.5: sines in even dimensions, cosines in odd ones.

    Args:
        positions: Positions from 0, (positions,).
        d_model: The number of dimensions, which is even.

    Returns:
        The encodings, (positions, d_model), in float32.
    """
    even_dimensions = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float32)
    # 10000^(-2i / d_model), computed as a power of e.
    frequencies = torch.exp(even_dimensions * (-math.log(10000.0) / d_model))
    angles = positions[:, None].float() * frequencies
    # Stacking puts each sine next to its cosine; flattening makes them alternate.
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def rotate(x: Tensor, first_position: int) -> Tensor:
    """Rotate queries or keys by their positions (rotary encoding, Su et al. 2021).

    Dimensions 2i and 2i + 1 are the real and imaginary part of a complex number, which is rotated
    by an angle: the position times 10000^(-2i / key_dim). The product of a rotated query and a
    rotated key depends on the distance between their positions, not on the positions themselves.

    Args:
        x: The queries or keys of successive positions, (..., positions, key_dim).
        first_position: The position of the first of them.

    Returns:
        The rotated queries or keys, in the shape and type of `x`; computed in float32.
    """
    positions = torch.arange(first_position, first_position + x.size(-2), device=x.device)
    # The sinusoidal encoding contains the sines and cosines of the same angles, alternately.
    sinusoids = sinusoidal_positions(positions, x.size(-1))
    sines = sinusoids[:, 0::2]
    cosines = sinusoids[:, 1::2]
    precise = x.to(torch.promote_types(x.dtype, torch.float32))
    real = precise[..., 0::2]
    imaginary = precise[..., 1::2]
    # (real + i imaginary) * (cosine + i sine)
    rotated_real = real * cosines - imaginary * sines
    rotated_imaginary = real * sines + imaginary * cosines
    # Stacking puts each real part next to its imaginary part; flattening makes them alternate.
    rotated = torch.stack((rotated_real, rotated_imaginary), -1)
    return rotated.flatten(-2).to(x.dtype)
