"""Translate standard input, a line for each line, with the model that lies beside this script.

    pip install ctranslate2 sacremoses subword-nmt
    echo "Two dogs run." | python translate.py

settings.json says how sentences become tokens and units, and how the model is searched. It needs
nothing else of the project that made it. Sentences should be as clean as the training text was.
"""

import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BATCH = 256


def main() -> None:
    import ctranslate2

    settings = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
    translator = ctranslate2.Translator(str(HERE / "model"), compute_type=settings["precision"])
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    text = Text(settings)
    number, most = 0, settings["max_positions"] - 1
    while lines := [line.rstrip("\n") for line in islice(sys.stdin, BATCH)]:
        units = [text.units(line) for line in lines]
        for sentence in units:
            number += 1
            if len(sentence) > most:
                print(f"line {number}: cut after {most} units", file=sys.stderr)
        for found in search(translator, [sentence[:most] for sentence in units], settings):
            print(text.sentence(found), flush=True)


class Text:
    """The way from a sentence to units, and from units to a sentence."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer
        from subword_nmt.apply_bpe import BPE, read_vocabulary

        self._settings = settings
        self._moses = MosesTokenizer(settings["source"])
        self._back = MosesDetokenizer(settings["target"])
        self._bpe = None
        if (HERE / "codes").exists():
            allowed = HERE / "allowed"
            known = None
            if allowed.exists():
                with allowed.open(encoding="utf-8") as file:
                    known = read_vocabulary(file, None)
            with (HERE / "codes").open(encoding="utf-8") as file:
                self._bpe = BPE(file, vocab=known)

    def units(self, sentence: str) -> list[str]:
        tokens = self._tokens(sentence.lower() if self._settings["lowercase"] else sentence)
        return tokens if self._bpe is None else self._bpe.segment_tokens(tokens)

    def sentence(self, units: list[str]) -> str:
        tokenizer = self._settings["name"]
        tokens = f"{' '.join(units)} ".replace("@@ ", "").split() if self._bpe else units
        if tokenizer == "moses":
            escaped = self._settings["escape"]
            result: str = self._back.detokenize(tokens, unescape=escaped)
            return result
        if tokenizer == "characters":
            pairs = {"▁": " ", "▁▁": "▁"}
            return " ".join("".join(pairs.get(token, token) for token in tokens).split())
        return " ".join(tokens)

    def _tokens(self, sentence: str) -> list[str]:
        settings = self._settings
        if settings["name"] == "moses":
            hyphens, escape = settings["hyphens"], settings["escape"]
            found: list[str] = self._moses.tokenize(
                sentence, aggressive_dash_splits=hyphens, escape=escape
            )
            return found
        if settings["name"] == "characters":
            names = {" ": "▁", "▁": "▁▁"}
            return [names.get(character, character) for character in " ".join(sentence.split())]
        return sentence.split()


def search(
    translator: Any, sentences: list[list[str]], settings: dict[str, Any]
) -> Iterator[list[str]]:
    """The best output of each sentence; those with one limit of length are searched together."""
    groups: dict[int, list[int]] = {}
    for place, units in enumerate(sentences):
        limit = int(len(units) * settings["max_len_a"]) + settings["max_len_b"]
        groups.setdefault(min(limit, settings["max_positions"] - 1), []).append(place)
    found: list[list[str]] = [[] for _ in sentences]
    for limit, places in groups.items():
        wanted = [place for place in places if sentences[place] and limit]
        results = translator.translate_batch(
            [sentences[place] for place in wanted],
            beam_size=settings["beam"],
            num_hypotheses=settings["beam"],
            length_penalty=settings["length_penalty"]["alpha"],
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(settings["min_length"], limit),
            no_repeat_ngram_size=settings["no_repeat_ngram"],
            disable_unk=not settings["allow_unk"],
            return_scores=True,
        )
        for place, result in zip(wanted, results, strict=True):
            scored = zip(result.scores, result.hypotheses, strict=True)
            found[place] = max(scored, key=lambda one: score(one, settings, limit))[1]
    return iter(found)


def score(output: tuple[float, list[str]], settings: dict[str, Any], limit: int) -> float:
    """The score of an output by the penalty of the settings; CTranslate2 has length^alpha alone.

    An output of `limit` units has broken off: it has no end, which the length of others counts.
    """
    given, units = output
    alpha, length = settings["length_penalty"]["alpha"], len(units) + (len(units) < limit)
    if settings["length_penalty"]["kind"] == "length":
        return given
    return float(given * length**alpha / ((5 + length) / 6) ** alpha)


if __name__ == "__main__":
    try:
        main()
    except UnicodeDecodeError as error:
        sys.exit(f"standard input is not UTF-8: {error}")
    except BrokenPipeError:  # the reader closed the pipe
        os._exit(141)
