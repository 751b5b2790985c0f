"""Where two texts that should be parallel lose each other: lines missing on one side."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Below it, lengths of lines say nothing of where lines are missing.
_MIN_CORRELATION = 0.5


def first_shifted_line(source: Sequence[int], target: Sequence[int]) -> int | None:
    """The line, counted from 1, from which lines of the longer text face another's translation.

    `source`, `target`: the lengths of the lines, in characters. The texts are assumed to differ by
    one block of lines that only the longer one has; the place is that at which the logarithms of
    the lengths of the lines paired before and after it differ least, in sum of absolute values. So
    it is right to a few lines. None if even there the lengths are not correlated.
    """
    longer, shorter = (_log(each) for each in sorted((source, target), key=len, reverse=True))
    pairs, missing = len(shorter), len(longer) - len(shorter)
    before = np.concatenate([[0.0], np.cumsum(abs(longer[:pairs] - shorter))])
    after = np.concatenate([[0.0], np.cumsum(abs(longer[missing:] - shorter))])
    place = int(np.argmin(before + after[-1] - after))
    matched = np.concatenate([longer[:place], longer[place + missing :]])
    if pairs < 3 or not matched.std() or not shorter.std():
        return None
    correlated = float(np.corrcoef(matched, shorter)[0, 1]) >= _MIN_CORRELATION
    return place + 1 if correlated else None


def _log(lengths: Sequence[int]) -> npt.NDArray[np.float64]:
    logs: npt.NDArray[np.float64] = np.log1p(np.asarray(lengths, np.float64))
    return logs - logs.mean() if len(logs) else logs
