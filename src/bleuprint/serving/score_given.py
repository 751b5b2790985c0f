"""Scores of given translations under the model."""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path

from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import length_penalty
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.line_stream import read_lines_together
from bleuprint.serving.translator import Translator, opened

# Lines that are scored together, at most.
_LINES = 512


def score_streams(translator: Translator, files: Sequence[str], given: str) -> Iterator[list[str]]:
    """SCORE<TAB>TEXT for each line of the file `given`: a translation of that line of the input.

    The input is the files, one after the other, or standard input; yields lines as soon as they
    are scored, some together. Raises UserError if the numbers of lines differ, or if a sentence is
    too long for the model.
    """
    done, most = 0, translator.model.settings.max_positions
    with Path(given).open("rb") as file:
        translations = (
            text for lines in read_lines_together(file, given, _LINES) for _, text in lines
        )
        for stream, name in opened(files):
            for lines in read_lines_together(stream, name, _LINES):
                texts = list(islice(translations, len(lines)))
                pairs = [
                    ([*translator.ids(sentence), EOS], [*translator.ids(text, given=True), EOS])
                    for (_, sentence), text in zip(lines, texts, strict=False)
                ]
                fit = list(takewhile(lambda pair: max(map(len, pair)) <= most, pairs))
                scores = _scores(translator, fit)
                yield [f"{s:.6f}\t{text}" for s, text in zip(scores, texts, strict=False)]
                done += len(fit)
                if len(fit) < len(pairs):
                    source, target = map(len, pairs[len(fit)])
                    raise UserError(
                        f"{name}:{lines[len(fit)][0]} and {given}:{done + 1}: {source} and "
                        f"{target} tokens with EOS: model.max_positions is {most}"
                    )
                if len(texts) < len(lines):
                    place = f"{name}:{lines[len(texts)][0]}"
                    raise UserError(f"{place}: no translation: {given} ends at line {done}")
        if next(translations, None) is not None:
            whole = ", ".join(files) or "standard input"
            raise UserError(
                f"{given}:{done + 1}: a translation of no line: {whole} ends at line {done}"
            )


def _scores(translator: Translator, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    """The score of each pair, see beam_search.Hypothesis; 0 for a pair of empty lines."""
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    logs = token_log_probs(translator.model, sources, targets)
    return [
        0.0
        if source == target == [EOS]
        else sum(log) / length_penalty(len(target), translator.decode)
        for (source, target), log in zip(pairs, logs, strict=True)
    ]
