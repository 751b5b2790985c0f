"""Writes a binary corpus of random ids, for measurements that need no text.

Sources have the lengths that WMT14 is assumed to have with a vocabulary of 37,000: log-normal, 30
tokens on average with a standard deviation of 20, at most 100. Targets differ from them by 15%.
"""

from dataclasses import asdict
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
from bleuprint.text.tokenizers import Tokenize

SOURCE = "en"
TARGET = "de"
# Lengths of sentences in tokens.
MEAN_LENGTH = 30
LENGTH_DEVIATION = 20
MIN_LENGTH = 2
MAX_LENGTH = 100
# The standard deviation of the logarithm of target length by source length.
RATIO_DEVIATION = 0.15


def drawn_corpus(folder: Path, vocabulary_size: int, pairs: int) -> BinaryCorpus:
    """Write a binarized corpus of random tokens with one set, `train`, and a joint vocabulary.

    Speed does not depend on the meaning of a text, so no data is needed. The lengths of sentences
    vary as in a real text, since they decide how well sentences fit into batches.

    Args:
        folder: The folder of the corpus, which must not exist yet.
        vocabulary_size: The number of ids, specials included.
        pairs: The number of sentence pairs.
    """
    generator = np.random.default_rng(1)
    # A log-normal distribution with a given mean and deviation, by its textbook formulas.
    sigma = np.sqrt(np.log1p((LENGTH_DEVIATION / MEAN_LENGTH) ** 2))
    mu = np.log(MEAN_LENGTH) - sigma**2 / 2
    source_lengths = generator.lognormal(mu, sigma, pairs)
    target_lengths = source_lengths * generator.lognormal(0, RATIO_DEVIATION, pairs)
    (folder / SEGMENTATION).mkdir(parents=True)
    token_counts = {}
    for language, lengths in ((SOURCE, source_lengths), (TARGET, target_lengths)):
        lengths = lengths.round().clip(MIN_LENGTH, MAX_LENGTH)
        sentence_ends = lengths.cumsum().astype(END_TYPE)
        tokens = int(sentence_ends[-1])
        ids = generator.integers(len(SPECIALS), vocabulary_size, tokens).astype(ID_TYPES[0])
        # The index after a sentence is its end, so the last token is one before it.
        ids[sentence_ends - 1] = EOS
        np.save(folder / f"train.{language}.{IDS}", ids)
        np.save(folder / f"train.{language}.{ENDS}", sentence_ends)
        token_counts[language] = tokens
    size = SetSize(pairs, token_counts[SOURCE], token_counts[TARGET], unknown=0)
    header = {
        "source": SOURCE,
        "target": TARGET,
        "joint": True,
        "clean": {},
        "tokenize": asdict(Tokenize("none")),
        "sets": {"train": asdict(size)},
    }
    write_header(folder, header)
    return BinaryCorpus(folder)


def drawn_vocabulary(size: int) -> Vocabulary:
    """Return a vocabulary of invented units, w0, w1 and so on, after the specials.

    Args:
        size: The number of ids, specials included.
    """
    units = size - len(SPECIALS)
    return Vocabulary((f"w{number}", 1) for number in range(units))
