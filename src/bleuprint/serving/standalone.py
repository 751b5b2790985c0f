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
    """Translate the lines of files, or of standard input, and print each translation as a line.

    If a file cannot be read, the lines before it are still translated. Then the process ends with a
    message and status 1.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="standard input if none is given")
    files = parser.parse_args().files
    # Python sets a stream to None if the caller has closed it, as by `>&-` in a shell.
    if sys.stdout is None:
        sys.exit("translate.py: standard output is closed")
    if sys.stderr is None:
        # Drop all messages. With None as its file, `print` would write them to standard output.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    translate = Translator()
    # Translations are UTF-8, even if the locale of the system has another encoding.
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    failures: list[str] = []
    lines = read(files, failures)
    while batch := list(islice(lines, BATCH_LINES)):
        sentences = [line.text for line in batch]
        locations = [line.location for line in batch]
        for output in translate(sentences, locations):
            print(output, flush=True)
    if failures:
        sys.exit(failures[0])


def read(files: list[str], failures: list[str]) -> Iterator[Line]:
    """Yield the lines of text files, one file after the other.

    Only the byte LF ends a line; a CR before it, as in files from Windows, is dropped. Reading ends
    at a line that is not UTF-8, and at a file that cannot be read.

    Args:
        files: The paths of the files; if there are none, standard input is read.
        failures: If reading ends early, the error message is appended to this list. It is not
            raised, so that the lines before can still be translated.
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
                    # Some editors put a byte order mark at the beginning of a file.
                    text = text.removeprefix("\ufeff")
                yield Line(location, text)
    except UnicodeDecodeError as error:
        failures.append(f"{location}: not UTF-8: {error}")
    except OSError as error:
        failures.append(f"translate.py: {error}")


class Translator:
    """Translates sentences with the model in the folder of this script."""

    def __init__(self) -> None:
        """Load the model, the subwords and the settings from the folder of this script."""
        _use_modules_of_this_folder()
        import ctranslate2

        from bleuprint.dataset.subwords.segmentation import Segmentation
        from bleuprint.text.tokenizers import tokenizer_for

        self._settings, tokenize_settings = _read_settings(HERE / "settings.json")
        source = self._settings["source"]
        target = self._settings["target"]
        # The steps of a translation: tokenize, split words into subwords, search for the best
        # output, join subwords to words, and detokenize.
        self._tokenize = tokenizer_for(source, tokenize_settings).tokenize
        self._segment = Segmentation.read(HERE / "segmentation", source).segment
        self._model = ctranslate2.Translator(
            str(HERE / "model"),
            compute_type=self._settings["precision"],
        )
        self._join = Segmentation.read(HERE / "segmentation", target).join
        self._detokenize = tokenizer_for(target, tokenize_settings).detokenize

    def __call__(self, sentences: Sequence[str], locations: Sequence[str] = ()) -> list[str]:
        """Translate sentences.

        A sentence that has too many subwords for the model is cut, with a message on stderr.

        Args:
            sentences: The sentences.
            locations: The file and line of each sentence, such as `talks.de:12`, for the message;
                by default its number.
        """
        # One position of the model is for EOS, the end-of-sentence token.
        max_subwords = self._settings["max_positions"] - 1
        sources = []
        for number, sentence in enumerate(sentences):
            subwords = self._segment(self._tokenize(sentence))
            if len(subwords) > max_subwords:
                location = locations[number] if locations else f"sentence {number}"
                print(
                    f"{location}: the sentence was too long and is cut at {max_subwords} subwords",
                    file=sys.stderr,
                )
            sources.append(subwords[:max_subwords])
        outputs = search(self._model, sources, self._settings)
        return [self._detokenize(self._join(output)) for output in outputs]


def _use_modules_of_this_folder() -> None:
    """Let Python import the package `bleuprint` from the folder of this script.

    The folder contains the modules of the package that the script needs, so that the package need
    not be installed. Python would write compiled files beside the modules. It is told not to, since
    the folder may be a part of a release, whose files are checked by checksums.
    """
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))


