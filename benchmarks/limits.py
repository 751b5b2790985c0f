"""Measures what grows with a corpus inside one process: an epoch's plan, and learning BPE merges.

    python benchmarks/limits.py --pairs 20000000
    python benchmarks/limits.py --words 1000000 --merges 37000

The lengths of sentence pairs are drawn from a log-normal distribution with a median of 24 units.
Words are random syllables, and their counts fall as 1/rank, as in natural text. The memory printed
is how much the process's peak grows during the work.
"""

import argparse
import itertools
import random
import resource
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.bpe_learner import learn_merges

BATCH_TOKENS = 3125
LONGEST_SENTENCE = 250  # units


def main() -> None:
    """Measure the work that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--pairs", type=int, help="plan an epoch of this many sentence pairs")
    size.add_argument("--words", type=int, help="learn merges from this many different words")
    parser.add_argument("--merges", type=int, default=37_000)
    arguments = parser.parse_args()
    if arguments.pairs:
        measure_plan(arguments.pairs)
    else:
        measure_merges(arguments.words, arguments.merges)


def random_lengths(pairs: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the lengths of sentence pairs, distributed as in typical texts.

    Args:
        pairs: The number of sentence pairs.

    Returns:
        The lengths of the source sentences, about 29 tokens, and of the targets, 5% longer.
    """
    generator = np.random.default_rng(1)
    lengths = generator.lognormal(3.2, 0.6, pairs)
    source_lengths = np.clip(lengths, 2, LONGEST_SENTENCE).astype(np.int64)
    length_ratios = generator.normal(1.05, 0.15, pairs)
    lengths = np.clip(source_lengths * length_ratios, 2, LONGEST_SENTENCE)
    return source_lengths, lengths.astype(np.int64)


def measure_plan(pairs: int) -> None:
    """Divide `pairs` sentence pairs of random lengths into batches, and print what that costs.

    The lengths are distributed as in typical texts: about 29 tokens, and targets 5% longer.

    Args:
        pairs: The number of sentence pairs.
    """
    source_lengths, target_lengths = random_lengths(pairs)

    def plan() -> int:
        batches = plan_epoch(source_lengths, target_lengths, BATCH_TOKENS, 1, 1)
        return len(batches)

    measure(plan, input_size=pairs, input_unit="pairs", output_unit="batches")


def measure_merges(words: int, merges: int) -> None:
    """Learn BPE merges from `words` random words, and print the cost.

    Args:
        words: The number of distinct words.
        merges: The number of BPE merge operations.
    """
    counts = random_words(words)

    def learn() -> int:
        return len(list(learn_merges(counts, merges)))

    measure(learn, input_size=words, input_unit="words", output_unit="merges")


def random_words(number: int, seed: int = 1) -> dict[str, int]:
    """Return random words, each of two to five syllables, with the count of each in a text.

    Like in real text, some syllables are more frequent than others, and counts follow Zipf's law:
    the count of the n-th word is about proportional to 1 / n.

    Args:
        number: The number of words.
        seed: The seed; another one gives other words.
    """
    generator = random.Random(seed)
    onsets = "bcdfghjklmnprstvwz"
    vowels = "aeiouy"
    codas = ("", "n", "r", "s", "t", "l")
    syllables = list(map("".join, itertools.product(onsets, vowels, codas)))
    generator.shuffle(syllables)
    weights = [1 / (rank + 1) ** 0.6 for rank in range(len(syllables))]
    counts: dict[str, int] = {}
    while len(counts) < number:
        syllable_count = generator.choice((2, 2, 3, 3, 4, 5))
        word = "".join(generator.choices(syllables, weights, k=syllable_count))
        if word not in counts:
            rank = len(counts) + 1
            counts[word] = max(1, int(5e7 / (rank + 9)))
    return counts


def measure(work: Callable[[], int], *, input_size: int, input_unit: str, output_unit: str) -> None:
    """Do the work once, and print its time and the bytes of memory per unit of input.

    Args:
        work: Does the work; returns the size of its output.
        input_size: How many units the input has.
        input_unit: What the units of the input are, such as "pairs".
        output_unit: What the units of the output are, such as "batches".
    """
    peak_before = peak_memory()
    start = time.monotonic()
    output_size = work()
    seconds = time.monotonic() - start
    bytes_per_unit = (peak_memory() - peak_before) / input_size
    print(
        f"{input_size:,} {input_unit}: {output_size:,} {output_unit} in {seconds:.1f} s, "
        f"{bytes_per_unit:,.0f} bytes per unit of input"
    )


def peak_memory() -> int:
    """Return the peak of this process's resident memory so far, in bytes."""
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes * 1024


if __name__ == "__main__":
    main()
