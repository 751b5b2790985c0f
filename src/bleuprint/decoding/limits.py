"""What bounds a search, whichever engine does it: batch sizes and output lengths."""

import numpy as np

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import Lengths
from bleuprint.decoding.beam_search import Hypothesis

Found = list[list[Hypothesis]]

# Hypotheses that are decoded at once, times source positions: bounds memory, changes no result.
BATCH_TOKENS = 16384


def limits_of(lengths: Lengths, decode: Decode, longest: int) -> Lengths:
    """The longest output of sources of these lengths; both count the end."""
    units = np.floor((lengths - 1) * decode.max_len_a).astype(np.int64)
    found: Lengths = np.minimum(units + decode.max_len_b + 1, longest)
    return found


def empty_outputs(sentences: int) -> Found:
    """What sentences without words translate to."""
    return [[Hypothesis([], 0.0, 0.0)] for _ in range(sentences)]
