"""The settings of noise in translations; translation_noise.py adds it."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from bleuprint.runtime.schema import Share


@dataclass(frozen=True)
class Noise:
    """Noise in synthetic sources (Edunov et al. 2018).

    The draws depend on the experiment's first seed, the text's name and the line number.

    Attributes:
        drop: The probability with which each word is dropped.
        blank: The probability with which each remaining word is replaced by a filler token.
        shuffle: By how many positions a word moves at most.
    """

    drop: Share = 0.1
    blank: Share = 0.1
    shuffle: Annotated[int, Interval(ge=0, le=1000)] = 3
