"""Scores of given translations under the model."""

from collections.abc import Iterator, Sequence
from itertools import islice
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
    done = 0
    with Path(given).open("rb") as file:
        translations = (
            text for lines in read_lines_together(file, given, _LINES) for _, text in lines
        )
        for stream, name in opened(files):
            for lines in read_lines_together(stream, name, _LINES):
                texts = list(islice(translations, len(lines)))
                sentences = [text for _, text in lines[: len(texts)]]
                scores, too_long = _scores(translator, sentences, texts)
                yield [
                    f"{score:.6f}\t{text}"
                    for score, text in zip(scores, texts[: len(scores)], strict=True)
                ]
                done += len(scores)
                if too_long:
                    place = f"{name}:{lines[len(scores)][0]} and {given}:{done + 1}"
                    raise UserError(f"{place}: {too_long}")
                if len(texts) < len(lines):
                    place = f"{name}:{lines[len(texts)][0]}"
                    raise UserError(f"{place}: no translation: {given} ends at line {done}")
        if next(translations, None) is not None:
            whole = ", ".join(files) or "standard input"
            raise UserError(
                f"{given}:{done + 1}: a translation of no line: {whole} ends at line {done}"
            )


def _scores(
    translator: Translator, sentences: Sequence[str], texts: Sequence[str]
) -> tuple[list[float], str]:
    """The score of each text (see beam_search.Hypothesis) up to a pair that is too long.

    The second value describes that pair; it is empty if there is none.
    """
    sources = [[*translator.ids(sentence), EOS] for sentence in sentences]
    targets = [[*translator.ids(text, given=True), EOS] for text in texts]
    most, too_long = translator.model.settings.max_positions, ""
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if max(len(source), len(target)) > most:
            too_long = (
                f"{len(source)} and {len(target)} tokens with EOS: model.max_positions is {most}"
            )
            sources, targets = sources[:i], targets[:i]
            break
    logs = token_log_probs(translator.model, sources, targets)
    penalties = (length_penalty(len(target), translator.decode) for target in targets)
    scores = [sum(log) / penalty for log, penalty in zip(logs, penalties, strict=True)]
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source == target == [EOS]:  # the empty translation of an empty line
            scores[i] = 0.0
    return scores, too_long
