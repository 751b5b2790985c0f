"""Paired tests of differences in all metrics, as sacreBLEU's --paired-bs and --paired-ar.

One set of resamples, and one of trials, serves every metric, so that their p-values are of the same
lines. A test set is held in memory together with the samples: about 10 bytes a line for each of the
10,000 trials of approximate randomization.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import estimate_ci

from bleuprint.scoring.documents import summed
from bleuprint.scoring.metrics import DIGITS, RESAMPLES, SEED, sacrebleu_metrics

TRIALS = 10_000
SIGNIFICANT = 0.05

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTest:
    """p-values of a difference by paired bootstrap and approximate randomization.

    The bootstrap (Koehn 2004) resamples the test set; randomization (Riezler and Maxwell 2005)
    swaps lines between the systems and makes fewer assumptions. As in sacreBLEU, randomization
    counts trials with a larger difference, not those with an equal one: for systems that differ in
    one or two lines, its p-value is too small. `standard_error` is the standard deviation of the
    resamples' difference, in points of the metric. `by_document`: the same tests with whole
    documents in place of lines, where a test set says two or more.
    """

    bootstrap: float
    randomization: float
    standard_error: float
    by_document: "PairedTest | None" = None


class _Samples:
    """Resamples and trials of a number of lines, or documents."""

    def __init__(self, number: int) -> None:
        self.resamples, self.trials = resampled_counts(number), _trials(number)


def paired_tests(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    language: str,
    documents: Sequence[str] | None = None,
) -> dict[str, dict[str, PairedTest]]:
    """The tests of each system's difference from the first system, by the keys of METRICS.

    `documents`: the document of each line, for tests by document. Identical translations have p =
    1: sacreBLEU counts samples with a difference above 0, and would report them as significantly
    different. So has a test set of a single line, whose samples are all the same.
    """
    (_, baseline), *others = systems.items()
    metrics = sacrebleu_metrics(references, language)
    by_line, by_document = _Samples(len(references)), None
    if documents and (number := len(set(documents))) > 1:
        by_document = _Samples(number)
    tested: dict[str, dict[str, PairedTest]] = {name: {} for name, _ in others}
    for key, metric in metrics.items():
        first = line_statistics(metric, baseline)
        for name, lines in others:
            second, same = line_statistics(metric, lines), list(lines) == list(baseline)
            found = _test(metric, first, second, by_line, same)
            if documents and by_document:
                sums = summed(first, documents), summed(second, documents)
                found = replace(found, by_document=_test(metric, *sums, by_document, same))
            tested[name][key] = found
    return tested


def paired_test_of_means(first: Sequence[float], second: Sequence[float]) -> PairedTest:
    """The test of the difference of two systems' means of a score by line.

    With the resamples and trials of `paired_tests`. Equal scores, or a single line, have p = 1.
    """
    deltas = np.array(second) - np.array(first)
    differences = resampled_counts(len(deltas)) @ deltas / len(deltas)
    error = round(float(differences.std(ddof=1)), DIGITS)
    if len(deltas) == 1 or not deltas.any():
        return PairedTest(1.0, 1.0, error)
    difference = abs(float(deltas.mean()))
    swapped = np.abs((2 * _trials(len(deltas)) - 1) @ deltas) / len(deltas)
    return PairedTest(bootstrap_p(differences, difference), _p_value(swapped, difference), error)


def mean_interval(scores: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean of a score by line, as sacreBLEU has its intervals.

    The mean of the resamples plus and minus half the distance of their percentiles.
    """
    means = resampled_counts(len(scores)) @ np.array(scores) / len(scores)
    mean, half = estimate_ci(means)
    return round(float(mean - half), DIGITS), round(float(mean + half), DIGITS)


def _test(
    metric: Metric, first: _Floats, second: _Floats, samples: _Samples, same: bool
) -> PairedTest:
    """The tests of the difference between systems, by their statistics of lines or documents."""
    differences = resampled_scores(metric, second, samples.resamples)
    differences -= resampled_scores(metric, first, samples.resamples)
    error = round(float(differences.std(ddof=1)), DIGITS)
    if len(first) == 1 or same:
        return PairedTest(1.0, 1.0, error)
    difference = _difference(metric, first, second)
    swapped = _swapped_differences(metric, first, second, samples.trials)
    return PairedTest(bootstrap_p(differences, difference), _p_value(swapped, difference), error)


def resampled_counts(lines: int) -> _Floats:
    """How often each of RESAMPLES resamples (rows) has each line, with sacreBLEU's seed."""
    drawn = np.random.default_rng(SEED).choice(lines, size=(RESAMPLES, lines), replace=True)
    return np.stack([np.bincount(each, minlength=lines) for each in drawn]).astype(np.float64)


def resampled_scores(metric: Metric, statistics: _Floats, counts: _Floats) -> _Floats:
    """The score of each resample; `statistics`: a row for each line.

    In float32, as sacreBLEU has the sums of resamples.
    """
    sums = (counts @ statistics).astype(np.float32)
    return np.array([metric._compute_score_from_stats(each).score for each in sums])


def bootstrap_p(differences: _Floats, difference: float) -> float:
    """The p-value of a difference, 0 or more, from those of the resamples, as sacreBLEU has it."""
    sampled = np.abs(differences)
    return _p_value(sampled - sampled.mean(), difference)


def _trials(lines: int) -> _Floats:
    """For each trial (row), 1 where a line stays with its system and 0 where it is swapped."""
    generator = np.random.default_rng(SEED)
    return generator.integers(2, size=(TRIALS, lines), dtype=bool).astype(np.float64)


def line_statistics(metric: Metric, lines: Sequence[str]) -> _Floats:
    """sacreBLEU's sufficient statistics of each line: whole numbers."""
    return np.array(metric._extract_corpus_statistics(lines, None), dtype=np.float64)


def _swapped_differences(
    metric: Metric, first: _Floats, second: _Floats, trials: _Floats
) -> _Floats:
    """The size of the difference in each trial of randomization."""
    kept = trials @ (first - second)
    one, other = kept + second.sum(0), first.sum(0) - kept
    return np.abs(_scores(metric, one) - _scores(metric, other))


def _difference(metric: Metric, first: _Floats, second: _Floats) -> float:
    one, other = _scores(metric, np.stack([first.sum(0), second.sum(0)]))
    return abs(float(one - other))


def _scores(metric: Metric, sums: _Floats) -> _Floats:
    rows = sums.astype(np.int64).tolist()
    return np.array([metric._compute_score_from_stats(row).score for row in rows])


def _p_value(sampled: _Floats, difference: float) -> float:
    """(samples above the difference + 1) / (samples + 1), which is never 0."""
    return round((int((sampled > difference).sum()) + 1) / (len(sampled) + 1), DIGITS)
