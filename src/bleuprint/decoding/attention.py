"""Where a model looks while it reads a sentence and writes its translation, as numbers."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bleuprint.dataset.binarized import BinaryCorpus, Lengths
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, write_json

ATTENTION = "attention.json"

Weights = npt.NDArray[np.float32]

# The attentions of section 3.2.3: decoder to source, encoder to itself, decoder to itself.
KINDS = ("cross", "encoder", "decoder")

# Sentences of a test set that are kept, and the units that they should have and may have, the end
# not counted: enough to be a sentence, few enough for a table.
_KEPT = 2
_FEWEST, _MOST, _LONGEST = 6, 14, 40


@dataclass(frozen=True)
class AttentionMap:
    """What was read, for each unit that was written or read anew.

    `weights` (layers, heads, rows, columns): a row holds how much was taken of each column's unit,
    and sums to 1. Decoder to source: `rows` are the units of the translation, `columns` those of
    the source, both with their ends; a row is what was read to write its unit. Encoder: both are
    the source. Decoder: the columns are what was written before, from its begin.
    """

    rows: list[str]
    columns: list[str]
    weights: Weights

    @property
    def means(self) -> Weights:
        """The means over heads (layers, rows, columns)."""
        means: Weights = self.weights.mean(axis=1)
        return means

    def as_json(self) -> dict[str, Any]:
        """rows, columns, layers, heads; and weights, in the order of the array: base64 of a byte
        each, 255 times the weight.
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
        """What `as_json` made: the weights to 1/510."""
        levels = np.frombuffer(base64.b64decode(entry["weights"]), np.uint8)
        shape = entry["layers"], entry["heads"], len(entry["rows"]), len(entry["columns"])
        weights: Weights = (levels.reshape(shape) / np.float32(255)).astype(np.float32)
        return cls(list(entry["rows"]), list(entry["columns"]), weights)


@dataclass(frozen=True)
class Attended:
    """A sentence of a test set, by its line counted from 1, and its maps by kind."""

    line: int
    maps: Mapping[str, AttentionMap]


def attention_maps(
    model: Transformer,
    corpus: BinaryCorpus,
    source: Sequence[int],
    words: Sequence[int],
    kinds: Iterable[str] = KINDS,
) -> dict[str, AttentionMap]:
    """The maps of a sentence (ids with EOS) and its translation (ids without)."""
    target = [BOS, *words]
    ids = (torch.tensor([side], device=model.device) for side in (source, target))
    weights = model.attention_weights(*ids)
    units, theirs = (
        corpus.segmentation(language).vocabulary.tokens
        for language in (corpus.target, corpus.source)
    )
    written, before = [units[i] for i in (*words, EOS)], [units[i] for i in target]
    read = [theirs[i] for i in source]
    sides = {"cross": (written, read), "encoder": (read, read), "decoder": (written, before)}
    return {
        kind: AttentionMap(*sides[kind], torch.cat(getattr(weights, kind)).float().cpu().numpy())
        for kind in kinds
    }


def sentences_to_map(lengths: Lengths) -> list[int]:
    """The sentences of a test set to keep the maps of, given how long its sources are (with EOS).

    The first of a fitting length, or else of one near to it: so that all systems have the same.
    """
    units = (lengths - 1).tolist()
    able = [i for i, length in enumerate(units) if 0 < length <= _LONGEST]
    return sorted(sorted(able, key=lambda i: max(_FEWEST - units[i], units[i] - _MOST, 0))[:_KEPT])


def write_attention(path: Path, tests: Mapping[str, tuple[str, Sequence[Attended]]]) -> None:
    """Write attention.json: for each test set the SHA-256 of its translations, and sentences."""
    write_json(
        path,
        {
            test: {
                "hypotheses": sha256,
                "sentences": [
                    {"line": one.line, **{kind: each.as_json() for kind, each in one.maps.items()}}
                    for one in sentences
                ],
            }
            for test, (sha256, sentences) in tests.items()
        },
    )


def read_attention(path: Path, test: str, sha256: str) -> list[Attended]:
    """The sentences of a test set in attention.json; `sha256` is that of its translations.

    Raises UserError if the file is not there, damaged, or of other translations.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    entry = read_object(path, (test,))[test]
    try:
        other = entry["hypotheses"] != sha256
        found = [
            Attended(one["line"], {kind: AttentionMap.from_json(one[kind]) for kind in KINDS})
            for one in entry["sentences"]
        ]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: damaged at test set {test}; run: dvc repro") from None
    if other:
        raise UserError(f"{path}: is of other translations of {test}; run: dvc repro")
    return found
