"""Translating lines of several sentences one sentence at a time, as systems are trained.

A line of three sentences is unlike the training text, and a system often translates the first one
and a half of them. Sentences are found by sentencex: it is maintained (Wikimedia), knows the
abbreviations and sentence ends of some 300 languages, loads no model, and loses no character.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import sentencex

from bleuprint.decoding.beam_search import length_penalty
from bleuprint.scoring.bleu import is_chinese
from bleuprint.serving.translator import Translated, Translation, Translator

# The characters among which the end of a sentence is searched at once: sentencex compares all
# quotation marks of a text with each other.
_WINDOW = 10_000


class SentenceTranslator(Translator):
    """Translates the sentences of each line and joins their translations.

    A line of one sentence is translated as by `Translator`. One of several has one translation,
    whatever number is requested; its score is the sum of the sentences' log-probabilities, divided
    by the length penalty of all their tokens.
    """

    def __call__(self, sentences: Sequence[str], best: int = 1) -> list[Translated]:
        lines = [split_sentences(text, self.source) for text in sentences]
        found = iter(super().__call__([each for line in lines for each in line], best))
        return [self._joined(list(islice(found, len(line)))) for line in lines]

    def _joined(self, parts: list[Translated]) -> Translated:
        if len(parts) == 1:
            return parts[0]
        counts = [sum(len(piece.tokens) + 1 for piece in part.pieces) for part in parts]
        log = sum(
            part.best[0].score * length_penalty(count, self.decode)
            for part, count in zip(parts, counts, strict=True)
            if count
        )
        target = self.target
        space = "" if is_chinese(target) or target in ("ja", "jpn") else " "
        text = space.join(filter(None, (part.best[0].text for part in parts)))
        score = log / length_penalty(sum(counts), self.decode) if log else 0.0
        pieces = [piece for part in parts for piece in part.pieces]
        words = [word for part in parts for word in part.words]
        beyond = max(part.beyond for part in parts)
        return Translated([Translation(text, score)], beyond, pieces, words)


def split_sentences(line: str, language: str) -> list[str]:
    """The sentences of a line, which joined are the line; one if it has no end of a sentence.

    What has no letter, such as the number of a heading, stays with the sentence after it.
    """
    sentences, start = list[str](), ""
    for part in _segments(line, language):
        start += part
        if any(map(str.isalpha, part)):
            sentences.append(start)
            start = ""
    return [*sentences[:-1], sentences[-1] + start] if sentences else [line]


def _segments(line: str, language: str) -> Iterator[str]:
    """sentencex's sentences, of a long line window by window; each window begins with a sentence.

    A sentence longer than a window is cut at its last space.
    """
    start = 0
    while start < len(line):
        window = line[start : start + _WINDOW]
        parts = list(sentencex.segment(language, window))
        if start + _WINDOW < len(line):
            parts = parts[:-1] or [window[: window.rfind(" ") + 1] or window]
        yield from parts
        start += sum(map(len, parts))
