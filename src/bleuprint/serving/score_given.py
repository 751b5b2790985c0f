"""Scores of given translations under the model."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bleuprint.corpus.download.formats.lines import read_plain
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import length_penalty
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.runtime.errors import UserError
from bleuprint.serving.translator import Translator

# Lines that are scored together, at most.
_LINES = 512


def score_file(translator: Translator, source: Path, given: Path) -> Iterator[list[str]]:
    """SCORE<TAB>TEXT for each line of `given`: a translation of that line of `source`.

    The score is that of beam_search.Hypothesis, 0 for a pair of empty lines. Raises UserError if
    the numbers of lines differ, or if a sentence is too long for the model.
    """
    most = translator.model.settings.max_positions
    with source.open("rb") as first, given.open("rb") as second:
        texts = enumerate(read_plain([first, second], [str(source), str(given)]), 1)
        while block := list(islice(texts, _LINES)):
            sources = [[*translator.ids(text.source), EOS] for _, text in block]
            targets = [[*translator.ids(text.target, True), EOS] for _, text in block]
            for (number, _), *ids in zip(block, sources, targets, strict=True):
                if max(map(len, ids)) > most:
                    raise UserError(
                        f"{source}:{number} and {given}:{number}: {len(ids[0])} and {len(ids[1])} "
                        f"tokens with EOS: model.max_positions is {most}"
                    )
            logs = token_log_probs(translator.model, sources, targets)
            scores = [
                0.0 if a == b == [EOS] else sum(log) / length_penalty(len(b), translator.decode)
                for a, b, log in zip(sources, targets, logs, strict=True)
            ]
            yield [f"{s:.6f}\t{text.target}" for s, (_, text) in zip(scores, block, strict=True)]
