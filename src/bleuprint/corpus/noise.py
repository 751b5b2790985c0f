"""Noise in the made sources of a training text (Edunov et al. 2018, section 3.1)."""

from collections.abc import Sequence
from random import Random

from bleuprint.config.made_texts import Noise
from bleuprint.text.tokenizers import Tokenizer

# What stands for a replaced word: one token for every tokenizer, and rare in texts.
FILLER = "□"


class NoisySentences:
    """Puts noise into the words, as `tokenizer` finds them, of the lines of a text."""

    def __init__(self, noise: Noise, tokenizer: Tokenizer, seed: str) -> None:
        self._noise, self._tokenizer, self._seed = noise, tokenizer, seed

    def __call__(self, sentence: str, line: int) -> str:
        """The sentence with noise, which depends on `seed` and its line, not on other lines."""
        random, words = Random(f"{self._seed} {line}"), self._tokenizer.tokenize(sentence)
        words = noisy(words, self._noise, random)
        # a mark after another word than before would become part of it
        apart = " ".join(words)
        kept = self._tokenizer.tokenize(apart) == words
        return apart if kept else self._tokenizer.detokenize(words)


def noisy(words: Sequence[str], noise: Noise, random: Random) -> list[str]:
    """The words that are not left out, some as FILLER, in another order; at least one, if any.

    The order is that of i + u, i a word's position and u uniform in [0, shuffle + 1), so that no
    word moves by more than `shuffle` positions (Lample et al. 2018, section 2.3).
    """
    kept = [word for word in words if random.random() >= noise.drop] or list(words[:1])
    blanked = [FILLER if random.random() < noise.blank else word for word in kept]
    keys = [i + (noise.shuffle + 1) * random.random() for i in range(len(blanked))]
    return [blanked[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]
