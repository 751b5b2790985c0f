"""Attention maps of sentences and their translations, and attention.json, which stores them."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bleuprint.dataset.binarized import BinaryCorpus, Lengths
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.runtime.file_errors import DamagedFile, report_as_damage
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import Count, read_record

if TYPE_CHECKING:
    from torch import Tensor

    from bleuprint.model.transformer import Transformer

ATTENTION_FILE = "attention.json"

Weights = npt.NDArray[np.float32]

# The kinds of attention of section 3.2.3: decoder to source, encoder and decoder self-attention.
ATTENTION_KINDS = ("cross", "encoder", "decoder")

# How many sentences of a test set are stored.
_STORED_SENTENCES = 2
# Their preferred lengths and their maximum length in source tokens, without EOS: long enough to be
# a sentence, short enough for a table.
_MIN_PREFERRED_TOKENS = 6
_MAX_PREFERRED_TOKENS = 14
_MAX_TOKENS = 40
# A weight from 0 to 1 is stored as a byte from 0 to this.
_MAX_LEVEL = 255


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of one kind, for one sentence.

    In cross-attention, rows are the tokens of the translation and columns the tokens of the source,
    both with EOS. A row shows where the decoder looked when it predicted the row's token. In the
    encoder's self-attention, rows and columns are the source tokens. In the decoder's, columns are
    the decoder's input tokens, which begin with BOS.

    Attributes:
        rows: The tokens that attend.
        columns: The tokens that are attended to.
        weights: The weight of a column's token for a row's token, (layers, heads, rows, columns);
            the weights of a row sum to 1.
    """

    rows: list[str]
    columns: list[str]
    weights: Weights

    @property
    def means(self) -> Weights:
        """The mean weights over heads, (layers, rows, columns)."""
        means: Weights = self.weights.mean(axis=1)
        return means

    def as_json(self) -> dict[str, Any]:
        """Return the map as an object for a JSON file.

        The weights, which are numbers from 0 to 1, are rounded to a byte each (0 to 255). The bytes
        are written as text in base64, in the order of the array.
        """
        layers, heads, _, _ = self.weights.shape
        levels = np.rint(self.weights * _MAX_LEVEL).astype(np.uint8)
        return {
            "rows": self.rows,
            "columns": self.columns,
            "layers": layers,
            "heads": heads,
            "weights": base64.b64encode(levels.tobytes()).decode(),
        }


@dataclass(frozen=True)
class SentenceAttention:
    """The attention maps of one sentence of a test set.

    Attributes:
        line: The line of the sentence in the test set, from 1.
        maps: The maps by the kind of attention: `cross`, `encoder` and `decoder`.
    """

    line: int
    maps: Mapping[str, AttentionMap]


def compute_attention_maps(
    model: "Transformer", corpus: BinaryCorpus, source: Sequence[int], tokens: Sequence[int]
) -> dict[str, AttentionMap]:
    """Compute the attention weights with which a model translates a sentence, to show them.

    Args:
        model: The model.
        corpus: The corpus, whose vocabularies give the text of tokens.
        source: The token ids of the source, with EOS.
        tokens: The token ids of the translation, without EOS.

    Returns:
        The attention maps by the kind of attention: `cross`, from the decoder to the source;
        `encoder` and `decoder`, self-attention.
    """
    import torch  # Slow to import, and not needed to read attention.json.

    # At each position, the decoder reads one token and predicts the next one. So its inputs begin
    # with BOS, and its outputs, which label the rows of the maps, end with EOS.
    inputs = [BOS, *tokens]
    weights = model.attention_weights(
        torch.tensor([source], device=model.device), torch.tensor([inputs], device=model.device)
    )
    source_vocabulary = corpus.segmentation(corpus.source).vocabulary.tokens
    target_vocabulary = corpus.segmentation(corpus.target).vocabulary.tokens
    source_tokens = [source_vocabulary[token] for token in source]
    input_tokens = [target_vocabulary[token] for token in inputs]
    output_tokens = [target_vocabulary[token] for token in (*tokens, EOS)]

    def as_array(layers: list["Tensor"]) -> Weights:
        """Return the weights of all layers as one array, (layers, heads, rows, columns).

        Each layer has the shape (1, heads, rows, columns), for the one sentence.
        """
        array: Weights = torch.cat(layers).float().cpu().numpy()
        return array

    return {
        "cross": AttentionMap(output_tokens, source_tokens, as_array(weights.cross)),
        "encoder": AttentionMap(source_tokens, source_tokens, as_array(weights.encoder)),
        "decoder": AttentionMap(output_tokens, input_tokens, as_array(weights.decoder)),
    }


