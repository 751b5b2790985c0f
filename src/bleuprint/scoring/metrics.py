"""BLEU, chrF2, chrF2++ and TER with bootstrap intervals, all computed by sacreBLEU.

Every score has its signature. A test set is held in memory together with the bootstrap's resamples,
72 bytes a line and resample.
"""

import json
import math
import os
from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from sacrebleu import CHRF, TER
from sacrebleu.metrics.base import Metric

from bleuprint.scoring.bleu import bleu_metric

RESAMPLES = 1000
SEED = 12345
DIGITS = 6
# The metrics, by their key in scores.json; chrfpp is missing in those of earlier versions.
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "chrfpp": "chrF2++", "ter": "TER"}


class Score(TypedDict):
    """A score with its 95 % bootstrap interval, from 0 to 100; TER can be higher."""

    score: float
    low: float
    high: float
    signature: str


class BleuScore(Score):
    """BLEU with its brevity penalty.

    Lengths are in tokens of BLEU's tokenizer; `length_ratio` is the translations' length divided by
    the references', 0 if those are empty.
    """

    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    length_ratio: float


def bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> BleuScore:
    """Cased BLEU with sacreBLEU's tokenizer for the target language (mostly 13a)."""
    score, result = _score(bleu_metric(references, language), hypotheses)
    return {
        **score,
        "brevity_penalty": round(result.bp, DIGITS),
        "hypothesis_length": result.sys_len,
        "reference_length": result.ref_len,
        "length_ratio": round(result.ratio, DIGITS),
    }


def chrf(hypotheses: Sequence[str], references: Sequence[str], word_order: int = 0) -> Score:
    """chrF2 of character 6-grams, cased, without spaces; with `word_order` 2 chrF2++."""
    return _score(_Chrf(word_order=word_order, references=[references]), hypotheses)[0]


def ter(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Translation edit rate: edits per word of the references, lower-cased; lower is better.

    Tokens are separated by spaces, the default of sacreBLEU and Tercom.
    """
    return _score(_Ter(references=[references]), hypotheses, highest=math.inf)[0]


def sentence_bleu(
    translations: Sequence[str], references: Sequence[str], language: str
) -> list[float]:
    """BLEU of each line, 0 to 100, with effective order (no n-grams longer than the line).

    Scores of sentences find examples; they do not compare systems.
    """
    metric = bleu_metric([], language, effective_order=True)
    return [
        round(metric.sentence_score(translation, [reference]).score, DIGITS)
        for translation, reference in zip(translations, references, strict=True)
    ]


def sentence_chrf(translation: str, reference: str) -> float:
    """chrF2 of a line, 0 to 100."""
    return float(round(CHRF().sentence_score(translation, [reference]).score, DIGITS))


def sacrebleu_metrics(references: Sequence[str], language: str) -> dict[str, Metric]:
    """METRICS against `references`, with the options of the functions above."""
    return {
        "bleu": bleu_metric(references, language),
        "chrf": CHRF(references=[references]),
        "chrfpp": CHRF(word_order=2, references=[references]),
        "ter": TER(references=[references]),
    }


def fix_seed() -> None:
    """Make sacreBLEU use its default seed from now on, whatever the user's environment sets."""
    os.environ["SACREBLEU_SEED"] = str(SEED)


def _score(metric: Metric, hypotheses: Sequence[str], highest: float = 100.0) -> tuple[Score, Any]:
    """The score with its interval (mean +- half width) as two bounds, and sacreBLEU's result."""
    fix_seed()
    result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    signature = metric.get_signature().format()
    printed = json.loads(result.format(DIGITS, False, signature, True))
    # sacreBLEU prints no interval if every resample scored 0. Its intervals are symmetric around
    # the mean and can exceed the scale for skewed distributions.
    mean, half = printed.get("confidence_mean", 0.0), printed.get("confidence_var", 0.0)
    score: Score = {
        "score": printed["score"],
        "low": max(0.0, round(mean - half, DIGITS)),
        "high": min(highest, round(mean + half, DIGITS)),
        "signature": signature,
    }
    return score, result


class _Chrf(CHRF):
    def _compute_score_from_stats(self, statistics: list[int]) -> Any:
        return _sortable(super()._compute_score_from_stats(statistics))


class _Ter(TER):
    def _compute_score_from_stats(self, statistics: list[float]) -> Any:
        return _sortable(super()._compute_score_from_stats(statistics))


def _sortable(result: Any) -> Any:
    """The score of a resample, as float32 if it is 0 or 100.

    sacreBLEU's scores of resamples are float32, but these may be floats; it cannot sort both types.
    """
    if result.score in (0, 100):
        result.score = np.float32(result.score)
    return result
