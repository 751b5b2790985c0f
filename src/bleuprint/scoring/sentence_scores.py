"""sacreBLEU's scores of single sentences: to find lines to look at, not to compare systems by."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS


def sentence_bleu(
    translations: Sequence[str], references: Sequence[str], language: str
) -> list[float]:
    """The BLEU of each line, 0 to 100, up to the longest n-grams that it has."""
    metric = BLEU(effective_order=True, trg_lang=bleu_metric([], language).trg_lang)
    return _scores(metric, translations, references)


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF2 of each line, 0 to 100."""
    return _scores(CHRF(), translations, references)


def _scores(
    metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]
) -> list[float]:
    return [
        round(metric.sentence_score(translation, [reference]).score, DIGITS)
        for translation, reference in zip(translations, references, strict=True)
    ]
