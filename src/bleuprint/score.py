"""Scores of translations against references: sacreBLEU's figures, intervals and paired tests.

sacreBLEU computes every number, and each carries its signature. A test set is held in memory,
and with it the bootstrap's resamples: 72 bytes for each line and resample.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from sacrebleu import CHRF
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.base import Score as SacrebleuScore

from bleuprint.bleu import bleu_metric
from bleuprint.errors import UserError
from bleuprint.files import sha256_of, write_json
from bleuprint.layout import Cell, folder
from bleuprint.pairs import TextFolder, read_pairs
from bleuprint.settings import Corpus, Settings

RESAMPLES = 1000
SEED = 12345
DIGITS = 6


class Score(TypedDict):
    """A score with its 95 % bootstrap interval, in points from 0 to 100."""

    score: float
    low: float
    high: float
    signature: str


class BleuScore(Score):
    """BLEU, with the penalty it holds for translations shorter than the references."""

    brevity_penalty: float


class SetScores(TypedDict):
    """What scores.json holds for one test set; the last three are SHA-256 of files."""

    lines: int
    bleu: BleuScore
    chrf: Score
    sources: str
    references: str
    hypotheses: str


def bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> BleuScore:
    """Cased BLEU, with the tokenizer sacreBLEU chooses for the target language (mostly 13a)."""
    metric = bleu_metric(references, language)
    with _fixed_seed():
        result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    score = _score(metric, result)
    return {**score, "brevity_penalty": round(result.bp, DIGITS)}


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """chrF2 of character 6-grams, cased, without spaces."""
    metric = _Chrf(references=[references])
    with _fixed_seed():
        result = metric.corpus_score(hypotheses, None, n_bootstrap=RESAMPLES)
    return _score(metric, result)


def paired_tests(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], language: str
) -> dict[str, float]:
    """The p-value of each system's difference in BLEU from the first system's.

    sacreBLEU's paired bootstrap. Identical translations get 1: its estimate, which counts the
    resamples that differ by more than none, would call them significantly different.
    """
    from sacrebleu.significance import PairedTest, Result

    baseline, *others = systems
    metrics = {"BLEU": bleu_metric(references, language)}
    with _fixed_seed():
        test = PairedTest(list(systems.items()), metrics, None, "bs", n_samples=RESAMPLES)
        _, results = test()
    p_values = {}
    for name, result in zip(others, results["BLEU"][1:], strict=True):
        assert isinstance(result, Result) and result.p_value is not None
        same = list(systems[name]) == list(systems[baseline])
        p_values[name] = 1.0 if same else round(result.p_value, DIGITS)
    return p_values


def names_of_tests(corpus: Corpus, texts: TextFolder) -> list[str]:
    """The test sets of a corpus: in the order of params.yaml, then those that split has made."""
    found = [name.removeprefix("test.") for name in texts.names() if name.startswith("test.")]
    missing = [name for name in corpus.files.tests if name not in found]
    if missing:
        raise UserError(f"{texts.files(f'test.{missing[0]}')[0]}: no such file")
    if not found:
        raise UserError(f"{texts.path}: holds no test set")
    return [*corpus.files.tests, *(name for name in found if name not in corpus.files.tests)]


def score_files(sources: Path, references: Path, hypotheses: Path, language: str) -> SetScores:
    """Score one file of translations; raises UserError if it is not parallel to the references."""
    pairs = list(read_pairs(references, hypotheses))
    if not pairs:
        raise UserError(f"{references}: no lines: nothing to score")
    expected, found = zip(*pairs, strict=True)
    return {
        "lines": len(pairs),
        "bleu": bleu(found, expected, language),
        "chrf": chrf(found, expected),
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
    }


def score_cell(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a system's translations of all test sets of a corpus and write its scores.json."""
    settings.system(system)
    if seed not in settings.seeds:
        raise UserError(f"params.yaml: no seed {seed}; seeds are {list(settings.seeds)}")
    entry = settings.corpus(corpus)
    texts = TextFolder(root / folder(corpus, "split"), entry.source, entry.target)
    cell = root / Cell(system, corpus, seed).results
    scores = {}
    for test in names_of_tests(entry, texts):
        sources, references = texts.files(f"test.{test}")
        hypotheses = cell / "hypotheses" / references.name
        scores[test] = score_files(sources, references, hypotheses, entry.target)
    write_json(cell / "scores.json", scores)
    return scores


def _score(metric: Metric, result: SacrebleuScore) -> Score:
    """The score as sacreBLEU prints it, its interval of mean +- half a width as two bounds."""
    signature = metric.get_signature().format()
    printed = json.loads(result.format(DIGITS, False, signature, True))
    # sacreBLEU prints no interval where every resample scored 0. One of a skewed distribution
    # is centred on the mean all the same and can reach beyond the scale.
    mean, half = printed.get("confidence_mean", 0.0), printed.get("confidence_var", 0.0)
    return {
        "score": printed["score"],
        "low": max(0.0, round(mean - half, DIGITS)),
        "high": min(100.0, round(mean + half, DIGITS)),
        "signature": signature,
    }


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """Hold sacreBLEU to its default seed: it reads another from the environment."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(SEED)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


class _Chrf(CHRF):
    """chrF that can resample translations some of which score nothing.

    sacreBLEU's resamples are float32, but for a score of 0, a float; it cannot sort both.
    """

    def _compute_score_from_stats(self, statistics: list[int]) -> Any:
        result = super()._compute_score_from_stats(statistics)
        if not result.score:
            result.score = cast(float, np.float32(0))
        return result
