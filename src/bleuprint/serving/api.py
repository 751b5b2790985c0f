"""The JSON endpoint of `bleuprint serve`: its requests and its answers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from starlette.exceptions import HTTPException

from bleuprint.decoding.attention import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import Count, build
from bleuprint.serving.translator import Translator

# Attention weights of one answer, at most: some megabytes.
_WEIGHTS = 300_000


@dataclass(frozen=True)
class TranslationRequest:
    """Text to translate line by line, how many translations of each, and whether with attention."""

    text: str
    n_best: Count = 1
    attention: bool = False

    @classmethod
    def parse(cls, body: bytes, beam: int) -> Self:
        """Read a JSON object of these fields; only the text is required.

        Raises HTTPException: status 400 if it is not JSON, 422 if a key or value is invalid.
        """
        try:
            content = json.loads(body.decode())
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON: {error}") from None
        try:
            request = build(cls, content, Path("body"))
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        if request.n_best > beam:
            raise HTTPException(422, f"n_best {request.n_best} is beyond the beam of {beam}")
        return request


def answer(translator: Translator, request: TranslationRequest) -> dict[str, Any]:
    """{"lines": [{"translations": [{"text", "score"}, ...], "attention", "beyond"}, ...]}.

    For each line of the text: its translations, best first; the attention maps of the best one,
    one per piece (null if not requested, or if the weights of the lines so far are too many); and
    by how many tokens the line is too long for the model.
    """
    lines = request.text.removesuffix("\n").split("\n")
    room, answers = _WEIGHTS, []
    for translated in translator(lines, request.n_best):
        maps = None
        if request.attention and room >= 0:
            attention = [maps["cross"] for maps in translator.attention(translated)]
            room -= sum(each.weights.size for each in attention)
            maps = list(map(_as_json, attention)) if room >= 0 else None
        best = [{"text": each.text, "score": round(each.score, 6)} for each in translated.best]
        answers.append({"translations": best, "attention": maps, "beyond": translated.beyond})
    return {"lines": answers}


def _as_json(attention: AttentionMap) -> dict[str, Any]:
    weights = attention.weights.astype(float).round(4).tolist()
    return {"rows": attention.rows, "columns": attention.columns, "weights": weights}
