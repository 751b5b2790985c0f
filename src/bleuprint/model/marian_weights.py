"""The weights of Marian models of Hugging Face, such as OPUS-MT, as weights of ours and back.

Both architectures compute the same function, but store its weights differently:

- Marian's sinusoids have all sines in the first half of the dimensions and all cosines in the
  second; ours alternate (sine, cosine, sine, ...). The other weights decide what a dimension
  means. So all weights get their dimensions of hidden states in the other order.
- Marian has a matrix each for queries, keys and values; ours are joined to one.
- Marian starts decoding from padding. Ours starts from BOS, which has the same embedding here.
- The tokens have other ids, so the rows of embeddings are in another order.

Dimensions in shapes: `hidden` is d_model.
"""

import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from bleuprint.config.system import Model
from bleuprint.model.marian_config import REMEDY, MarianConfig
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_weights, named_weights
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile, name_in_errors
from bleuprint.runtime.regular_files import check_regular_file

WEIGHTS = "model.safetensors"
# The file of weights of older versions of the library transformers, which pickles tensors.
PICKLED_WEIGHTS = "pytorch_model.bin"
# How a placeholder of Git LFS begins, an extension of Git for large files.
_GIT_LFS_MARK = b"version https://git-lfs."
# The names of the matrices with a row for each token.
_SHARED = "model.shared.weight"
_ENCODER_EMBEDDING = "model.encoder.embed_tokens.weight"
_DECODER_EMBEDDING = "model.decoder.embed_tokens.weight"
_PROJECTION = "lm_head.weight"
_PROJECTION_BIAS = "final_logits_bias"
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
# How much a sinusoid in a file of 16-bit weights may differ from the exact one.
_POSITION_TOLERANCE = 2e-3


@dataclass(frozen=True)
class _Part:
    """A linear layer or norm of our model, and what a Marian model has in its place.

    Attributes:
        name: The name of our layer.
        marian_names: The names of Marian's layers. There are several if ours joins them: the
            outputs of ours are those of the first, then those of the second, and so on.
        hidden_axis: The dimension of the weight that has the size of hidden states: 0 if these are
            the outputs of the layer, 1 if they are its inputs.
    """

    name: str
    marian_names: tuple[str, ...]
    hidden_axis: int


def _parts(settings: Model) -> list[_Part]:
    """Return all layers of a model, apart from embeddings and the projection to the vocabulary."""
    parts = []
    for number in range(settings.encoder_layers):
        name = f"encoder.{number}"
        marian_name = f"model.encoder.layers.{number}"
        parts += _attention_parts(f"{name}.self_attention", f"{marian_name}.self_attn")
        parts += _feed_forward_parts(name, marian_name)
    for number in range(settings.decoder_layers):
        name = f"decoder.{number}"
        marian_name = f"model.decoder.layers.{number}"
        parts += _attention_parts(f"{name}.self_attention", f"{marian_name}.self_attn")
        parts += _attention_parts(f"{name}.cross_attention", f"{marian_name}.encoder_attn")
        parts += _feed_forward_parts(name, marian_name)
    return parts


def _attention_parts(name: str, marian_name: str) -> list[_Part]:
    """Return the layers of an attention, and of the norm after it, with their names in both models.

    Marian has a layer each for queries, keys and values. In ours, one layer computes all three.

    Args:
        name: The name of our attention, such as `encoder.0.self_attention`.
        marian_name: Its name in Marian's model, such as `model.encoder.layers.0.self_attn`.
    """
    queries_keys_values = tuple(f"{marian_name}.{kind}_proj" for kind in "qkv")
    return [
        _Part(f"{name}.in_proj", queries_keys_values, hidden_axis=1),
        _Part(f"{name}.out_proj", (f"{marian_name}.out_proj",), hidden_axis=0),
        _Part(f"{name}_residual.norm", (f"{marian_name}_layer_norm",), hidden_axis=0),
    ]


def _feed_forward_parts(name: str, marian_name: str) -> list[_Part]:
    """Return the layers of a feed-forward network, and the norm after it.

    Args:
        name: The name of our encoder or decoder layer.
        marian_name: The name of Marian's encoder or decoder layer.
    """
    return [
        _Part(f"{name}.feed_forward.fc1", (f"{marian_name}.fc1",), hidden_axis=1),
        _Part(f"{name}.feed_forward.fc2", (f"{marian_name}.fc2",), hidden_axis=0),
        _Part(f"{name}.feed_forward_residual.norm", (f"{marian_name}.final_layer_norm",), 0),
    ]


