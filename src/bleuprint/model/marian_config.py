"""config.json of a Marian model of Hugging Face, such as OPUS-MT, and the settings it stands for.

The architecture is a part of what our settings can describe: post-norm, LayerNorm, sinusoidal
positions, biases in all layers, and a bias of the output.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Interval

from bleuprint.config.system import Dropout, Model
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.schema import check_record

CONFIG = "config.json"
# What to do about a file that is damaged or missing.
REMEDY = "Get an intact copy of its folder"
# Our names of the activations, by their names in config.json.
_ACTIVATIONS: Mapping[str, Literal["relu", "gelu", "silu"]] = {
    "swish": "silu",
    "silu": "silu",
    "relu": "relu",
    "gelu": "gelu",
}
# The names to write into config.json, by ours.
_MARIAN_ACTIVATIONS = {"silu": "swish", "relu": "relu", "gelu": "gelu"}
# Settings of other architectures, which Marian models of Hugging Face do not use, and the value
# that each must have if it is there.
_REQUIRED_VALUES: Mapping[str, Any] = {
    "model_type": "marian",
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}

# A larger size is a mistake in the file; no memory holds such a model.
_Size = Annotated[int, Interval(ge=1, le=10_000_000)]
_TokenId = Annotated[int, Ge(0)]


@dataclass(frozen=True)
class MarianConfig:
    """The values of config.json that describe a Marian model; all other values are ignored.

    The names are those of config.json, and the defaults those of the library transformers.

    Attributes:
        d_model: The size of embeddings and hidden states.
        encoder_layers: The number of encoder layers.
        decoder_layers: The number of decoder layers.
        encoder_attention_heads: The number of heads of each attention in the encoder.
        decoder_attention_heads: The number of heads of each attention in the decoder.
        encoder_ffn_dim: The inner size of the feed-forward networks of the encoder.
        decoder_ffn_dim: The inner size of the feed-forward networks of the decoder.
        vocab_size: The number of source tokens, or of all tokens if both languages share them.
        pad_token_id: The id of padding, from which decoding starts.
        eos_token_id: The id of the end of a sentence.
        decoder_start_token_id: The id of the token from which decoding starts.
        decoder_vocab_size: The number of target tokens; None if it is `vocab_size`.
        activation_function: The activation of feed-forward networks.
        scale_embedding: Whether embeddings are multiplied by d_model^0.5.
        max_position_embeddings: The most tokens of a sentence.
        share_encoder_decoder_embeddings: Whether source and target embeddings are one matrix.
        tie_word_embeddings: Whether target embeddings and output projection are one matrix.
        dropout: The dropout probability of embeddings and of what sublayers add.
        attention_dropout: The dropout probability of attention weights.
        activation_dropout: The dropout probability inside feed-forward networks.
    """

    d_model: _Size
    encoder_layers: _Size
    decoder_layers: _Size
    encoder_attention_heads: _Size
    decoder_attention_heads: _Size
    encoder_ffn_dim: _Size
    decoder_ffn_dim: _Size
    vocab_size: _Size
    pad_token_id: _TokenId
    eos_token_id: _TokenId
    decoder_start_token_id: _TokenId
    decoder_vocab_size: _Size | None = None
    activation_function: str = "gelu"
    scale_embedding: bool = False
    max_position_embeddings: _Size = 1024
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read config.json of a Marian model, and check that we can compute such a model.

        Args:
            folder: The folder of the model, in the format of Hugging Face.

        Raises:
            UserError: The file is missing or damaged, or describes another architecture.
        """
        path = folder / CONFIG
        content = read_json_object(path, ("model_type",), REMEDY)
        for name, required_value in _REQUIRED_VALUES.items():
            value = content.get(name, required_value)
            if value != required_value:
                raise _unsupported(path, name, value, [required_value])
        names = [field.name for field in fields(cls)]
        known_values = {name: content[name] for name in names if name in content}
        config = check_record(cls, known_values, path, REMEDY)
        config._check(path)
        return config

    def _check(self, path: Path) -> None:
        """Raise UserError if our settings cannot describe the model.

        Args:
            path: The path of config.json, for messages.
        """
        if self.activation_function not in _ACTIVATIONS:
            raise _unsupported(
                path, "activation_function", self.activation_function, list(_ACTIVATIONS)
            )
        # Our settings have one value for encoder and decoder.
        for name in ("attention_heads", "ffn_dim"):
            decoder_value = getattr(self, f"decoder_{name}")
            encoder_value = getattr(self, f"encoder_{name}")
            if decoder_value != encoder_value:
                raise _unsupported(path, f"decoder_{name}", decoder_value, [encoder_value])
        if self.decoder_start_token_id != self.pad_token_id:
            raise _unsupported(
                path, "decoder_start_token_id", self.decoder_start_token_id, [self.pad_token_id]
            )
        if self.share_encoder_decoder_embeddings and self.target_size != self.vocab_size:
            raise _unsupported(path, "decoder_vocab_size", self.target_size, [self.vocab_size])
        try:
            self.settings()
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    @property
    def target_size(self) -> int:
        """The number of target tokens."""
        return self.vocab_size if self.decoder_vocab_size is None else self.decoder_vocab_size

    def settings(self) -> Model:
        """Return the settings of a model of ours that computes the same.

        Raises:
            ValueError: Sizes do not fit each other.
        """
        return Model(
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            d_model=self.d_model,
            d_ff=self.encoder_ffn_dim,
            heads=self.encoder_attention_heads,
            scale_embeddings=self.scale_embedding,
            max_positions=self.max_position_embeddings,
            activation=_ACTIVATIONS[self.activation_function],
            dropout=Dropout(
                embedding=self.dropout,
                residual=self.dropout,
                attention=self.attention_dropout,
                activation=self.activation_dropout,
            ),
            output_bias=True,
            tie_embeddings=self._tied_embeddings(),
        )

    def _tied_embeddings(self) -> Literal["all", "decoder", "none"]:
        """Return which of the three matrices with a row for each token are one."""
        if not self.tie_word_embeddings:
            return "none"
        return "all" if self.share_encoder_decoder_embeddings else "decoder"


