"""The embedded parallel corpus: English, German and French, written by a synchronous grammar."""

from tools.phrasebook.noise import FAULTS, Line
from tools.phrasebook.splits import (
    LANGUAGES,
    NOISY,
    SPLITS,
    generate,
    noisy_lines,
    sentences,
)

__all__ = ["FAULTS", "LANGUAGES", "NOISY", "SPLITS", "Line", "generate", "noisy_lines", "sentences"]
