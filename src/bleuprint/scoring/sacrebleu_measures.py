"""BLEU, chrF2, chrF2++ and TER, and BLEU of documents: their statistics are sacreBLEU's."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sacrebleu import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.measure import DIGITS, Floats, Measure, Texts
from bleuprint.scoring.significance import RESAMPLES, SEED

_Make = Callable[[Texts], Metric]


def sacrebleu_measure(
    key: str, label: str, make: _Make, value_of: Metric, resampled: bool = True, **given: Any
) -> Measure:
    """A measure of a metric; `value_of` has its options, but may have another tokenizer.

    `resampled`: the signature names the resamples.
    """

    def signature(texts: Texts) -> str:
        metric = make(texts)
        if resampled:
            metric.n_bootstrap, metric.seed = RESAMPLES, str(SEED)
        return str(metric.get_signature().format())

    @lru_cache(maxsize=1)  # of BLEU, two measures take them
    def statistics(texts: Texts) -> Any:
        return make(texts)._extract_corpus_statistics(texts.hypotheses, None)

    return Measure(
        key, label, statistics, sacrebleu_value(value_of), signature=signature, single=True, **given
    )


def sacrebleu_value(metric: Metric) -> Callable[[Floats], list[float]]:
    """The scores of rows of sums; of resamples in float32, as sacreBLEU has them."""

    def value(sums: Floats) -> list[float]:
        rows: Any = sums if sums.dtype == np.float32 else sums.astype(np.int64).tolist()
        return [metric._compute_score_from_stats(row).score for row in rows]

    return value


def _by_document(texts: Texts) -> Any:
    """BLEU's statistics of documents, each as one line, its sentences separated by spaces."""
    if not texts.documents:
        return None
    hypotheses, references = (
        [" ".join(side[line] for line in lines) for lines in texts.documents]
        for side in (texts.hypotheses, texts.references)
    )
    return bleu_metric(references, texts.language)._extract_corpus_statistics(hypotheses, None)


def _bleu(texts: Texts) -> BLEU:
    return bleu_metric(texts.references, texts.language)


_VALUE = BLEU(tokenize="none", force=True)

BLEU_MEASURE = sacrebleu_measure(
    *("bleu", "BLEU", _bleu, _VALUE),
    about="n-grams of up to four tokens, in the tokens of the target language; 100 is the maximum.",
)
CHRF2 = sacrebleu_measure(
    *("chrf2", "chrF2", lambda texts: CHRF(references=[texts.references]), CHRF()),
    about="Characters in place of words: n-grams of up to six; 100 is the maximum.",
)
CHRF2PP = sacrebleu_measure(
    *("chrf2pp", "chrF2++"),
    *(lambda texts: CHRF(word_order=2, references=[texts.references]), CHRF(word_order=2)),
    about="chrF2 of characters and, in addition, of words and pairs of words.",
)
TER_MEASURE = sacrebleu_measure(
    *("ter", "TER", lambda texts: TER(references=[texts.references]), TER()),
    about=(
        "Edits (words inserted, deleted, replaced, runs of words moved) per 100 words of the "
        "references; lower is better."
    ),
    highest=np.inf,
    lower_is_better=True,
)
DBLEU = Measure(
    *("dbleu", "d-BLEU", _by_document, BLEU_MEASURE.value),
    signature=BLEU_MEASURE.signature,
    single=True,
    group="document",
)
# Tokens of the translations and of the references, as BLEU counts them: its first statistics.
LENGTH_RATIO = Measure(
    *("length_ratio", "Length ratio", BLEU_MEASURE.statistics),
    lambda sums: sums[:, 0] / np.maximum(sums[:, 1], 1),
    kind="figure",
    digits=3,
    highest=np.inf,
)


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
