"""Noise in the synthetic sources of a training text (Edunov et al. 2018, section 3.1)."""

from collections.abc import Sequence
from random import Random

from bleuprint.config.synthetic import Noise
from bleuprint.text.tokenizers import Tokenizer

# What stands for a replaced word: one token for every tokenizer, and rare in texts.
FILLER = "□"


def noisy_sentence(sentence: str, tokenizer: Tokenizer, noise: Noise, random: Random) -> str:
    """The sentence with noise in the words that `tokenizer` finds."""
    words = noisy(tokenizer.tokenize(sentence), noise, random)
    # a mark after another word than before would become part of it
    apart = " ".join(words)
    return apart if tokenizer.tokenize(apart) == words else tokenizer.detokenize(words)


def noisy(words: Sequence[str], noise: Noise, random: Random) -> list[str]:
    """The words that are not left out, some as FILLER, in another order; at least one, if any.

    The order is that of i + u, i a word's position and u uniform in [0, shuffle + 1), so that no
    word moves by more than `shuffle` positions (Lample et al. 2018, section 2.3).
    """
    kept = [word for word in words if random.random() >= noise.drop] or list(words[:1])
    blanked = [FILLER if random.random() < noise.blank else word for word in kept]
    keys = [i + (noise.shuffle + 1) * random.random() for i in range(len(blanked))]
    return [blanked[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]
