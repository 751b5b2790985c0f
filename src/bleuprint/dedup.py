"""Deduplication: each training pair once, and none that validation or a test set gives away.

Training and held-out sentences are compared after folding of spaces, case and compatible
characters, so that no difference which tokenising may take away hides an overlap. Held-out sets
themselves are not changed.

Memory: 16 bytes a training pair while duplicates are looked for, and the hash of each pair that
occurs more than once after that; besides, one hash for each sentence held out.
"""

from pathlib import Path

import numpy as np

from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.sieve import HASH_BYTES, HeldOutSentences, carry_over, hash_of, held_out, sift

RULES = ("duplicate pair", "source in valid or test", "target in valid or test")


def dedup_folder(corpus: str, before: TextFolder, dedup: Path, ledger_path: Path) -> None:
    """Drop repeated and leaked pairs from train."""
    ledger = Ledger("dedup", corpus, RULES)
    judge = _Judge(before)
    with whole_folder(dedup) as partial:
        after = TextFolder(partial, before.source, before.target)
        sift(before.pairs("train"), before.count("train"), after, "train", judge, ledger)
        carry_over(before, after, held_out(before), ledger)
        ledger.write(ledger_path)


class _Judge:
    """Names the rule that drops a pair; to be asked once for each pair of train, in order."""

    def __init__(self, folder: TextFolder) -> None:
        self._repeated = _repeated_pairs(folder)
        self._seen: set[bytes] = set()
        self._held_out = HeldOutSentences(*RULES[1:])
        for name in held_out(folder):
            for pair in folder.pairs(name):
                self._held_out.add(pair)

    def __call__(self, pair: Pair) -> str | None:
        whole = _pair_hash(pair)
        if whole in self._repeated:
            if whole in self._seen:
                return "duplicate pair"
            self._seen.add(whole)
        return self._held_out.judge(pair)


def _repeated_pairs(folder: TextFolder) -> set[bytes]:
    """The hashes that more than one pair of train has.

    Sorting an array finds them in 16 bytes a pair; a Python set of all would take 100.
    """
    hashes = bytearray()
    for pair in folder.pairs("train"):
        hashes += _pair_hash(pair)
    # Fixed-width byte strings compare as a whole here: what numpy ignores at the end of one, NUL,
    # is what it pads the shorter one with.
    array = np.frombuffer(hashes, dtype=f"S{HASH_BYTES}")
    array.sort()
    repeated = array[1:][array[1:] == array[:-1]].tobytes()
    return {repeated[i : i + HASH_BYTES] for i in range(0, len(repeated), HASH_BYTES)}


def _pair_hash(pair: Pair) -> bytes:
    return hash_of(f"{pair.source}\n{pair.target}")
