"""Translate files or standard input, a line for each line, with the model beside this script.

    python translate.py FILE... > OUTPUT
    echo "Two dogs run." | python translate.py

README.md says what to install, settings.json how sentences become tokens, and how the model is
searched. Tokens and subwords are made by the code of the project that made it, in the folder
bleuprint; it needs nothing else of that. Sentences should be as clean as the training text was.
"""

import argparse
import dataclasses
import fileinput
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="standard input if none is given")
    files = parser.parse_args().files
    if sys.stdout is None:
        sys.exit("translate.py: standard output is closed")
    if sys.stderr is None:  # print would write messages to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    translate = Translator()
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # in any locale
    failures: list[str] = []
    lines = read(files, failures)
    while batch := list(islice(lines, BATCH)):
        places, sentences = zip(*batch, strict=True)
        for output in translate(sentences, places):
            print(output, flush=True)
    if failures:
        sys.exit(failures[0])


def read(files: list[str], failures: list[str]) -> Iterator[tuple[str, str]]:
    """Each line, which ends at the byte LF alone, with its file and number.

    Ends at a line that is not UTF-8 or a file that cannot be read, and appends why to `failures`.
    """
    place = ""
    try:
        if not files and sys.stdin is None:
            raise OSError("standard input is closed")
        with fileinput.input(files, mode="rb") as lines:
            for line in lines:
                place = f"{lines.filename()}:{lines.filelineno()}"
                text = line.decode().removesuffix("\n").removesuffix("\r")
                yield place, text.removeprefix("\ufeff") if lines.isfirstline() else text
    except UnicodeDecodeError as error:
        failures.append(f"{place}: not UTF-8: {error}")
    except OSError as error:
        failures.append(f"translate.py: {error}")


class Translator:
    """Translates sentences with the model beside this script."""

    def __init__(self) -> None:
        # the folder stays as it was, so that its checksums hold
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(HERE))
        import ctranslate2

        from bleuprint.dataset.subwords.segmentation import Segmentation
        from bleuprint.text.tokenizers import Tokenize, tokenizer_for

        names = [each.name for each in dataclasses.fields(Tokenize)]
        try:
            self._settings = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
            chosen = Tokenize(**{name: self._settings[name] for name in names})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            sys.exit(f"{HERE / 'settings.json'} is damaged: {error!r}; export the system again")
        source, target = self._settings["source"], self._settings["target"]
        self._tokenize = tokenizer_for(source, chosen).tokenize
        self._detokenize = tokenizer_for(target, chosen).detokenize
        self._segment = Segmentation.read(HERE / "segmentation", source).segment
        self._join = Segmentation.read(HERE / "segmentation", target).join
        precision = self._settings["precision"]
        self._model = ctranslate2.Translator(str(HERE / "model"), compute_type=precision)

    def __call__(self, sentences: Sequence[str], places: Sequence[str] = ()) -> list[str]:
        """The translation of each; one too long is cut, which names its place on stderr."""
        sources, most = [], self._settings["max_positions"] - 1
        for number, sentence in enumerate(sentences):
            subwords = self._segment(self._tokenize(sentence))
            if len(subwords) > most:
                place = places[number] if places else f"sentence {number}"
                print(f"{place}: cut after {most} subwords", file=sys.stderr)
            sources.append(subwords[:most])
        outputs = search(self._model, sources, self._settings)
        return [self._detokenize(self._join(output)) for output in outputs]


def search(
    translator: Any, sentences: list[list[str]], settings: dict[str, Any]
) -> list[list[str]]:
    """The best output of each sentence; those with one limit of length are searched together."""
    groups: dict[int, list[int]] = {}
    for index, sentence in enumerate(sentences):
        limit = int(len(sentence) * settings["max_len_a"]) + settings["max_len_b"]
        limit = min(limit, settings["max_positions"] - 1)
        if sentence and limit:
            groups.setdefault(limit, []).append(index)
    outputs: list[list[str]] = [[] for _ in sentences]
    for limit, indices in groups.items():
        results = translator.translate_batch(
            [sentences[index] for index in indices],
            beam_size=settings["beam"],
            num_hypotheses=settings["beam"],
            length_penalty=settings["length_penalty"]["alpha"],
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(settings["min_len"], limit),
            no_repeat_ngram_size=settings["no_repeat_ngram_size"],
            disable_unk=not settings["allow_unk"],
            return_scores=True,
        )
        for index, result in zip(indices, results, strict=True):
            scored = zip(result.scores, result.hypotheses, strict=True)
            outputs[index] = max(scored, key=lambda output: score(output, settings, limit))[1]
    return outputs


def score(output: tuple[float, list[str]], settings: dict[str, Any], limit: int) -> float:
    """CTranslate2's score of an output, whose penalty is length^alpha, by the settings' penalty.

    An output of `limit` subwords was cut off; its length does not include EOS.
    """
    value, subwords = output
    if settings["length_penalty"]["kind"] == "length":
        return value
    alpha, length = settings["length_penalty"]["alpha"], len(subwords) + (len(subwords) < limit)
    return float(value * length**alpha / ((5 + length) / 6) ** alpha)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader closed the pipe
        os._exit(141)
    except KeyboardInterrupt:
        os._exit(130)
    except OSError as error:
        with suppress(OSError):
            print(f"translate.py: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # without another error for what cannot be printed
