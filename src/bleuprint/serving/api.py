"""The JSON endpoint of `bleuprint serve`: its requests and its answers."""

import json
from dataclasses import dataclass
from typing import Any, Self

from starlette.exceptions import HTTPException

from bleuprint.decoding.attention import AttentionMap
from bleuprint.serving.translator import Piece, Translator

# Attention weights of one answer, at most: some megabytes.
_WEIGHTS = 300_000
# Lines of one request, at most: other requests wait for it.
_LINES = 100


@dataclass(frozen=True)
class TranslationRequest:
    """Text to translate line by line, how many translations of each, and whether with attention."""

    text: str
    n_best: int
    attention: bool

    @classmethod
    def parse(cls, body: bytes, beam: int) -> Self:
        """Read {"text": str, "n_best": int, "attention": bool}; only the text is required.

        Raises HTTPException: status 400 if it is not JSON, 422 if a key or value is invalid.
        """
        try:
            content = json.loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON: {error}") from None
        if not isinstance(content, dict) or "text" not in content:
            raise HTTPException(422, 'the body must be an object: {"text": "..."}')
        content = {"n_best": min(4, beam), "attention": False, **content}
        text, n_best, attention = map(content.pop, ("text", "n_best", "attention"))
        if content:
            raise HTTPException(422, f"unknown key {next(iter(content))!r}")
        if not isinstance(text, str) or any("\ud800" <= c <= "\udfff" for c in text):
            raise HTTPException(422, "text must be a string of whole characters")
        if text.removesuffix("\n").count("\n") >= _LINES:
            raise HTTPException(422, f"text must have at most {_LINES} lines")
        if type(n_best) is not int or not 1 <= n_best <= beam:
            raise HTTPException(422, f"n_best must be a whole number from 1 to the beam, {beam}")
        if not isinstance(attention, bool):
            raise HTTPException(422, "attention must be true or false")
        return cls(text, n_best, attention)


def answer(translator: Translator, request: TranslationRequest) -> dict[str, Any]:
    """{"lines": [{"translations": [{"text", "score"}, ...], "attention", "beyond"}, ...]}.

    For each line of the text: its translations, best first; the attention maps of the best one,
    one per piece (null if not requested, or if the weights of the lines so far are too many); and
    by how many tokens the line is too long for the model.
    """
    lines = request.text.removesuffix("\n").split("\n")
    room, answers = _WEIGHTS, []
    for translated in translator(lines, request.n_best):
        room -= sum(_weights(translator, piece) for piece in translated.pieces)
        maps = None
        if request.attention and room >= 0:
            maps = list(map(_as_json, translator.attention(translated)))
        best = [{"text": each.text, "score": round(each.score, 6)} for each in translated.best]
        answers.append({"translations": best, "attention": maps, "beyond": translated.beyond})
    return {"lines": answers}


def _weights(translator: Translator, piece: Piece) -> int:
    """The number of attention weights of a piece."""
    model = translator.model.settings
    return model.decoder_layers * model.heads * len(piece.source) * (len(piece.tokens) + 1)


def _as_json(attention: AttentionMap) -> dict[str, Any]:
    return {
        "rows": attention.rows,
        "columns": attention.columns,
        "weights": [
            [[[round(w, 4) for w in row] for row in head] for head in layer]
            for layer in attention.weights.tolist()
        ],
    }
