"""Noise in translations, for back-translation: words are dropped, replaced and moved.

See Edunov et al. (2018), section 3.1.
"""

from collections.abc import Callable, Sequence
from random import Random

from bleuprint.config.noise import Noise
from bleuprint.text.tokenizers import Tokenizer

# Noise replaces words by this character. Every tokenizer takes it as one token, and it is rare in
# texts.
FILLER = "□"


def noise_function(
    noise: Noise, tokenizer: Tokenizer, random_seed: str
) -> Callable[[str, int], str]:
    """Return a function that adds noise to a translation.

    The function is called with the translation and the number of its line in the text, counted from
    0. It returns the translation with noise.

    Args:
        noise: How many words are dropped, replaced or moved.
        tokenizer: The tokenizer that splits a translation into words.
        random_seed: Any text, from which the random numbers are computed.
    """

    def with_noise(sentence: str, line_number: int) -> str:
        """Return a translation with noise: some words are dropped, replaced or moved.

        The line number, counted from 0, is part of the random seed. So a line gets the same noise
        whichever lines are translated before it.
        """
        random = Random(f"{random_seed} {line_number}")
        return add_noise_to_sentence(sentence, tokenizer, noise, random)

    return with_noise


def add_noise_to_sentence(sentence: str, tokenizer: Tokenizer, noise: Noise, random: Random) -> str:
    """Split a sentence into words, drop, replace and move some of them, and join the words again.

    Args:
        sentence: The sentence.
        tokenizer: The tokenizer that splits and joins.
        noise: How many words are dropped, replaced or moved.
        random: The source of random numbers.
    """
    words = add_noise(tokenizer.tokenize(sentence), noise, random)
    # A later stage tokenizes the sentence again, and should find the same words. So the words are
    # joined by spaces if this works. `detokenize` might attach a moved comma to its new neighbor,
    # and the tokenizer would then take the two as one word.
    joined_by_spaces = " ".join(words)
    if tokenizer.tokenize(joined_by_spaces) == words:
        return joined_by_spaces
    return tokenizer.detokenize(words)


def add_noise(words: Sequence[str], noise: Noise, random: Random) -> list[str]:
    """Add noise to a sentence: drop some words, replace some by the word FILLER, and move some.

    A model may learn more from synthetic pairs with noise than from clean ones (Edunov et al. 2018,
    section 3.1). If all words were dropped, the first one is kept.

    Args:
        words: The words of the sentence.
        noise: The probability to drop a word, the probability to replace a word (`blank`), and by
            how many positions a word may move (`shuffle`).
        random: The source of random numbers.
    """
    kept_words = []
    for word in words:
        if random.random() >= noise.drop:
            kept_words.append(word)
    if not kept_words:
        kept_words = list(words[:1])  # Still empty if the sentence is.
    for position in range(len(kept_words)):
        if random.random() < noise.blank:
            kept_words[position] = FILLER
    # Words are sorted by their position plus a random number in [0, shuffle + 1). So no word moves
    # by more than `shuffle` positions (Lample et al. 2018, section 2.3).
    keyed_words = []
    for position, word in enumerate(kept_words):
        sort_key = position + (noise.shuffle + 1) * random.random()
        # Of two words with the same key, the one that came first stays first.
        keyed_words.append((sort_key, position, word))
    return [word for _sort_key, _position, word in sorted(keyed_words)]
