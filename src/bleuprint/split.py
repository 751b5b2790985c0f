"""Splitting: validation and test sets for corpora that come without them.

Pairs are drawn by a seeded permutation; what is left stays in its order. Pairs left in train that
share a sentence with what was drawn are dropped, as are drawn validation pairs that share one
with the test set.

Memory: 9 bytes a training pair for the permutation, and two hashes for each pair drawn.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.errors import UserError
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Split
from bleuprint.sieve import HeldOutSentences, carry_over, held_out, sift

RULES = ("drawn for valid", "drawn for test", "source held out", "target held out")
NEW_TEST = "test.held-out"

_TRAIN, _VALID, _TEST = range(3)

Places = npt.NDArray[np.uint8]


def split_folder(
    corpus: str, settings: Split, before: TextFolder, split: Path, ledger_path: Path
) -> None:
    """Draw the sets that are missing; those that a corpus came with stay as they are."""
    ledger = Ledger("split", corpus, RULES)
    given = held_out(before)
    places = _draw(corpus, settings, before.count("train"), given)
    with whole_folder(split) as partial:
        after = TextFolder(partial, before.source, before.target)
        drawn = HeldOutSentences(*RULES[2:])
        for name, place in ((NEW_TEST, _TEST), ("valid", _VALID)):
            if (places == place).any():
                _write_drawn(before, after, name, place, places, drawn, ledger)
        pairs = before.pairs("train")
        sift(pairs, len(places), after, "train", _TrainJudge(places, drawn), ledger)
        carry_over(before, after, given, ledger)
        ledger.write(ledger_path)


def _draw(corpus: str, settings: Split, pairs: int, given: list[str]) -> Places:
    """Where each pair of train goes."""
    valid = 0 if "valid" in given else max(1, round(settings.valid * pairs))
    test = 0 if any(name != "valid" for name in given) else max(1, round(settings.test * pairs))
    if valid + test >= pairs:
        raise UserError(
            f"corpus {corpus}: {pairs} pairs are too few to draw {valid} for validation "
            f"and {test} to test, and train on the rest"
        )
    order = np.random.Generator(np.random.PCG64(settings.seed)).permutation(pairs)
    places = np.full(pairs, _TRAIN, np.uint8)
    places[order[:test]] = _TEST
    places[order[test : test + valid]] = _VALID
    return places


def _write_drawn(
    before: TextFolder,
    after: TextFolder,
    name: str,
    place: int,
    places: Places,
    drawn: HeldOutSentences,
    ledger: Ledger,
) -> None:
    """Write the pairs drawn for one set, less those that share a sentence with the set before."""
    pairs = (p for p, where in zip(before.pairs("train"), places, strict=True) if where == place)
    sift(pairs, int((places == place).sum()), after, name, drawn.judge, ledger)
    for pair in after.pairs(name):
        drawn.add(pair)


class _TrainJudge:
    """Names the rule that takes a pair out of train; to be asked for each, in order."""

    def __init__(self, places: Places, drawn: HeldOutSentences) -> None:
        self._places, self._drawn = iter(places), drawn

    def __call__(self, pair: Pair) -> str | None:
        place = next(self._places)
        if place == _VALID:
            return "drawn for valid"
        if place == _TEST:
            return "drawn for test"
        return self._drawn.judge(pair)
