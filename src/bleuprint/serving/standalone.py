"""Translate files or standard input, a line for each line, with the model beside this script.

    python translate.py FILE... > OUTPUT
    echo "Two dogs run." | python translate.py

README.md lists what to install. settings.json contains the settings of the tokenizer and of the
search. The folder bleuprint contains code of the project that trained the model, for tokens and
subwords; nothing else of it is needed. Sentences should be as clean as the training text was.
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
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
# So many lines are translated together.
BATCH_LINES = 256


class Line(NamedTuple):
    """A line of text.

    Attributes:
        location: Its file and number, for messages.
        text: The line without its end.
    """

    location: str
    text: str


def main() -> None:
    """Translate the files named on the command line, or standard input, to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="standard input if none is given")
    files = parser.parse_args().files
    if sys.stdout is None:
        sys.exit("translate.py: standard output is closed")
    if sys.stderr is None:  # closed, too; print would write messages to standard output
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    translate = Translator()
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # in any locale
    failures: list[str] = []
    lines = read(files, failures)
    while batch := list(islice(lines, BATCH_LINES)):
        sentences = [line.text for line in batch]
        locations = [line.location for line in batch]
        for output in translate(sentences, locations):
            print(output, flush=True)
    # Lines before the failure are translated first.
    if failures:
        sys.exit(failures[0])


def read(files: list[str], failures: list[str]) -> Iterator[Line]:
    """Yield the lines of files, or of standard input without files.

    A line ends at the byte LF alone. Reading ends at a line that is not UTF-8 or a file that cannot
    be read.

    Args:
        files: The paths of the files.
        failures: If reading ends early, the reason is appended.
    """
    location = ""
    try:
        if not files and sys.stdin is None:
            raise OSError("standard input is closed")
        with fileinput.input(files, mode="rb") as lines:
            for line in lines:
                location = f"{lines.filename()}:{lines.filelineno()}"
                text = line.decode().removesuffix("\n").removesuffix("\r")
                if lines.isfirstline():
                    text = text.removeprefix("\ufeff")  # the byte order mark
                yield Line(location, text)
    except UnicodeDecodeError as error:
        failures.append(f"{location}: not UTF-8: {error}")
    except OSError as error:
        failures.append(f"translate.py: {error}")


class Translator:
    """Translates sentences with the model in the folder of this script."""

    def __init__(self) -> None:
        """Load the model, its settings and subwords."""
        # No compiled files are written into the folder, so that its checksums stay right.
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(HERE))
        # Imported here: these modules are in the folder that was just added to the path.
        import ctranslate2

        from bleuprint.dataset.subwords.segmentation import Segmentation
        from bleuprint.text.tokenizers import Tokenize, tokenizer_for

        settings_file = HERE / "settings.json"
        try:
            self._settings = json.loads(settings_file.read_text(encoding="utf-8"))
            tokenize_settings = {}
            for field in dataclasses.fields(Tokenize):
                tokenize_settings[field.name] = self._settings[field.name]
            tokenize = Tokenize(**tokenize_settings)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            sys.exit(f"{settings_file} is damaged: {error!r}; export the system again")
        source = self._settings["source"]
        target = self._settings["target"]
        self._tokenize = tokenizer_for(source, tokenize).tokenize
        self._detokenize = tokenizer_for(target, tokenize).detokenize
        self._segment = Segmentation.read(HERE / "segmentation", source).segment
        self._join = Segmentation.read(HERE / "segmentation", target).join
        self._model = ctranslate2.Translator(
            str(HERE / "model"),
            compute_type=self._settings["precision"],
        )

    def __call__(self, sentences: Sequence[str], locations: Sequence[str] = ()) -> list[str]:
        """Translate sentences; a sentence that is too long is cut, with a message on stderr.

        Args:
            sentences: The sentences.
            locations: The file and line of each sentence for messages; by default its number.
        """
        max_subwords = self._settings["max_positions"] - 1  # and EOS
        sources = []
        for number, sentence in enumerate(sentences):
            subwords = self._segment(self._tokenize(sentence))
            if len(subwords) > max_subwords:
                location = locations[number] if locations else f"sentence {number}"
                print(f"{location}: cut after {max_subwords} subwords", file=sys.stderr)
            sources.append(subwords[:max_subwords])
        outputs = search(self._model, sources, self._settings)
        return [self._detokenize(self._join(output)) for output in outputs]


