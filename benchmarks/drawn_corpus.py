"""A binary corpus of ids drawn at random, for measurements that need no text.

Sources have lengths as WMT14's have in a vocabulary of 37,000 (assumed): log-normal, 30 tokens on
average with a standard deviation of 20, at most 100; targets differ from them by 15 %.
"""

from pathlib import Path

import numpy as np

from bleuprint.dataset.binarized import (
    END_TYPE,
    ENDS,
    ID_TYPES,
    IDS,
    SEGMENTATION,
    BinaryCorpus,
    SetSize,
    write_header,
)
from bleuprint.dataset.subwords.vocabulary import EOS, SPECIALS, Vocabulary

SOURCE, TARGET = "en", "de"
MEAN, DEVIATION, LONGEST, DIFFERENCE = 30, 20, 100, 0.15


def drawn_corpus(folder: Path, vocabulary: int, pairs: int) -> BinaryCorpus:
    """Write the corpus, one set `train`, with a joint vocabulary of `vocabulary` tokens."""
    random = np.random.default_rng(1)
    spread = np.sqrt(np.log1p((DEVIATION / MEAN) ** 2))
    lengths = random.lognormal(np.log(MEAN) - spread**2 / 2, spread, pairs)
    both = lengths, lengths * random.lognormal(0, DIFFERENCE, pairs)
    tokens = []
    (folder / SEGMENTATION).mkdir(parents=True)
    for language, drawn in zip((SOURCE, TARGET), both, strict=True):
        ends = drawn.round().clip(2, LONGEST).cumsum().astype(END_TYPE)
        ids = random.integers(len(SPECIALS), vocabulary, ends[-1]).astype(ID_TYPES[0])
        ids[ends - 1] = EOS
        np.save(folder / f"train.{language}.{IDS}", ids)
        np.save(folder / f"train.{language}.{ENDS}", ends)
        tokens.append(len(ids))
    source, target = tokens
    size = SetSize(pairs, source, target, unknown=0)
    write_header(
        folder, {"source": SOURCE, "target": TARGET, "joint": True, "sets": {"train": vars(size)}}
    )
    return BinaryCorpus(folder)


def drawn_vocabulary(size: int) -> Vocabulary:
    return Vocabulary((f"w{number}", 1) for number in range(size - len(SPECIALS)))
