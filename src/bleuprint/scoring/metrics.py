"""BLEU, chrF and TER with bootstrap intervals, all computed by sacreBLEU.

Every score has its signature. A test set is held in memory together with the bootstrap's resamples,
72 bytes a line and resample.
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict, cast

import numpy as np
from sacrebleu import CHRF, TER
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.base import Score as SacrebleuScore

from bleuprint.scoring.bleu import bleu_metric

RESAMPLES = 1000
SEED = 12345
DIGITS = 6


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
    metric = bleu_metric(references, language)
    with fixed_seed():
        result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    return {
        **_score(metric, result),
        "brevity_penalty": round(result.bp, DIGITS),
        "hypothesis_length": result.sys_len,
        "reference_length": result.ref_len,
        "length_ratio": round(result.ratio, DIGITS),
    }


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """chrF2 of character 6-grams, cased, without spaces."""
    metric = _Chrf(references=[references])
    with fixed_seed():
        result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    return _score(metric, result)


def ter(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Translation edit rate: edits per word of the references, lower-cased; lower is better.

    Tokens are separated by spaces, the default of sacreBLEU and Tercom.
    """
    metric = _Ter(references=[references])
    with fixed_seed():
        result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    return _score(metric, result, highest=math.inf)


@contextmanager
def fixed_seed() -> Iterator[None]:
    """Make sacreBLEU use its default seed whatever the environment sets."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(SEED)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


def _score(metric: Metric, result: SacrebleuScore, highest: float = 100.0) -> Score:
    """The score as sacreBLEU prints it, with the interval (mean +- half width) as two bounds."""
    signature = metric.get_signature().format()
    printed = json.loads(result.format(DIGITS, False, signature, True))
    # sacreBLEU prints no interval if every resample scored 0. Its intervals are symmetric around
    # the mean and can exceed the scale for skewed distributions.
    mean, half = printed.get("confidence_mean", 0.0), printed.get("confidence_var", 0.0)
    return {
        "score": printed["score"],
        "low": max(0.0, round(mean - half, DIGITS)),
        "high": min(highest, round(mean + half, DIGITS)),
        "signature": signature,
    }


class _Chrf(CHRF):
    """chrF whose bootstrap works if some resamples score 0.

    sacreBLEU's scores are float32, except for 0, which is a float; it cannot sort both.
    """

    def _compute_score_from_stats(self, statistics: list[int]) -> Any:
        result = super()._compute_score_from_stats(statistics)
        if not result.score:
            result.score = cast(float, np.float32(0))
        return result


class _Ter(TER):
    """TER whose bootstrap works if all references of a resample are empty; reason as above."""

    def _compute_score_from_stats(self, statistics: list[float]) -> Any:
        result = super()._compute_score_from_stats(statistics)
        if not statistics[1]:
            result.score = cast(float, np.float32(result.score))
        return result
