"""What grows with a corpus inside one process: the plan of an epoch, and learning merges.

    python benchmarks/limits.py --pairs 20000000
    python benchmarks/limits.py --words 1000000 --merges 37000

Pairs have lengths drawn at random (log-normal, 24 units in the middle). Words are made of
syllables, and their counts fall as 1/rank. Memory is the peak of the process beyond what it held
before.
"""

import argparse
import random
import resource
import time
from collections.abc import Callable

import numpy as np

from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.bpe_learner import learn_merges

BATCH_TOKENS, LONGEST = 3125, 250


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pairs", type=int, help="plan an epoch of so many pairs")
    what.add_argument("--words", type=int, help="learn merges of so many different words")
    parser.add_argument("--merges", type=int, default=37_000)
    given = parser.parse_args()
    if given.pairs:
        numbers = np.random.default_rng(1)
        source = np.clip(numbers.lognormal(3.2, 0.6, given.pairs), 2, LONGEST).astype(np.int64)
        factor = numbers.normal(1.05, 0.15, given.pairs)
        target = np.clip(source * factor, 2, LONGEST).astype(np.int64)
        measure(given.pairs, "pairs", lambda: len(plan_epoch(source, target, BATCH_TOKENS, 1, 1)))
    else:
        counts = words(given.words)
        measure(given.words, "words", lambda: len(list(learn_merges(counts, given.merges))))


def words(count: int) -> dict[str, int]:
    """So many made-up words with their counts."""
    draw = random.Random(1)
    onsets, vowels, codas = "bcdfghjklmnprstvwz", "aeiouy", ("", "n", "r", "s", "t", "l")
    syllables = [one + two + three for one in onsets for two in vowels for three in codas]
    draw.shuffle(syllables)
    weights = [1 / (rank + 1) ** 0.6 for rank in range(len(syllables))]
    found: dict[str, int] = {}
    while len(found) < count:
        word = "".join(draw.choices(syllables, weights, k=draw.choice((2, 2, 3, 3, 4, 5))))
        found.setdefault(word, max(1, int(5e7 / (len(found) + 10))))
    return found


def measure(size: int, what: str, work: Callable[[], int]) -> None:
    before, began = _peak(), time.monotonic()
    made = work()
    seconds = time.monotonic() - began
    bytes_each = (_peak() - before) / size
    print(f"{size:,} {what}: {made:,} made in {seconds:.1f} s, {bytes_each:,.0f} bytes each")


def _peak() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
