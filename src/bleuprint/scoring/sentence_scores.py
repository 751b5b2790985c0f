"""sacreBLEU's scores of single sentences, for finding examples, not for comparing systems."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metrics import DIGITS


def sentence_bleu(
    translations: Sequence[str], references: Sequence[str], language: str
) -> list[float]:
    """BLEU of each line, 0 to 100, with effective order (no n-grams longer than the line)."""
    metric = BLEU(effective_order=True, trg_lang=bleu_metric([], language).trg_lang)
    return _scores(metric, translations, references)


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF2 of each line, 0 to 100."""
    return _scores(CHRF(), translations, references)


def _scores(
    metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]
) -> list[float]:
    return [
        round(metric.sentence_score(translation, [reference]).score, DIGITS)
        for translation, reference in zip(translations, references, strict=True)
    ]
