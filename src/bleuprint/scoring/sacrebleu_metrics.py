"""BLEU, chrF2, chrF2++ and TER, and BLEU of documents: their statistics are sacreBLEU's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sacrebleu import CHRF, TER
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import DIGITS, Agreement, Floats, Metric, Texts
from bleuprint.scoring.significance import RESAMPLES, SEED


@dataclass(frozen=True)
class Sides:
    """What sacreBLEU compares: lines of translations and of references."""

    hypotheses: Sequence[str]
    references: Sequence[str]


# Creates sacreBLEU's metric for references in a target language.
Maker = Callable[[Sequence[str], str], SacrebleuMetric]


def _lines(texts: Texts) -> Sides:
    """Return the lines of a test set as they are."""
    return Sides(texts.hypotheses, texts.references)


def _documents(texts: Texts) -> Sides | None:
    """Return each document as one line; None if the test set has no documents."""
    if not texts.documents:
        return None
    return Sides(
        hypotheses=_join_documents(texts.hypotheses, texts.documents),
        references=_join_documents(texts.references, texts.documents),
    )


def _join_documents(lines: Sequence[str], documents: Sequence[Sequence[int]]) -> list[str]:
    """Return each document as one line, its sentences separated by spaces."""
    joined = []
    for rows in documents:
        joined.append(" ".join([lines[row] for row in rows]))
    return joined


def sacrebleu_metric(
    key: str,
    label: str,
    make: Maker,
    sides: Callable[[Texts], Sides | None] = _lines,
    is_resampled: bool = True,
    **options: Any,
) -> Metric:
    """Return a metric that sacreBLEU computes.

    Args:
        key: Its name in results.
        label: Its name in tables.
        make: Creates sacreBLEU's metric for references in a target language.
        sides: Returns what is compared; None if the metric does not apply to a test set.
        is_resampled: Whether the signature names the resamples of the interval.
        options: Other attributes of `Metric`.
    """
    # The value of sums does not depend on references or language.
    value_scorer = make([""], "en")

    def signature(texts: Texts) -> str:
        """Return sacreBLEU's signature, with the number and the seed of the resamples."""
        scorer = make(texts.references[:1], texts.language)
        if is_resampled:
            scorer.n_bootstrap = RESAMPLES
            scorer.seed = str(SEED)
        return str(scorer.get_signature().format())

    @lru_cache(maxsize=1)  # BLEU and the length ratio share BLEU's counts.
    def statistics(texts: Texts) -> Any:
        """Return sacreBLEU's counts of each line; None if the metric does not apply."""
        compared = sides(texts)
        if compared is None:
            return None
        scorer = make(compared.references, texts.language)
        return scorer._extract_corpus_statistics(compared.hypotheses, None)

    def value(sums: Floats) -> list[float]:
        """Return the scores of rows of sums; of resamples in float32, as in sacreBLEU."""
        rows: Any = sums if sums.dtype == np.float32 else sums.astype(np.int64).tolist()
        return [value_scorer._compute_score_from_stats(row).score for row in rows]

    return Metric(
        key,
        label,
        statistics,
        value,
        signature=signature,
        has_float32_sums=True,
        **options,
    )


def _make_chrf(references: Sequence[str], _: str) -> CHRF:
    """Return sacreBLEU's chrF2."""
    return CHRF(references=[references])


def _make_chrf_with_words(references: Sequence[str], _: str) -> CHRF:
    """Return sacreBLEU's chrF2++: n-grams of up to two words are counted, too."""
    return CHRF(word_order=2, references=[references])


def _make_ter(references: Sequence[str], _: str) -> TER:
    """Return sacreBLEU's TER."""
    return TER(references=[references])


def _length_ratio(sums: Floats) -> Floats:
    """Return the tokens of the translations per token of the references, for rows of BLEU's sums.

    BLEU's first two counts are these tokens.
    """
    hypothesis_tokens = sums[:, 0]
    reference_tokens = sums[:, 1]
    # At least 1, so that nothing is divided by 0.
    ratios: Floats = hypothesis_tokens / np.maximum(reference_tokens, 1)
    return ratios


BLEU_METRIC = sacrebleu_metric(
    key="bleu",
    label="BLEU",
    make=bleu_metric,
    about="n-grams of up to four tokens, in the tokens of the target language; 100 is the maximum.",
    agreement={"": Agreement(88.33333333333225, 0.9663926931178954, 85.0)},
    is_on_screen=True,
)
CHRF2 = sacrebleu_metric(
    key="chrf2",
    label="chrF2",
    make=_make_chrf,
    about="Characters in place of words: n-grams of up to six; 100 is the maximum.",
    agreement={"": Agreement(92.999999999972, 1.1142732157139852, 90.0)},
    is_beside_bleu=True,
)
CHRF2PP = sacrebleu_metric(
    key="chrf2pp",
    label="chrF2++",
    make=_make_chrf_with_words,
    about="chrF2 of characters and, in addition, of words and pairs of words.",
)
TER_METRIC = sacrebleu_metric(
    key="ter",
    label="TER",
    make=_make_ter,
    about=(
        "Edits (words inserted, deleted, replaced, runs of words moved) per 100 words of the "
        "references; lower is better."
    ),
    highest=np.inf,
    lower_is_better=True,
)
DBLEU = sacrebleu_metric(
    key="dbleu",
    label="d-BLEU",
    make=bleu_metric,
    sides=_documents,
    group="document",
)
LENGTH_RATIO = Metric(
    key="length_ratio",
    label="Length ratio",
    statistics=BLEU_METRIC.statistics,
    value=_length_ratio,
    kind="figure",
    digits=3,
    highest=np.inf,
)


def sentence_bleu(
    translations: Sequence[str], references: Sequence[str], language: str
) -> list[float]:
    """Return BLEU of each line, 0 to 100, to find examples; systems are compared by corpus BLEU.

    The order is effective: n-grams that are longer than the line do not count.

    Args:
        translations: The translations.
        references: The references, parallel to them.
        language: The target language, which chooses the tokenizer.
    """
    scorer = bleu_metric([], language, effective_order=True)
    scores = []
    for translation, reference in zip(translations, references, strict=True):
        score = scorer.sentence_score(translation, [reference]).score
        scores.append(round(score, DIGITS))
    return scores
