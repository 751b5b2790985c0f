"""Locate where two files with different numbers of lines stop being parallel, by line lengths.

`describe_parting` is the entry point: the command new-corpus adds its result to the error that two
files are not parallel.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

# The number of lines whose lengths are correlated together.
_WINDOW_LINES = 200
# The rank correlation of lengths below which the lines of a window are unrelated. In windows of 200
# lines it is 0.4 or more for parallel text (Japanese and English; 0.8 for German and English), and
# 0.3 or less for unrelated text.
_MIN_RELATED_CORRELATION = 0.3
# If the longer file has more surplus lines than this share of the shorter file, a position would
# be a mere guess.
_MAX_SURPLUS_SHARE = 0.1
_COMPRESSED_SUFFIXES = {".gz", ".bz2", ".xz", ".zst"}

_Lengths = npt.NDArray[np.float64]


def describe_parting(files: Sequence[Path]) -> str:
    """Describe where two files with different numbers of lines stop being translations.

    Long lines have long translations. So if a line is missing in one file, or one too many, the
    lengths match up to this line, and no longer match after it.

    Args:
        files: The source file and the target file.

    Returns:
        The end of a message, such as ". By the lengths of their lines, they part at about line
        301". It is empty
        if the line lengths do not show where, or a file is compressed.
    """
    has_compressed_file = any(path.suffix in _COMPRESSED_SUFFIXES for path in files)
    if len(files) != 2 or has_compressed_file:
        return ""
    lengths_of_files = [_log_lengths(path) for path in files]
    shorter, longer = sorted(lengths_of_files, key=len)
    surplus = len(longer) - len(shorter)
    if surplus == 0 or surplus > _MAX_SURPLUS_SHARE * len(shorter):
        return ""
    # If all lines of a file are equally long, lengths show nothing. (`ptp` is maximum - minimum.)
    if np.ptp(shorter) == 0 or np.ptp(longer) == 0:
        return ""
    surplus_start = _locate_surplus(shorter, longer)
    surplus_line = surplus_start + 1  # Messages count lines from 1.
    # The files may part even earlier: lines that are missing in both files cancel each other out.
    unrelated_start = _find_unrelated_window(shorter[:surplus_start], longer[:surplus_start])
    if unrelated_start is None:
        return f". By the lengths of their lines, they part at about line {surplus_line:,}"
    return (
        ". By the lengths of their lines, they part first between lines "
        f"{unrelated_start + 1:,} and {surplus_line:,}"
    )


def _log_lengths(path: Path) -> _Lengths:
    """Return the logarithms of the lengths of a file's lines, in bytes, (lines,).

    A difference of logarithms is a ratio of lengths, so long lines do not count more than short
    ones.
    """
    with path.open("rb") as stream:
        # Add a byte, because the logarithm of an empty last line's length 0 does not exist.
        lengths = [1.0 + len(line) for line in stream]
    return np.log(lengths)


def _locate_surplus(shorter: _Lengths, longer: _Lengths) -> int:
    """Find the surplus lines: lines of the longer file without a translation in the shorter one.

    They are assumed to be one block of lines. Before the block, line i of one file is paired with
    line i of the other; from the block on, line i of the shorter file is paired with line
    i + surplus of the longer one. The block is placed where the lengths of paired lines differ
    least.

    Args:
        shorter: The logarithms of the line lengths of the shorter file, (lines,).
        longer: The same for the longer file.

    Returns:
        The index of the first surplus line, from 0.
    """
    surplus = len(longer) - len(shorter)
    differences_before = np.abs(longer[:-surplus] - shorter)
    differences_after = np.abs(longer[surplus:] - shorter)
    # For each place i of the block: the sum of the differences of the lines before i, paired as
    # before the block, plus the sum for the lines from i on, paired as after it.
    sums_before = np.append(0, differences_before.cumsum())
    # Reversed twice, to cumulate from the end.
    sums_from_end = differences_after[::-1].cumsum()
    sums_after = np.append(sums_from_end[::-1], 0)
    return int((sums_before + sums_after).argmin())


def _find_unrelated_window(first: _Lengths, second: _Lengths) -> int | None:
    """Find the first lines of two files that cannot be translations, because of their lengths.

    The files are compared in windows of 200 lines, since a single pair may differ by chance.

    Args:
        first: The lengths of the lines of one file, (lines,).
        second: The lengths of the lines of the other file, (lines,).

    Returns:
        The index of the first line, from 0, of the first such window; None if all windows fit.
    """
    # A rest of less than half a window at the end has too few lines for a correlation.
    for start in range(0, len(first) - _WINDOW_LINES // 2, _WINDOW_LINES):
        stop = start + _WINDOW_LINES
        correlation = _rank_correlation(first[start:stop], second[start:stop])
        if correlation < _MIN_RELATED_CORRELATION:
            return start
    return None


def _rank_correlation(first: _Lengths, second: _Lengths) -> float:
    """Compute Spearman's rank correlation of the lengths of lines.

    If all lengths of one side are equal, the result is 1, so that the lines count as related.
    """
    from scipy.stats import rankdata  # Loading SciPy takes half a second.

    first_ranks = rankdata(first)
    second_ranks = rankdata(second)
    if np.ptp(first_ranks) == 0 or np.ptp(second_ranks) == 0:
        return 1.0
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])
