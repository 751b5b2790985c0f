"""BLEU, chrF2, chrF2++ and TER, and BLEU of documents: their statistics are sacreBLEU's."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sacrebleu import CHRF, TER
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import DIGITS, Agreement, Floats, Metric, Texts
from bleuprint.scoring.significance import RESAMPLES, SEED

# Translations and references.
Sides = tuple[Sequence[str], Sequence[str]]


def _lines(texts: Texts) -> Sides:
    return texts.hypotheses, texts.references


def _documents(texts: Texts) -> Sides | None:
    """Each document as one line, its sentences separated by spaces."""
    if not texts.documents:
        return None
    hypotheses, references = (
        [" ".join(side[line] for line in lines) for lines in texts.documents]
        for side in _lines(texts)
    )
    return hypotheses, references


def sacrebleu_metric(
    key: str,
    label: str,
    make: Callable[[Sequence[str], str], SacrebleuMetric],
    sides: Callable[[Texts], Sides | None] = _lines,
    resampled: bool = True,
    **given: Any,
) -> Metric:
    """A metric that is scored by what `make` makes of references and the target language.

    `resampled`: the signature names the resamples.
    """
    value_of = make([""], "en")  # of sums of any language

    def signature(texts: Texts) -> str:
        scorer = make(texts.references[:1], texts.language)
        if resampled:
            scorer.n_bootstrap, scorer.seed = RESAMPLES, str(SEED)
        return str(scorer.get_signature().format())

    @lru_cache(maxsize=1)  # of BLEU, two metrics take them
    def statistics(texts: Texts) -> Any:
        if (found := sides(texts)) is None:
            return None
        return make(found[1], texts.language)._extract_corpus_statistics(found[0], None)

    def value(sums: Floats) -> list[float]:
        """The scores of rows of sums; of resamples in float32, as sacreBLEU has them."""
        rows: Any = sums if sums.dtype == np.float32 else sums.astype(np.int64).tolist()
        return [value_of._compute_score_from_stats(row).score for row in rows]

    return Metric(
        key, label, statistics, value, signature=signature, has_float32_sums=True, **given
    )


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
    make=lambda references, _: CHRF(references=[references]),
    about="Characters in place of words: n-grams of up to six; 100 is the maximum.",
    agreement={"": Agreement(92.999999999972, 1.1142732157139852, 90.0)},
    is_beside_bleu=True,
)
CHRF2PP = sacrebleu_metric(
    key="chrf2pp",
    label="chrF2++",
    make=lambda references, _: CHRF(word_order=2, references=[references]),
    about="chrF2 of characters and, in addition, of words and pairs of words.",
)
TER_METRIC = sacrebleu_metric(
    key="ter",
    label="TER",
    make=lambda references, _: TER(references=[references]),
    about=(
        "Edits (words inserted, deleted, replaced, runs of words moved) per 100 words of the "
        "references; lower is better."
    ),
    highest=np.inf,
    lower_is_better=True,
)
DBLEU = sacrebleu_metric("dbleu", "d-BLEU", bleu_metric, sides=_documents, group="document")
# Tokens of the translations and of the references, as BLEU counts them: its first statistics.
LENGTH_RATIO = Metric(
    key="length_ratio",
    label="Length ratio",
    statistics=BLEU_METRIC.statistics,
    value=lambda sums: sums[:, 0] / np.maximum(sums[:, 1], 1),
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
    scorer = bleu_metric([], language, effective_order=True)
    return [
        round(scorer.sentence_score(translation, [reference]).score, DIGITS)
        for translation, reference in zip(translations, references, strict=True)
    ]
