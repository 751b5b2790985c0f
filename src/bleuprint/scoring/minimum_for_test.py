"""The data that a significance test of two systems needs at least.

The report shows a difference with less data, but no p-value for it. There are two such cases:

- The test set has fewer than 100 sentences. The tests treat its sentences as a sample of all
  sentences that the systems may ever translate; a smaller sample says too little about these.
- The translations of both systems match fewer than 25 4-grams of their references. BLEU is computed
  from the numbers of matching n-grams. By chance, such a number varies by about its square root: 25
  matches vary by 5, which is a fifth, and fewer matches vary by a larger share. Without any match,
  sacreBLEU replaces the 0 by a small number, which then decides the score.
"""

from collections.abc import Iterator

from bleuprint.scoring.metric import Floats, MetricValue, untested_value

MIN_SENTENCES = 100
MIN_MATCHED_4_GRAMS = 25
# The reasons that the report shows in place of a p-value.
TOO_FEW_SENTENCES = "too few sentences to compare"
TOO_FEW_MATCHES = "too low to compare"
# The name under which scores.json records the number of matched 4-grams.
MATCHED_4_GRAMS = "matched 4-grams"
# sacreBLEU's statistics of a line are: the lengths of translation and reference, the numbers of
# matched 1-, 2-, 3- and 4-grams, and the numbers of all 1- to 4-grams.
_MATCHED_4_GRAMS_COLUMN = 5


def matched_4_grams_if_few(bleu_statistics: Floats) -> Iterator[MetricValue]:
    """Yield the number of matched 4-grams if it is too small for a significance test.

    The number of 4-grams in the translations that also occur in the references is recorded next to
    the score. The report finds it there, and does not test the system against another one for which
    it is recorded, too.

    Args:
        bleu_statistics: What sacreBLEU counts on each line for BLEU; shape (lines, 10).

    Yields:
        One value with the name `MATCHED_4_GRAMS`; nothing if the number is large enough.
    """
    matched_4_grams = int(bleu_statistics[:, _MATCHED_4_GRAMS_COLUMN].sum())
    if matched_4_grams < MIN_MATCHED_4_GRAMS:
        yield untested_value(MATCHED_4_GRAMS, matched_4_grams, len(bleu_statistics))


def reason_not_tested(
    sentences: int, is_test_over_sentences: bool, have_both_few_matches: bool
) -> str:
    """Return why the difference between two systems is not tested; an empty string if it is.

    Args:
        sentences: The number of sentences in the test set.
        is_test_over_sentences: Whether the test resamples the sentences. If it compares several
            training runs (seeds) instead, the number of sentences does not matter.
        have_both_few_matches: Whether both systems match fewer than `MIN_MATCHED_4_GRAMS` 4-grams
            of the references. If only one of them does, the difference is tested, since it depends
            mainly on the system with many matches.

    Returns:
        A text for the report, such as `too few sentences to compare`.
    """
    if have_both_few_matches:
        return TOO_FEW_MATCHES
    if is_test_over_sentences and sentences < MIN_SENTENCES:
        return TOO_FEW_SENTENCES
    return ""
