"""The first weights of a training that starts from another's."""

import torch
from safetensors.torch import load_file

from bleuprint.config.starts import first_difference
from bleuprint.config.system import Model
from bleuprint.dataset.binarized import SEGMENTATION, BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import SPECIALS, Vocabulary
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import DESCRIPTION, named_weights
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import system_errors
from bleuprint.runtime.schema import build
from bleuprint.training.start_files import StartFiles

# The weights with a row for each token, by the side of their vocabulary.
_ROWS = {
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "projection.weight": "target",
    "projection.bias": "target",
}


@torch.no_grad()
def take_weights(model: Transformer, corpus: BinaryCorpus, start: StartFiles) -> list[str]:
    """Copy the weights of a start into `model`, rows of tokens by token; returns what to say of it.

    Tokens that the start does not know keep what the model has for them. Raises UserError if the
    start is of another architecture, damaged, or without its vocabularies.
    """
    content, path = start.description(), start.weights.with_name(DESCRIPTION)
    settings, rows, shares, sizes = build(Model, content["model"], path), {}, [], {}
    if difference := first_difference(model.settings, settings):
        raise UserError(f"{path}: another architecture: {difference}")
    for side, language in (("source", corpus.source), ("target", corpus.target)):
        here = corpus.segmentation(language).vocabulary
        known = corpus.folder / SEGMENTATION / f"vocabulary.{language}"
        there = Vocabulary.read(start.vocabulary(side, known))
        rows[side], sizes[side] = _shared_rows(here, there), len(there)
        shares.append((len(rows[side]), len(here), side))
    with system_errors(start.weights):
        tensors = load_file(start.weights)
    weights = named_weights(model)
    expected = {
        name: [sizes[_ROWS[name]], *each.shape[1:]] if name in _ROWS else [*each.shape]
        for name, each in weights.items()
    }
    if expected != {name: [*tensor.shape] for name, tensor in tensors.items()}:
        raise UserError(f"{start.weights}: not the weights of the model that {path} describes")
    for name, tensor in tensors.items():
        if side := _ROWS.get(name, ""):
            to, of = torch.tensor(rows[side]).T
            weights[name][to] = tensor[of].to(weights[name].device)
        else:
            weights[name].copy_(tensor)
    taken = (f"{count:,} of {size:,} {side} tokens taken over" for count, size, side in shares)
    said = [f"started from {start.name}: {', '.join(taken)}"]
    if any(2 * count < size for count, size, _ in shares):
        said.append(
            "note: the start knows fewer than half of the tokens (vocabularies shares them)"
        )
    return said


def _shared_rows(here: Vocabulary, there: Vocabulary) -> list[tuple[int, int]]:
    """The rows of each token in both; special tokens have the same in every vocabulary."""
    first = len(SPECIALS)
    rows = {token: row for row, token in enumerate(there.tokens) if row >= first}
    known = (token for token in enumerate(here.tokens) if token[0] >= first and token[1] in rows)
    return [(row, row) for row in range(first)] + [(row, rows[token]) for row, token in known]
