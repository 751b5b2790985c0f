"""The embedded parallel corpus: English, German and French, written by a synchronous grammar."""

from bleuprint.corpus.phrasebook.noise import FAULTS, Line
from bleuprint.corpus.phrasebook.splits import (
    LANGUAGES,
    NOISY,
    SPLITS,
    generate,
    noisy_lines,
    sentences,
)

__all__ = ["FAULTS", "LANGUAGES", "NOISY", "SPLITS", "Line", "generate", "noisy_lines", "sentences"]
