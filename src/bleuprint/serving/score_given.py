"""Scores of given translations under the model."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from bleuprint.corpus.download.formats.lines import read_plain
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import length_penalty
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.runtime.errors import UserError
from bleuprint.serving.translator import Translator
from bleuprint.text.parallel import Pair

# Lines that are scored together, at most.
_LINES = 512


def score_file(translator: Translator, source: Path, given: Path) -> Iterator[list[str]]:
    """SCORE<TAB>TEXT for each line of `given`: a translation of that line of `source`.

    Raises UserError if the numbers of lines differ, or if a sentence is too long for the model.
    """
    most = translator.model.settings.max_positions
    texts = enumerate(_pairs(source, given), 1)
    while block := list(islice(texts, _LINES)):
        pairs = []
        for number, text in block:
            pair = [*translator.ids(text.source), EOS], [*translator.ids(text.target, True), EOS]
            if max(map(len, pair)) > most:
                raise UserError(
                    f"{source}:{number} and {given}:{number}: {len(pair[0])} and {len(pair[1])} "
                    f"tokens with EOS: model.max_positions is {most}"
                )
            pairs.append(pair)
        scores = _scores(translator, pairs)
        yield [f"{s:.6f}\t{text.target}" for s, (_, text) in zip(scores, block, strict=True)]


def _pairs(source: Path, given: Path) -> Iterator[Pair]:
    with source.open("rb") as sources, given.open("rb") as translations:
        yield from read_plain([sources, translations], [str(source), str(given)])


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
