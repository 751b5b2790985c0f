"""The floor below which a difference between two systems is shown, and not tested.

A bootstrap draws from the sentences of a test set as if they were all sentences: of fewer than 100
it says too little of others. BLEU is a product of four precisions. A count of n varies by the root
of n by chance, so that of fewer than 25 matched 4-grams it varies by more than a fifth; of none,
sacreBLEU's smoothing decides the score.
"""

from collections.abc import Iterator

from bleuprint.scoring.measure import Floats, Measured, figure

SENTENCES, MATCHES = 100, 25
TOO_FEW, TOO_LOW = "too few sentences to compare", "too low to compare"
# The figure that is stored beside a score below the floor.
MATCHED = "matched 4-grams"
# In sacreBLEU's statistics: after two lengths, the matches of n-grams of one to four tokens.
_COLUMN = 5


def below_floor(statistics: Floats) -> Iterator[Measured]:
    """The number of matched 4-grams, if it is below the floor.

    Args:
        statistics: BLEU's, a row for each line.
    """
    matched = int(statistics[:, _COLUMN].sum())
    if matched < MATCHES:
        yield figure(MATCHED, matched, len(statistics))


def floor(lines: int, is_over_sentences: bool, are_low: bool) -> str:
    """Why a difference is not tested; empty if it is.

    Args:
        lines: Sentences of the test set.
        is_over_sentences: Whether the test is over them, and not over seeds.
        are_low: Whether both scores are below the floor. The difference of one that is from one
            that is not does not depend on few matches.
    """
    if are_low:
        return TOO_LOW
    if is_over_sentences and lines < SENTENCES:
        return TOO_FEW
    return ""