def check_expressible(settings: Model) -> None:
    """Check that the Marian format can describe a model.

    Args:
        settings: The settings of the model's shape.

    Raises:
        UserError: A setting has a value that the format cannot describe.
    """
    if not settings.is_built_in:
        raise UserError(
            "the Marian format cannot describe a model with own code. To translate with it: "
            "bleuprint translate"
        )
    head_size = settings.d_model // settings.heads
    supported_values: dict[str, list[Any]] = {
        "norm": ["post"],
        "normalization": ["layer"],
        "positional_encoding": ["sinusoidal"],
        "activation": sorted(_MARIAN_ACTIVATIONS),
        "d_k": [head_size],
        "d_v": [head_size],
    }
    for name, values in supported_values.items():
        value = getattr(settings, name)
        if value not in values:
            supported = ", ".join(map(str, values))
            raise UserError(
                f"the Marian format cannot describe model.{name} {value}. It supports: {supported}"
            )
    if settings.d_model % settings.heads:
        raise UserError(
            f"the Marian format cannot describe model.d_model {settings.d_model} with model.heads "
            f"{settings.heads}. d_model must be a multiple of heads"
        )


def marian_config(
    settings: Model, sizes: tuple[int, int], pad_id: int, eos_id: int
) -> dict[str, Any]:
    """Return the content of config.json for a model of ours.

    Args:
        settings: The settings of the model's shape, which `check_expressible` has accepted.
        sizes: The numbers of source and of target tokens in the Marian model.
        pad_id: The id of padding in the Marian model.
        eos_id: The id of EOS in the Marian model.
    """
    source_size, target_size = sizes
    config = dict(_REQUIRED_VALUES)
    values = {
        "architectures": ["MarianMTModel"],
        "d_model": settings.d_model,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "num_hidden_layers": settings.encoder_layers,
        "encoder_attention_heads": settings.heads,
        "decoder_attention_heads": settings.heads,
        "encoder_ffn_dim": settings.d_ff,
        "decoder_ffn_dim": settings.d_ff,
        "activation_function": _MARIAN_ACTIVATIONS[settings.activation],
        "scale_embedding": settings.scale_embeddings,
        "max_position_embeddings": settings.max_positions,
        "dropout": settings.dropout.residual,
        "attention_dropout": settings.dropout.attention,
        "activation_dropout": settings.dropout.activation,
        "encoder_layerdrop": settings.layer_drop,
        "decoder_layerdrop": settings.layer_drop,
        "share_encoder_decoder_embeddings": settings.tie_embeddings == "all",
        "tie_word_embeddings": settings.tie_embeddings != "none",
        "vocab_size": source_size,
        "decoder_vocab_size": target_size,
        "pad_token_id": pad_id,
        "decoder_start_token_id": pad_id,
        "eos_token_id": eos_id,
        "forced_eos_token_id": eos_id,
        "is_encoder_decoder": True,
    }
    config.update(values)
    return config


def _unsupported(path: Path, name: str, value: Any, supported_values: list[Any]) -> UserError:
    """Return the error for a value of config.json that our settings cannot describe.

    Args:
        path: The path of config.json.
        name: The name of the value.
        value: The value.
        supported_values: The values that our settings can describe.
    """
    supported = ", ".join(map(str, supported_values))
    return UserError(
        f"{path}: {name} is {value}, another architecture than OPUS-MT. It must be: {supported}"
    )
