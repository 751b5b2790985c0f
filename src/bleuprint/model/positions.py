"""How the model learns the positions of tokens: added to embeddings, or as rotations.

Dimensions in shapes: `batch` is the number of sentences, `rows` the number of packed tokens,
`model_dim` the setting d_model.
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
        weight: The learned encodings, (max_positions, model_dim); only for learned encodings.
    """

    def __init__(self, settings: Settings) -> None:
        """Create the encoding that `settings.positional_encoding` names."""
        super().__init__()
        self.name = settings.positional_encoding
        self.d_model = settings.d_model
        if self.name == "learned":
            self.weight = nn.Embedding(settings.max_positions, settings.d_model).weight

    def forward(self, embedded: Tensor, positions: range | Tensor) -> Tensor:
        """Add the encodings of positions to embeddings.

        Args:
            embedded: Embeddings, (batch, positions, model_dim) or, packed, (rows, model_dim).
            positions: The position of each column, as a range; or of each packed row,
                as a tensor (rows,).

        Returns:
            The sum, in the shape of `embedded`.
        """
        if self.name == "learned":
            return embedded + self._learned_encodings(positions)
        if self.name == "sinusoidal":
            if isinstance(positions, range):
                positions = torch.arange(positions.start, positions.stop, device=embedded.device)
            return embedded + sinusoidal_positions(positions, self.d_model)
        return embedded

    def _learned_encodings(self, positions: range | Tensor) -> Tensor:
        """Return the learned encoding of each position: (positions, model_dim)."""
        if isinstance(positions, range):
            # A slice is a view; a look-up would copy the rows.
            return self.weight[positions.start : positions.stop]
        return functional.embedding(positions, self.weight)


def sinusoidal_positions(positions: Tensor, d_model: int) -> Tensor:
    """Return the sinusoids of section 3.5: sines in even dimensions, cosines in odd ones.

    Args:
        positions: Positions from 0, (positions,).
        d_model: The number of dimensions, which is even.

    Returns:
        The encodings, (positions, model_dim), in float32.
    """
    even_dimensions = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float32)
    # 10000^(-2i / d_model), computed as a power of e.
    frequencies = torch.exp(even_dimensions * (-math.log(10000.0) / d_model))
    angles = positions[:, None].float() * frequencies
    # Stacked in a new last dimension and flattened, sines and cosines alternate.
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def rotate(x: Tensor, first_position: int) -> Tensor:
    """Rotate queries or keys by their positions (rotary encoding, Su et al. 2021).

    Dimensions 2i and 2i + 1 are the real and imaginary part of a complex number, which is
    multiplied by exp(j position 10000^(-2i / head_dim)).

    Args:
        x: Queries or keys, (..., positions, head_dim).
        first_position: The position of the first query or key.

    Returns:
        The rotated queries or keys, (..., positions, head_dim), in the type of `x`; computed in
        float32.
    """
    positions = torch.arange(first_position, first_position + x.size(-2), device=x.device)
    sinusoids = sinusoidal_positions(positions, x.size(-1))
    sines = sinusoids[:, 0::2]
    cosines = sinusoids[:, 1::2]
    precise = x.to(torch.promote_types(x.dtype, torch.float32))
    real = precise[..., 0::2]
    imaginary = precise[..., 1::2]
    rotated_real = real * cosines - imaginary * sines
    rotated_imaginary = real * sines + imaginary * cosines
    # Stacked in a new last dimension and flattened, real and imaginary parts alternate.
    rotated = torch.stack((rotated_real, rotated_imaginary), -1)
    return rotated.flatten(-2).to(x.dtype)