def search(
    translator: Any, sentences: list[list[str]], settings: dict[str, Any]
) -> list[list[str]]:
    """Return the best output of each sentence.

    CTranslate2 takes one maximum length for all sentences of a call, but the maximum depends on the
    length of the source. So sentences with the same maximum are searched together.

    Args:
        translator: CTranslate2's translator.
        sentences: The subwords of each sentence.
        settings: The content of settings.json.
    """
    outputs: list[list[str]] = [[] for _ in sentences]
    for max_length, indices in _group_by_max_length(sentences, settings).items():
        results = translator.translate_batch(
            [sentences[index] for index in indices],
            beam_size=settings["beam"],
            num_hypotheses=settings["beam"],
            length_penalty=settings["length_penalty"]["alpha"],
            max_input_length=0,
            max_decoding_length=max_length,
            min_decoding_length=min(settings["min_len"], max_length),
            no_repeat_ngram_size=settings["no_repeat_ngram_size"],
            disable_unk=not settings["allow_unk"],
            return_scores=True,
        )
        for index, result in zip(indices, results, strict=True):
            outputs[index] = _best_output(result, settings, max_length)
    return outputs


def _group_by_max_length(
    sentences: list[list[str]], settings: dict[str, Any]
) -> dict[int, list[int]]:
    """Return the indices of the sentences by the maximum length of their outputs, in subwords.

    Sentences without subwords, or whose outputs may have none, are left out: they are not searched.
    """
    groups: dict[int, list[int]] = {}
    for index, sentence in enumerate(sentences):
        max_length = int(len(sentence) * settings["max_len_a"]) + settings["max_len_b"]
        max_length = min(max_length, settings["max_positions"] - 1)  # and EOS
        if sentence and max_length:
            groups.setdefault(max_length, []).append(index)
    return groups


def _best_output(result: Any, settings: dict[str, Any], max_length: int) -> list[str]:
    """Return the output of a sentence with the highest score; of equal ones the first.

    Args:
        result: CTranslate2's result for the sentence.
        settings: The content of settings.json.
        max_length: The maximum length of its outputs.
    """
    scores = []
    for output in zip(result.scores, result.hypotheses, strict=True):
        scores.append(score(output, settings, max_length))
    best_index = scores.index(max(scores))
    output_subwords: list[str] = result.hypotheses[best_index]
    return output_subwords


def score(output: tuple[float, list[str]], settings: dict[str, Any], max_length: int) -> float:
    """Return the score of an output with the length penalty of the settings.

    CTranslate2 divides the log-probability of an output by length^alpha. For the penalty of GNMT,
    ((5 + length) / 6)^alpha, the score is multiplied by the first and divided by the second.

    Args:
        output: CTranslate2's score, and the subwords.
        settings: The content of settings.json.
        max_length: The maximum length of the output.
    """
    ctranslate2_score, subwords = output
    if settings["length_penalty"]["kind"] == "length":
        return ctranslate2_score
    alpha = settings["length_penalty"]["alpha"]
    length = len(subwords)
    if length < max_length:
        length += 1  # EOS, which an output that was cut off at the maximum length lacks
    return float(ctranslate2_score * length**alpha / ((5 + length) / 6) ** alpha)


if __name__ == "__main__":
    try:
        main()
    # Exit statuses as of programs that a signal ended: SIGPIPE and SIGINT.
    except BrokenPipeError:  # the reader closed the pipe
        os._exit(141)
    except KeyboardInterrupt:
        os._exit(130)
    except OSError as error:
        with suppress(OSError):
            print(f"translate.py: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # at once: output that could not be written would cause a second error