def _read_settings(path: Path) -> tuple[dict[str, Any], Any]:
    """Read settings.json; if it is damaged, end the process with a message.

    Args:
        path: The path of the file.

    Returns:
        All settings, and the settings of the tokenizer as an object of the class `Tokenize`.
    """
    from bleuprint.text.tokenizers import Tokenize

    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        tokenize_settings = {}
        for field in dataclasses.fields(Tokenize):
            tokenize_settings[field.name] = settings[field.name]
        return settings, Tokenize(**tokenize_settings)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        sys.exit(f"{path} is damaged: {error!r}. Export the system again")


def search(
    translator: Any, sentences: list[list[str]], settings: dict[str, Any]
) -> list[list[str]]:
    """Search for the best output of each sentence with CTranslate2.

    The maximum length of an output depends on the length of its source, but CTranslate2 takes one
    maximum for all sentences of a call. So each call gets the sentences with the same maximum.

    Args:
        translator: CTranslate2's translator, a `ctranslate2.Translator`.
        sentences: The subwords of each sentence.
        settings: The content of settings.json, with the settings of the search.

    Returns:
        The subwords of the best output of each sentence; an empty list for an empty sentence.
    """
    outputs: list[list[str]] = [[] for _ in sentences]
    for max_length, indices in _group_by_max_length(sentences, settings).items():
        results = translator.translate_batch(
            [sentences[index] for index in indices],
            beam_size=settings["beam"],
            num_hypotheses=settings["beam"],
            length_penalty=settings["length_penalty"]["alpha"],
            max_input_length=0,  # Sentences have been cut already.
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
    """Group sentences whose outputs have the same maximum length, since each search has only one.

    Sentences without subwords, and those whose maximum length is 0, are in no group: their output
    is empty.

    Args:
        sentences: The subwords of each sentence.
        settings: The content of settings.json. The maximum is max_len_a x source length +
            max_len_b.

    Returns:
        For each maximum length in subwords, the indices of the sentences.
    """
    # One position of the model is for EOS, the end-of-sentence token.
    model_limit = settings["max_positions"] - 1
    groups: dict[int, list[int]] = {}
    for index, sentence in enumerate(sentences):
        max_length = int(len(sentence) * settings["max_len_a"]) + settings["max_len_b"]
        max_length = min(max_length, model_limit)
        if sentence and max_length:
            groups.setdefault(max_length, []).append(index)
    return groups


def _best_output(result: Any, settings: dict[str, Any], max_length: int) -> list[str]:
    """Return the subwords of the output with the highest score; of equal scores, the first output.

    CTranslate2 has ordered the outputs by its own scores, which may have another length penalty.

    Args:
        result: CTranslate2's result for one sentence: all outputs of the beam, with scores.
        settings: The content of settings.json, with the length penalty.
        max_length: The maximum length of an output of this sentence, in subwords.
    """
    scores = []
    for output in zip(result.scores, result.hypotheses, strict=True):
        scores.append(score(output, settings, max_length))
    best_index = scores.index(max(scores))
    output_subwords: list[str] = result.hypotheses[best_index]
    return output_subwords


def score(output: tuple[float, list[str]], settings: dict[str, Any], max_length: int) -> float:
    """Return the score of an output: its log-probability, divided by the length penalty.

    The settings choose one of two penalties: length^alpha, or ((5 + length) / 6)^alpha as in
    Google's system GNMT. CTranslate2 knows only the first one, by which it has divided. For the
    second one, its score is multiplied by the first penalty and divided by the second.

    Args:
        output: CTranslate2's score of the output, and the subwords.
        settings: The content of settings.json.
        max_length: The maximum length of the output, in subwords.
    """
    ctranslate2_score, subwords = output
    is_ctranslate2_penalty = settings["length_penalty"]["kind"] == "length"
    if is_ctranslate2_penalty:
        return ctranslate2_score
    alpha = settings["length_penalty"]["alpha"]
    length = len(subwords)
    # CTranslate2 also counts EOS, the end-of-sentence token, in the length. Only an output that was
    # cut off at the maximum length has no EOS.
    if length < max_length:
        length += 1
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
