"""BLEU, chrF2, chrF2++ and TER, and BLEU of documents: their statistics are sacreBLEU's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sacrebleu import CHRF, TER
from sacrebleu.metrics.base import Metric as SacrebleuMetric

from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import DIGITS, Agreement, Floats, Metric, TranslatedSet
from bleuprint.scoring.significance import RESAMPLES, SEED


@dataclass(frozen=True)
class ComparedLines:
    """What sacreBLEU compares: lines of translations and of references."""

    hypotheses: Sequence[str]
    references: Sequence[str]


# Creates sacreBLEU's metric, given references and the code of their language.
ScorerFactory = Callable[[Sequence[str], str], SacrebleuMetric]


def unchanged_lines(test_set: TranslatedSet) -> ComparedLines:
    """Return the translations and references of a test set as they are."""
    return ComparedLines(test_set.hypotheses, test_set.references)


def _documents(test_set: TranslatedSet) -> ComparedLines | None:
    """Return the translations and references of a test set, with one line for each document.

    Returns:
        None if the test set has no documents.
    """
    if not test_set.documents:
        return None
    return ComparedLines(
        hypotheses=_join_documents(test_set.hypotheses, test_set.documents),
        references=_join_documents(test_set.references, test_set.documents),
    )


def _join_documents(lines: Sequence[str], documents: Sequence[Sequence[int]]) -> list[str]:
    """Join the lines of each document to one line, separated by spaces.

    Args:
        lines: The lines of a test set.
        documents: For each document the indices of its lines.
    """
    joined_documents = []
    for line_indices in documents:
        document_lines = [lines[index] for index in line_indices]
        joined_documents.append(" ".join(document_lines))
    return joined_documents


def sacrebleu_metric(
    key: str,
    label: str,
    make_scorer: ScorerFactory,
    choose_lines: Callable[[TranslatedSet], ComparedLines | None] = unchanged_lines,
    is_resampled: bool = True,
    **options: Any,
) -> Metric:
    """Create a metric whose counts, values and signature come from sacreBLEU.

    Args:
        key: Its name in results, such as `bleu`.
        label: Its name in tables, such as `BLEU`.
        make_scorer: Creates sacreBLEU's object for references in a target language.
        choose_lines: Returns the lines to compare, or None if the metric does not apply to a test
            set.
        is_resampled: Whether the metric has a bootstrap interval. Then its signature contains the
            number of samples.
        options: Other attributes of `Metric`.
    """
    # Turns sums of counts into a score. The references and the language matter only for counting.
    value_scorer = make_scorer([""], "en")

    def signature(test_set: TranslatedSet) -> str:
        """Return sacreBLEU's signature, which says how the score was computed.

        It contains the number and the seed of the bootstrap's samples, if the metric has any.
        """
        scorer = make_scorer(test_set.references[:1], test_set.language)
        if is_resampled:
            scorer.n_bootstrap = RESAMPLES
            scorer.seed = str(SEED)
        return str(scorer.get_signature().format())

    @lru_cache(maxsize=1)  # BLEU and the length ratio need the same counts of a test set.
    def statistics(test_set: TranslatedSet) -> Any:
        """Return what sacreBLEU counts on each line, such as matching n-grams.

        Returns:
            A row of counts for each line; None if the metric does not apply to the test set.
        """
        compared_lines = choose_lines(test_set)
        if compared_lines is None:
            return None
        scorer = make_scorer(compared_lines.references, test_set.language)
        # With None, sacreBLEU uses the references that the scorer was created with.
        return scorer._extract_corpus_statistics(compared_lines.hypotheses, None)

    return Metric(
        key=key,
        label=label,
        statistics=statistics,
        value=partial(_scores_of_sums, value_scorer),
        signature=signature,
        has_float32_sums=True,
        **options,
    )


def _scores_of_sums(scorer: SacrebleuMetric, sums: Floats) -> list[float]:
    """Compute sacreBLEU's score from sums of its counts, with exactly its rounding.

    sacreBLEU sums the counts of a bootstrap sample as float32, but the counts of the test set
    itself as Python's whole numbers. The scores here must be equal to its scores to the last digit.

    Args:
        scorer: sacreBLEU's metric.
        sums: A row of sums for each group of lines; as float32 if the groups are bootstrap samples.

    Returns:
        The score of each row.
    """
    are_bootstrap_samples = sums.dtype == np.float32
    rows: Any = sums if are_bootstrap_samples else sums.astype(np.int64).tolist()
    return [scorer._compute_score_from_stats(row).score for row in rows]


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
    """Divide the length of the translations in tokens by the length of the references.

    Args:
        sums: Rows of sums of BLEU's counts; the first two sums in a row are these lengths.

    Returns:
        A ratio for each row.
    """
    hypothesis_tokens = sums[:, 0]
    reference_tokens = sums[:, 1]
    # At least 1, so that empty references do not cause a division by 0.
    ratios: Floats = hypothesis_tokens / np.maximum(reference_tokens, 1)
    return ratios


BLEU_METRIC = sacrebleu_metric(
    key="bleu",
    label="BLEU",
    make_scorer=bleu_metric,
    about="n-grams of up to four tokens, in the tokens of the target language; 100 is the maximum.",
    agreement={"": Agreement(88.33333333333225, 0.9663926931178954, 85.0)},
    is_on_screen=True,
)
CHRF2 = sacrebleu_metric(
    key="chrf2",
    label="chrF2",
    make_scorer=_make_chrf,
    about="Characters in place of words: n-grams of up to six; 100 is the maximum.",
    agreement={"": Agreement(92.999999999972, 1.1142732157139852, 90.0)},
    is_beside_bleu=True,
)
CHRF2PP = sacrebleu_metric(
    key="chrf2pp",
    label="chrF2++",
    make_scorer=_make_chrf_with_words,
    about="chrF2 of characters and, in addition, of words and pairs of words.",
)
TER_METRIC = sacrebleu_metric(
    key="ter",
    label="TER",
    make_scorer=_make_ter,
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
    make_scorer=bleu_metric,
    choose_lines=_documents,
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
    """Compute BLEU of each line, to find sentences that are translated well or badly.

    Systems are not compared by it, but by BLEU of all lines together. N-grams that are longer than
    a line do not count (sacreBLEU's "effective order").

    Args:
        translations: The translations.
        references: The references, parallel to them.
        language: The target language, which decides the tokenizer.

    Returns:
        The score of each line, 0 to 100.
    """
    scorer = bleu_metric([], language, effective_order=True)
    scores = []
    for translation, reference in zip(translations, references, strict=True):
        score = scorer.sentence_score(translation, [reference]).score
        scores.append(round(score, DIGITS))
    return scores
