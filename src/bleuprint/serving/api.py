"""What the JSON endpoint of `bleuprint serve` is asked, and what it answers."""

import json
from dataclasses import dataclass
from typing import Any, Self

from starlette.exceptions import HTTPException

from bleuprint.decoding.attention import AttentionMap
from bleuprint.serving.translator import Piece, Translator

# Attention weights in one answer, at most: some megabytes.
_WEIGHTS = 300_000
# Lines of one request, which others wait for.
_LINES = 100


@dataclass(frozen=True)
class Asked:
    """A request: text to translate line by line, how many translations, and whether with maps."""

    text: str
    n_best: int
    attention: bool

    @classmethod
    def of(cls, body: bytes, beam: int) -> Self:
        """Read {"text": str, "n_best": int, "attention": bool}; all but the text may be left out.

        Raises status 400 if it is not JSON, 422 if it says something else.
        """
        try:
            asked = json.loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON: {error}") from None
        if not isinstance(asked, dict) or "text" not in asked:
            raise HTTPException(422, 'the body must be an object: {"text": "..."}')
        asked = {"n_best": min(4, beam), "attention": False, **asked}
        text, n_best, attention = asked.pop("text"), asked.pop("n_best"), asked.pop("attention")
        if asked:
            raise HTTPException(422, f"unknown key {next(iter(asked))!r}")
        if not isinstance(text, str) or any("\ud800" <= c <= "\udfff" for c in text):
            raise HTTPException(422, "text must be a string of whole characters")
        if text.removesuffix("\n").count("\n") >= _LINES:
            raise HTTPException(422, f"text must have at most {_LINES} lines")
        if type(n_best) is not int or not 1 <= n_best <= beam:
            raise HTTPException(422, f"n_best must be a whole number from 1 to the beam, {beam}")
        if not isinstance(attention, bool):
            raise HTTPException(422, "attention must be true or false")
        return cls(text, n_best, attention)


def answer(translator: Translator, asked: Asked) -> dict[str, Any]:
    """{"lines": [{"translations": [{"text", "score"}, ...], "attention", "beyond"}, ...]}.

    For each line of the text: its translations, best first; a list of the best one's maps, one
    for each piece (null if not asked for, or if the maps of the lines so far are too large); of
    how many units it was too long.
    """
    lines = asked.text.removesuffix("\n").split("\n")
    room, answers = _WEIGHTS if asked.attention else 0, []
    for translated in translator(lines, asked.n_best):
        room -= sum(_weights(translator, piece) for piece in translated.pieces)
        with_maps = asked.attention and room >= 0
        maps = list(map(_as_json, translator.attention(translated))) if with_maps else None
        answers.append(
            {
                "translations": [
                    {"text": one.text, "score": round(one.score, 6)} for one in translated.best
                ],
                "attention": maps,
                "beyond": translated.beyond,
            }
        )
    return {"lines": answers}


def _weights(translator: Translator, piece: Piece) -> int:
    """How many weights the map of a piece has."""
    model = translator.model.settings
    return model.decoder_layers * model.heads * len(piece.source) * (len(piece.words) + 1)


def _as_json(attention: AttentionMap) -> dict[str, Any]:
    return {
        "rows": attention.rows,
        "columns": attention.columns,
        "weights": [
            [[[round(w, 4) for w in row] for row in head] for head in layer]
            for layer in attention.weights.tolist()
        ],
    }
