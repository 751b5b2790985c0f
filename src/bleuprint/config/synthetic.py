"""Training texts of which a system of the experiment translates one side.

Back-translation (Sennrich et al. 2016) makes the source, sequence distillation (Kim and Rush 2016)
the target. Part of the settings in `experiment.py`.
"""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from bleuprint.runtime.schema import Count, Share


@dataclass(frozen=True)
class Sampling:
    """Each token is drawn by its probability: from all (`sampling: {}`), or from the `top_k` most
    probable ones. Drawn by the experiment's first seed, the text's name and the line.
    """

    top_k: Count | None = None


@dataclass(frozen=True)
class Noise:
    """Noise in synthetic sources (Edunov et al. 2018), drawn as by `Sampling`.

    Each word is left out with probability `drop`, then replaced by a filler token with probability
    `blank`; then words move by at most `shuffle` positions.
    """

    drop: Share = 0.1
    blank: Share = 0.1
    shuffle: Annotated[int, Interval(ge=0, le=1000)] = 3


@dataclass(frozen=True)
class SyntheticText:
    """What translates the training text of its name in the corpus `part_of`: the training of
    `system` on `corpus` with the first seed. It searches with the system's `decode`, or draws its
    outputs (`sampling`); `noise` is put into what beam search found.
    """

    part_of: str
    system: str
    corpus: str
    sampling: Sampling | None = None
    noise: Noise | None = None

    def __post_init__(self) -> None:
        if self.sampling and self.noise:
            raise ValueError("sampling and noise: noise is for outputs of beam search")

    @property
    def how(self) -> str:
        """What is done besides beam search, or instead of it; empty if nothing is."""
        if self.sampling:
            most = self.sampling.top_k
            return f"drawn from {f'the {most} most probable' if most else 'all'} tokens"
        given = vars(self.noise) if self.noise else {}
        return ", ".join(f"{name} {value:g}" for name, value in given.items())
