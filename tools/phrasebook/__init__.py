"""The embedded parallel corpus: English, German and French, written by a synchronous grammar.

A synchronous grammar writes several languages from one tree: `grammar` draws a tree at random from
the words in `lexicon`, and `english`, `german` and `french` write it. `splits` divides the
sentences into train, valid and test, and `noise` adds known faults to train.
"""

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
