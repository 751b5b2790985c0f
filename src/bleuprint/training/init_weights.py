"""The first weights of a training that starts from another's."""

import torch

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import SPECIALS, Vocabulary
from bleuprint.model.description import DESCRIPTION
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights, read_weights
from bleuprint.runtime.errors import UserError
from bleuprint.training.init_files import InitFiles

# The weights with a row for each token, by the side of their vocabulary.
_ROWS = {
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "projection.weight": "target",
    "projection.bias": "target",
}


@torch.no_grad()
def take_weights(model: Transformer, corpus: BinaryCorpus, start: InitFiles) -> list[str]:
    """Copy the weights of a start into `model`, rows of tokens by token; returns what to say of it.

    Tokens that the start does not know keep what the model has for them. Raises UserError if the
    start is of another architecture, damaged, or without its vocabularies.
    """
    settings, path = start.description().model, start.weights.with_name(DESCRIPTION)
    rows: dict[str, list[tuple[int, int]]] = {}
    sizes: dict[str, int] = {}
    taken: dict[str, None] = {}
    few = False
    if difference := model.settings.difference(settings):
        raise UserError(f"{path}: another architecture: {difference}")
    for side, language in (("source", corpus.source), ("target", corpus.target)):
        here = corpus.segmentation(language).vocabulary
        there = Vocabulary.read(start.vocabulary(side))
        rows[side], sizes[side] = _shared_rows(here, there), len(there)
        count, size = (len(known) - len(SPECIALS) for known in (rows[side], here))
        what = "tokens" if corpus.joint else f"{side} tokens"
        taken[f"{count:,} of {size:,} {what} taken over"] = None  # once of a joint vocabulary
        few |= 2 * count < size
    weights = named_weights(model)
    shapes = {
        name: [sizes[_ROWS[name]], *each.shape[1:]] if name in _ROWS else [*each.shape]
        for name, each in weights.items()
    }
    for name, tensor in read_weights(start.weights, shapes).items():
        if side := _ROWS.get(name, ""):
            to, of = torch.tensor(rows[side]).T
            weights[name][to] = tensor[of].to(weights[name].device)
        else:
            weights[name].copy_(tensor)
    said = [f"started from {start.name}: {', '.join(taken)}"]
    if few:
        said.append("note: the start knows fewer than half of the tokens (see vocabularies)")
    return said


def _shared_rows(here: Vocabulary, there: Vocabulary) -> list[tuple[int, int]]:
    """The rows of each token in both; special tokens have the same in every vocabulary."""
    first = len(SPECIALS)
    rows = {token: row for row, token in enumerate(there.tokens) if row >= first}
    known = (token for token in enumerate(here.tokens) if token[0] >= first and token[1] in rows)
    return [(row, row) for row in range(first)] + [(row, rows[token]) for row, token in known]