def select_sentences(lengths: Lengths) -> list[int]:
    """Select the two sentences of a test set whose attention the report shows.

    These are the first two sentences with 6 to 14 source tokens. If the test set has fewer, the
    sentences with the most similar lengths are added, up to 40 tokens. The selection ignores the
    translations, so the report shows the same sentences for all systems.

    Args:
        lengths: The source lengths of all sentences in tokens, EOS included.

    Returns:
        The selected rows, from 0, in the order of the test set.
    """
    token_counts = lengths - 1  # Without EOS.
    missing_tokens = _MIN_PREFERRED_TOKENS - token_counts
    surplus_tokens = token_counts - _MAX_PREFERRED_TOKENS
    # How far each length is from the preferred lengths; 0 for a preferred length, where both
    # numbers are at most 0.
    distances = np.maximum(np.maximum(missing_tokens, surplus_tokens), 0)
    # A stable sort leaves equally close sentences in the order of the test set.
    closest_first: list[int] = np.argsort(distances, kind="stable").tolist()
    suitable = [row for row in closest_first if 0 < token_counts[row] <= _MAX_TOKENS]
    return sorted(suitable[:_STORED_SENTENCES])


def write_attention(path: Path, tests: Mapping[str, Sequence[SentenceAttention]]) -> None:
    """Write the attention maps of some sentences of each test set to attention.json.

    Args:
        path: The file to write.
        tests: The sentences of each test set, by its name.
    """
    content = {}
    for test, sentences in tests.items():
        entries = []
        for sentence in sentences:
            entry: dict[str, Any] = {"line": sentence.line}
            for kind, attention_map in sentence.maps.items():
                entry[kind] = attention_map.as_json()
            entries.append(entry)
        content[test] = entries
    write_json(path, content)


def read_attention(path: Path, test: str) -> list[SentenceAttention]:
    """Read the attention maps of a test set from attention.json.

    Args:
        path: The file.
        test: The name of the test set.

    Returns:
        The maps of each stored sentence.

    Raises:
        UserError: The file is missing or damaged.
    """
    content = read_record(dict[str, list[_SentenceRecord]], path)
    if test not in content:
        raise DamagedFile(path, f"field {test} is missing")
    sentences = []
    for entry in content[test]:
        with report_as_damage(path):
            maps = {
                "cross": _map_of_record(entry.cross),
                "encoder": _map_of_record(entry.encoder),
                "decoder": _map_of_record(entry.decoder),
            }
        sentences.append(SentenceAttention(entry.line, maps))
    return sentences


@dataclass(frozen=True)
class _MapRecord:
    """An attention map as `AttentionMap.as_json` writes it."""

    rows: list[str]
    columns: list[str]
    layers: Count
    heads: Count
    weights: str


@dataclass(frozen=True)
class _SentenceRecord:
    """A sentence's attention maps in attention.json."""

    line: Count
    cross: _MapRecord
    encoder: _MapRecord
    decoder: _MapRecord


def _map_of_record(record: _MapRecord) -> AttentionMap:
    """Return the attention map that an entry of attention.json describes.

    The file contains the weights as bytes from 0 to 255, which are written as base64 text. They are
    converted to numbers from 0 to 1.

    Args:
        record: The entry.
    """
    levels = np.frombuffer(base64.b64decode(record.weights), np.uint8)
    shape = (record.layers, record.heads, len(record.rows), len(record.columns))
    weights: Weights = (levels.reshape(shape) / np.float32(_MAX_LEVEL)).astype(np.float32)
    return AttentionMap(record.rows, record.columns, weights)