def _alternating_dimensions(d_model: int) -> Tensor:
    """Return for each dimension of our hidden states its number in those of Marian, (hidden,).

    For a d_model of 6, they are 0, 3, 1, 4, 2, 5: sine, cosine, sine, ...
    """
    return torch.arange(d_model).view(2, -1).t().flatten()


def find_weights(folder: Path) -> Path:
    """Find the file of weights in the folder of a Marian model.

    Raises:
        UserError: The folder contains neither model.safetensors nor pytorch_model.bin.
    """
    for name in (WEIGHTS, PICKLED_WEIGHTS):
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{folder} must contain {WEIGHTS} or {PICKLED_WEIGHTS}. {REMEDY}")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors in a file of weights; a pickled file is read without running its code.

    Args:
        path: A file model.safetensors or pytorch_model.bin.

    Raises:
        UserError: The file is damaged, or contains something else than tensors.
    """
    with name_in_errors(path):
        check_regular_file(path)
        _check_downloaded(path)
    content = _load_file(path)
    is_valid = isinstance(content, dict)
    if is_valid:
        is_valid = all(isinstance(tensor, Tensor) for tensor in content.values())
    if not is_valid:
        raise DamagedFile(path, "its content is not a dictionary of tensors", REMEDY)
    return dict(content)


def _check_downloaded(path: Path) -> None:
    """Raise UserError if a file is only a placeholder, which Git writes without Git LFS.

    Large files of Hugging Face are in Git LFS, an extension of Git, which may not be installed.

    Args:
        path: A file of weights.
    """
    with path.open("rb") as file:
        is_placeholder = file.read(len(_GIT_LFS_MARK)) == _GIT_LFS_MARK
    if is_placeholder:
        raise UserError(
            f"{path}: a placeholder of Git LFS, not the weights. Download the large files of its "
            f"folder: git -C {shlex.quote(str(path.parent))} lfs pull"
        )


def _load_file(path: Path) -> Any:
    """Return the content of a file of weights; a pickled file is read without running its code.

    Args:
        path: A file model.safetensors or pytorch_model.bin.

    Raises:
        DamagedFile: The library cannot read the file.
        OSError: The operating system cannot read it.
    """
    try:
        with name_in_errors(path):
            if path.suffix == ".safetensors":
                return load_file(path)
            with warnings.catch_warnings():
                # torch warns of files that Python's newer pickle protocols have written, as
                # transformers writes them. It reads them all the same, or fails.
                warnings.filterwarnings("ignore", message="Detected pickle protocol")
                return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise  # A problem of the machine, which is reported elsewhere.
    except Exception:  # For a damaged file, torch raises errors of a dozen classes.
        # Its messages are not shown: they advise to run the code that a pickled file contains.
        raise DamagedFile(path, "it cannot be read as tensors", REMEDY) from None


class _MarianTensors:
    """The tensors of a Marian model, which are taken out one by one, with checks."""

    def __init__(self, path: Path, tensors: Mapping[str, Tensor]) -> None:
        """Remember the tensors and their file, for messages."""
        self._path = path
        self._remaining = dict(tensors)

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """Return a tensor in float32.

        Args:
            name: The name of the tensor.
            shape: The shape that it must have.

        Raises:
            UserError: There is no such tensor, or it has another shape.
        """
        if name not in self._remaining:
            raise UserError(f"{self._path}: tensor {name} is missing. {REMEDY}")
        tensor = self._remaining.pop(name)
        if list(tensor.shape) != list(shape):
            raise UserError(
                f"{self._path}: tensor {name} has the shape {list(tensor.shape)}, but {list(shape)}"
                " follows from config.json. Get both files from the same model"
            )
        return tensor.float()

    def take_shared(self, names: Sequence[str], shape: Sequence[int]) -> Tensor:
        """Return a tensor that a file may contain under several names, or under one of them.

        Args:
            names: The names.
            shape: The shape that it must have.

        Raises:
            UserError: There is no such tensor, it has another shape, or the file contains different
                tensors under these names.
        """
        present_names = [name for name in names if name in self._remaining]
        # Without any, `take` reports the first name as missing.
        first_name, *other_names = present_names or names[:1]
        tensor = self.take(first_name, shape)
        for name in other_names:
            if not torch.equal(self.take(name, shape), tensor):
                raise UserError(
                    f"{self._path}: tensors {first_name} and {name} differ, but config.json says "
                    "that they are shared. Get both files from the same model"
                )
        return tensor

    def take_bias(self, size: int) -> Tensor:
        """Return the bias of the output, (size,); zeros if the file contains none."""
        if _PROJECTION_BIAS not in self._remaining:
            return torch.zeros(size)
        return self.take(_PROJECTION_BIAS, (1, size))[0]

    def check_positions(self, settings: Model, dimensions: Tensor) -> None:
        """Check the positional encodings, which a file may contain although they are computed.

        Args:
            settings: The settings of the model.
            dimensions: For each of our dimensions its number in the Marian model.

        Raises:
            UserError: The encodings are not the sinusoids.
        """
        positions = torch.arange(settings.max_positions)
        expected = sinusoidal_positions(positions, settings.d_model)
        for name in _POSITIONS:
            if name not in self._remaining:
                continue
            encodings = self.take(name, expected.shape)[:, dimensions]
            if not torch.allclose(encodings, expected, rtol=0, atol=_POSITION_TOLERANCE):
                raise UserError(
                    f"{self._path}: tensor {name} does not contain the sinusoids of OPUS-MT. "
                    "Models with other positional encodings cannot be imported"
                )

    def check_all_taken(self) -> None:
        """Raise UserError if a tensor remains, which belongs to another architecture."""
        for name in self._remaining:
            raise UserError(
                f"{self._path}: tensor {name} does not belong to the architecture of OPUS-MT. Only "
                "models of this architecture can be imported"
            )


def model_of_marian(
    config: MarianConfig, path: Path, ids: tuple[Sequence[int], Sequence[int]]
) -> Transformer:
    """Return the model of ours that computes what a Marian model computes.

    Args:
        config: The shape of the Marian model.
        path: Its file of weights.
        ids: The ids of the source and of the target tokens in the Marian model, in the order of
            their ids in ours.

    Returns:
        The model in evaluation mode.

    Raises:
        UserError: The file is damaged, or contains another architecture than `config` describes.
    """
    settings = config.settings()
    source_ids, target_ids = ids
    model = Transformer(settings, len(source_ids), len(target_ids))
    shapes = {name: weight.shape for name, weight in named_weights(model).items()}
    dimensions = _alternating_dimensions(settings.d_model)
    tensors = _MarianTensors(path, read_tensors(path))
    weights = {}
    for part in _parts(settings):
        for kind in ("weight", "bias"):
            name = f"{part.name}.{kind}"
            marian_names = [f"{marian_name}.{kind}" for marian_name in part.marian_names]
            # A joined layer has as many outputs as its parts together.
            part_shape = list(shapes[name])
            part_shape[0] //= len(marian_names)
            joined = torch.cat([tensors.take(each, part_shape) for each in marian_names])
            axis = _hidden_axis(part, kind)
            weights[name] = joined if axis is None else joined.index_select(axis, dimensions)
    weights.update(_token_weights(config, tensors, ids, dimensions))
    tensors.check_positions(settings, dimensions)
    tensors.check_all_taken()
    expected_weights = {name: weights[name] for name in shapes}
    with torch.no_grad():
        load_weights(model, expected_weights)
    return model.eval()


def _hidden_axis(part: _Part, kind: str) -> int | None:
    """Return the dimension of a weight or bias that has the size of hidden states; None if none.

    Args:
        part: The layer.
        kind: `weight` or `bias`. A bias has a number for each output of its layer.
    """
    if kind == "bias" and part.hidden_axis != 0:
        return None
    return part.hidden_axis


def _token_weights(
    config: MarianConfig,
    tensors: _MarianTensors,
    ids: tuple[Sequence[int], Sequence[int]],
    dimensions: Tensor,
) -> dict[str, Tensor]:
    """Return the embeddings, and the weight and bias of the projection, with their names in ours.

    Args:
        config: The shape of the Marian model.
        tensors: Its tensors.
        ids: The ids of the source and of the target tokens in the Marian model, in the order of
            their ids in ours.
        dimensions: For each of our dimensions its number in the Marian model.
    """
    source_ids, target_ids = ids
    source_names = [_ENCODER_EMBEDDING]
    target_names = [_DECODER_EMBEDDING]
    if config.tie_word_embeddings:
        target_names.append(_PROJECTION)
    source_shape = (config.vocab_size, config.d_model)
    target_shape = (config.target_size, config.d_model)
    if config.share_encoder_decoder_embeddings:
        target = tensors.take_shared([_SHARED, *source_names, *target_names], target_shape)
        source = target
    else:
        source = tensors.take_shared(source_names, source_shape)
        target = tensors.take_shared(target_names, target_shape)
    projection = target
    if not config.tie_word_embeddings:
        projection = tensors.take(_PROJECTION, target_shape)
    bias = tensors.take_bias(config.target_size)
    source_rows = torch.tensor(source_ids)
    target_rows = torch.tensor(target_ids)
    return {
        "source_embedding.weight": source[source_rows][:, dimensions],
        "target_embedding.weight": target[target_rows][:, dimensions],
        "projection.weight": projection[target_rows][:, dimensions],
        "projection.bias": bias[target_rows],
    }


def marian_tensors(
    model: Transformer, ids: tuple[Sequence[int], Sequence[int]]
) -> dict[str, Tensor]:
    """Return the weights of our model as tensors of the Marian format, by their names.

    Args:
        model: The model, whose settings `check_expressible` has accepted.
        ids: The ids of the source and of the target tokens in our model, in the order of their ids
            in the Marian model.

    Returns:
        The tensors; a matrix that is used several times occurs once.
    """
    settings = model.settings
    # The inverse permutation: for each dimension of the Marian model its number in ours.
    dimensions = _alternating_dimensions(settings.d_model).argsort()
    state = model.state_dict()
    tensors = {}
    for part in _parts(settings):
        for kind in ("weight", "bias"):
            tensor = _part_tensor(state, part, kind)
            axis = _hidden_axis(part, kind)
            if axis is not None:
                tensor = tensor.index_select(axis, dimensions)
            chunks = list(tensor.chunk(len(part.marian_names)))
            is_joined = len(chunks) > 1
            if is_joined and not settings.scale_attention:
                # Marian always divides products of queries and keys by sqrt(d_k).
                chunks[0] = chunks[0] * math.sqrt(settings.d_k)
            for name, chunk in zip(part.marian_names, chunks, strict=True):
                tensors[f"{name}.{kind}"] = chunk
    tensors.update(_marian_token_tensors(settings, state, ids, dimensions))
    return {name: tensor.float().contiguous() for name, tensor in tensors.items()}


def _part_tensor(state: Mapping[str, Tensor], part: _Part, kind: str) -> Tensor:
    """Return the weight or bias of a layer of ours; zeros for a layer without bias.

    Args:
        state: All weights of the model.
        part: The layer.
        kind: `weight` or `bias`.
    """
    name = f"{part.name}.{kind}"
    if name in state:
        return state[name]
    return torch.zeros(len(state[f"{part.name}.weight"]))


def _marian_token_tensors(
    settings: Model,
    state: Mapping[str, Tensor],
    ids: tuple[Sequence[int], Sequence[int]],
    dimensions: Tensor,
) -> dict[str, Tensor]:
    """Return the embeddings and the projection of our model in the Marian format.

    Args:
        settings: The settings of the model.
        state: All weights of the model.
        ids: The ids of the source and of the target tokens in our model, in the order of their ids
            in the Marian model.
        dimensions: For each dimension of the Marian model its number in ours.
    """
    source_ids, target_ids = ids
    source = state["source_embedding.weight"][list(source_ids)][:, dimensions]
    target = state["target_embedding.weight"][list(target_ids)][:, dimensions]
    projection = state["projection.weight"][list(target_ids)][:, dimensions]
    bias = state.get("projection.bias", torch.zeros(len(state["projection.weight"])))
    tensors = {_PROJECTION_BIAS: bias[list(target_ids)][None]}
    if settings.tie_embeddings == "all":
        tensors[_SHARED] = source
        return tensors
    tensors[_ENCODER_EMBEDDING] = source
    tensors[_DECODER_EMBEDDING] = target
    if settings.tie_embeddings == "none":
        tensors[_PROJECTION] = projection
    return tensors
