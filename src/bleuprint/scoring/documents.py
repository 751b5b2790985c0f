"""Lines of a test set grouped by document: the lines with one id, wherever they are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def lines_of(documents: Sequence[str]) -> dict[str, list[int]]:
    """The lines of each document, from 0; documents in the order of their first lines."""
    lines: dict[str, list[int]] = {}
    for line, document in enumerate(documents):
        lines.setdefault(document, []).append(line)
    return lines


def concatenated(text: Sequence[str], documents: Sequence[str]) -> list[str]:
    """Each document as one line, its sentences separated by spaces."""
    return [" ".join(text[line] for line in lines) for lines in lines_of(documents).values()]


def summed(statistics: NDArray[np.float64], documents: Sequence[str]) -> NDArray[np.float64]:
    """The sums of statistics, a row for each line, over the lines of each document."""
    return np.stack([statistics[lines].sum(axis=0) for lines in lines_of(documents).values()])
