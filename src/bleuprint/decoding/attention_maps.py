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
from bleuprint.runtime.files import DamagedFile, report_as_damage, write_json
from bleuprint.runtime.schema import Count, read_record

if TYPE_CHECKING:
    from bleuprint.model.transformer import Transformer

ATTENTION_FILE = "attention.json"

Weights = npt.NDArray[np.float32]

# The kinds of attention of section 3.2.3: decoder to source, encoder and decoder self-attention.
ATTENTION_KINDS = ("cross", "encoder", "decoder")

# How many sentences of a test set are stored, their preferred and their maximum length in tokens
# (without EOS): enough to be a sentence, few enough for a table.
_STORED = 2
_PREFERRED_MIN, _PREFERRED_MAX, _MAX = 6, 14, 40


@dataclass(frozen=True)
class AttentionMap:
    """The attention weights of one kind, for one sentence.

    `weights` (layers, heads, rows, columns): the weight of a column's token for a row's token;
    rows sum to 1. Cross-attention: `rows` are the tokens of the translation, `columns` those of the
    source, both with EOS; a row belongs to the token that the position predicts. Encoder: both are
    the source. Decoder: `columns` are the decoder's inputs, from BOS.
    """

    rows: list[str]
    columns: list[str]
    weights: Weights

    @property
    def means(self) -> Weights:
        """The mean weights over heads (layers, rows, columns)."""
        means: Weights = self.weights.mean(axis=1)
        return means

    def as_json(self) -> dict[str, Any]:
        """rows, columns, layers, heads, and weights: base64 of one byte a weight (255 times the
        weight), in the order of the array.
        """
        layers, heads, _, _ = self.weights.shape
        levels = np.rint(self.weights * 255).astype(np.uint8)
        return {
            "rows": self.rows,
            "columns": self.columns,
            "layers": layers,
            "heads": heads,
            "weights": base64.b64encode(levels.tobytes()).decode(),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "AttentionMap":
        """Read the result of `as_json`, whose weights are rounded to 1/255."""
        levels = np.frombuffer(base64.b64decode(entry["weights"]), np.uint8)
        shape = entry["layers"], entry["heads"], len(entry["rows"]), len(entry["columns"])
        weights: Weights = (levels.reshape(shape) / np.float32(255)).astype(np.float32)
        return cls(list(entry["rows"]), list(entry["columns"]), weights)


@dataclass(frozen=True)
class SentenceAttention:
    """A sentence of a test set, by its line (from 1), with its maps by kind."""

    line: int
    maps: Mapping[str, AttentionMap]


def compute_attention_maps(
    model: "Transformer", corpus: BinaryCorpus, source: Sequence[int], tokens: Sequence[int]
) -> dict[str, AttentionMap]:
    """The maps of a source (ids with EOS) and its translation (ids without EOS)."""
    import torch  # slow to import, and not needed to read attention.json

    target = [BOS, *tokens]
    ids = (torch.tensor([side], device=model.device) for side in (source, target))
    weights = model.attention_weights(*ids)
    vocabularies = {
        language: corpus.segmentation(language).vocabulary.tokens
        for language in (corpus.source, corpus.target)
    }
    sources = [vocabularies[corpus.source][i] for i in source]
    inputs, outputs = (
        [vocabularies[corpus.target][i] for i in side] for side in (target, [*tokens, EOS])
    )
    sides = {"cross": (outputs, sources), "encoder": (sources,) * 2, "decoder": (outputs, inputs)}
    return {
        kind: AttentionMap(*sides[kind], torch.cat(getattr(weights, kind)).float().cpu().numpy())
        for kind in ATTENTION_KINDS
    }


def select_sentences(lengths: Lengths) -> list[int]:
    """The sentences of a test set whose maps are stored, given source lengths with EOS.

    The first of preferred length, or else those closest to it; the same for all systems.
    """
    tokens = lengths - 1
    distances = np.maximum(np.maximum(_PREFERRED_MIN - tokens, tokens - _PREFERRED_MAX), 0)
    ranked: list[int] = np.argsort(distances, kind="stable").tolist()
    return sorted([i for i in ranked if 0 < tokens[i] <= _MAX][:_STORED])


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


def write_attention(path: Path, tests: Mapping[str, Sequence[SentenceAttention]]) -> None:
    """Write attention.json: by test set, the line of each sentence and its maps."""
    entries = {
        test: [
            {"line": each.line, **{kind: map.as_json() for kind, map in each.maps.items()}}
            for each in sentences
        ]
        for test, sentences in tests.items()
    }
    write_json(path, entries)


def read_attention(path: Path, test: str) -> list[SentenceAttention]:
    """Read the sentences of a test set from attention.json; raises UserError if it is missing."""
    content = read_record(dict[str, list[_SentenceRecord]], path)
    if test not in content:
        raise DamagedFile(path, f"field {test} is missing")
    sentences = []
    for entry in content[test]:
        maps = {"cross": entry.cross, "encoder": entry.encoder, "decoder": entry.decoder}
        with report_as_damage(path):
            read = {kind: AttentionMap.from_json(vars(of)) for kind, of in maps.items()}
        sentences.append(SentenceAttention(entry.line, read))
    return sentences
