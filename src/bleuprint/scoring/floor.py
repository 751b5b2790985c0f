"""When a difference between two systems is shown, but not tested for significance.

There are two such cases:

- The test set has fewer than 100 sentences. The bootstrap resamples these sentences as if they
  stood for all sentences; so few say too little about new ones.
- Both translations match fewer than 25 4-grams of the references. BLEU is a product of four n-gram
  precisions. By chance, a count varies by its square root: 25 matches by 5, which is a fifth, and
  fewer matches by a larger share. Without any match, sacreBLEU's smoothing decides the score.
"""

from collections.abc import Iterator

from bleuprint.scoring.metric import Floats, MetricValue, untested_value

# The smallest number of sentences, and of matched 4-grams, with which a difference is tested.
MIN_SENTENCES = 100
MIN_MATCHES = 25
# The reasons for which a difference is not tested.
TOO_FEW = "too few sentences to compare"
TOO_LOW = "too low to compare"
# The name of the figure that is stored next to a score with too few matched 4-grams.
MATCHED_4_GRAMS = "matched 4-grams"
# A row of sacreBLEU's BLEU statistics has two lengths, then the numbers of matched n-grams of one
# to four tokens. This is the column of the matched 4-grams.
_MATCHED_4_GRAMS_COLUMN = 5


def below_floor(statistics: Floats) -> Iterator[MetricValue]:
    """Yield how many 4-grams of the translations match the references, if these are few.

    BLEU with so few matches depends on chance. The difference between two systems is not tested if
    both have so few.

    Args:
        statistics: sacreBLEU's BLEU statistics, one row per line; shape (lines, 10).

    Yields:
        The figure `MATCHED_4_GRAMS`, or nothing for translations with enough matches.
    """
    matched_4_grams = int(statistics[:, _MATCHED_4_GRAMS_COLUMN].sum())
    if matched_4_grams < MIN_MATCHES:
        yield untested_value(MATCHED_4_GRAMS, matched_4_grams, len(statistics))


def reason_not_tested(sentences: int, is_over_sentences: bool, are_both_low: bool) -> str:
    """Return the reason why the difference between two systems is not tested.

    Args:
        sentences: Number of sentences in the test set.
        is_over_sentences: True if the test resamples sentences; False if it compares seeds, for
            which the number of sentences does not matter.
        are_both_low: Whether both systems match fewer than `MIN_MATCHES` 4-grams. If only one of
            them does, the difference is tested: it depends mainly on the system with many matches.

    Returns:
        `TOO_LOW` or `TOO_FEW`; an empty string if the difference is tested.
    """
    if are_both_low:
        return TOO_LOW
    if is_over_sentences and sentences < MIN_SENTENCES:
        return TOO_FEW
    return ""
