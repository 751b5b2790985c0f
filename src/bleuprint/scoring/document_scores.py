"""Scores of documents: d-BLEU, each document's own scores, and intervals by document.

Sentences of one document have topic and style in common, and so do their translations. An interval
by document resamples whole documents, so it holds for other documents of the same kind; one by line
holds for other lines.
"""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from bleuprint.scoring import metrics
from bleuprint.scoring.documents import concatenated, lines_of, summed
from bleuprint.scoring.metrics import DIGITS, Score, sacrebleu_metrics
from bleuprint.scoring.significance import line_statistics, resampled_counts, resampled_scores

# The metrics with intervals by document, by their keys in scores.json.
KEYS = ("bleu", "chrf")


class Interval(TypedDict):
    """The 95 % interval of a corpus score by bootstrap over documents."""

    low: float
    high: float


class DocumentScore(TypedDict):
    """The corpus scores of the lines of one document."""

    document: str
    lines: int
    bleu: float
    chrf: float


class ByDocument(TypedDict):
    """What scores.json has of a test set that says its documents.

    `intervals` are by KEYS; there are none of a single document.
    """

    dbleu: Score
    intervals: dict[str, Interval]
    each: list[DocumentScore]


def document_scores(
    hypotheses: Sequence[str], references: Sequence[str], language: str, documents: Sequence[str]
) -> ByDocument:
    """The scores of a test set by document; `documents`: the document of each line.

    d-BLEU (Liu et al. 2020, "Multilingual Denoising Pre-training for Neural Machine Translation")
    is BLEU with each document as one line, so that n-grams may match across sentences.
    """
    lines, own = lines_of(documents), dict[str, list[float]]()
    intervals: dict[str, Interval] = {}
    metrics_of_lines = sacrebleu_metrics(references, language)
    for key in KEYS:
        metric = metrics_of_lines[key]
        sums = summed(line_statistics(metric, hypotheses), documents)
        each = [metric._compute_score_from_stats(row).score for row in sums.astype(int).tolist()]
        own[key] = [round(score, DIGITS) for score in each]
        if len(lines) > 1:
            resampled = resampled_scores(metric, sums, resampled_counts(len(lines)))
            intervals[key] = _interval(sorted(resampled))
    hypothesis, reference = (concatenated(text, documents) for text in (hypotheses, references))
    dbleu = metrics.bleu(hypothesis, reference, language)
    return {
        "dbleu": {
            "score": dbleu["score"],
            "low": dbleu["low"],
            "high": dbleu["high"],
            "signature": dbleu["signature"],
        },
        "intervals": intervals,
        "each": [
            {"document": document, "lines": len(of), "bleu": bleu, "chrf": chrf}
            for (document, of), bleu, chrf in zip(
                lines.items(), own["bleu"], own["chrf"], strict=True
            )
        ],
    }


def _interval(ranked: Sequence[float]) -> Interval:
    """As sacreBLEU's: the resamples' mean and half the distance of their percentiles."""
    cut = len(ranked) // 40
    mean, half = float(np.mean(ranked)), float(ranked[-1 - cut] - ranked[cut]) / 2
    return {
        "low": max(0.0, round(mean - half, DIGITS)),
        "high": min(100.0, round(mean + half, DIGITS)),
    }
