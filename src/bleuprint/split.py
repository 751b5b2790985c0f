"""Splitting: validation and test sets for corpora that come without them.

Pairs are drawn by a seeded permutation, or validation takes each n-th; what is left stays in its
order. Pairs left in train that share a sentence with what was drawn are dropped, as are drawn
validation pairs that share one with the test set.

Memory, where pairs are drawn: 9 bytes a training pair, and two hashes for each pair drawn.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.errors import UserError
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import TextFolder
from bleuprint.progress import track
from bleuprint.settings import Split
from bleuprint.sieve import HeldOutSentences, Overlap, carry_over, held_out, refuse_nothing

RULES = ("drawn_for_valid", "drawn_for_test", "source_held_out", "target_held_out")
NEW_TEST = "test.held-out"

_TRAIN, _VALID, _TEST = range(3)

Places = npt.NDArray[np.uint8]


def split_folder(
    corpus: str,
    settings: Split,
    overlap: Overlap,
    before: TextFolder,
    split: Path,
    ledger_path: Path,
) -> None:
    """Draw the sets that are missing; those that a corpus came with stay as they are."""
    ledger = Ledger("split", corpus, RULES)
    given = held_out(before)
    with whole_folder(split) as partial:
        after = TextFolder(partial, before.source, before.target)
        if "valid" in given and len(given) > 1:
            carry_over(before, after, ["train"], ledger)
        else:
            places = _draw(corpus, settings, before.count("train"), given)
            drawn = HeldOutSentences(overlap)
            for name, place in ((NEW_TEST, _TEST), ("valid", _VALID)):
                if (places == place).any():
                    _sift(before, after, name, place, places, drawn, ledger)
                    for pair in after.pairs(name):
                        drawn.add(pair)
            _sift(before, after, "train", _TRAIN, places, drawn, ledger)
        carry_over(before, after, given, ledger)
        ledger.write(ledger_path)


def _draw(corpus: str, settings: Split, pairs: int, given: list[str]) -> Places:
    """Where each pair of train goes."""
    has_valid, has_test = "valid" in given, any(name != "valid" for name in given)
    valid = 0 if has_valid or settings.every else max(1, round(settings.valid * pairs))
    test = 0 if has_test else max(1, round(settings.test * pairs))
    if valid + test >= pairs or (settings.every or 0) > pairs:
        raise UserError(
            f"corpus {corpus}: {pairs} pairs are too few to draw {valid or 1} for validation "
            f"and {test} to test, and train on the rest"
        )
    places = np.full(pairs, _TRAIN, np.uint8)
    if settings.every and not has_valid:
        places[settings.every - 1 :: settings.every] = _VALID
    order = np.random.Generator(np.random.PCG64(settings.seed)).permutation(pairs)
    places[order[:test]] = _TEST
    places[order[test : test + valid]] = _VALID
    return places


def _sift(
    before: TextFolder,
    after: TextFolder,
    name: str,
    place: int,
    places: Places,
    drawn: HeldOutSentences,
    ledger: Ledger,
) -> None:
    """Write the pairs that go to one set, less those that share a sentence with what was drawn.

    Train accounts for all pairs; a set that is drawn for those which were drawn.
    """
    account = ledger.open(name)
    pairs = track(before.pairs("train"), f"split {ledger.corpus} {name}", len(places), "pairs")
    with after.writer(name) as writer:
        for number, (pair, where) in enumerate(zip(pairs, places.tolist(), strict=True), 1):
            if where != place:
                if name == "train":
                    account.drop(RULES[where - 1], number, pair)
            elif side := drawn.side_of(pair):
                account.drop(RULES[1 + side], number, pair)
            else:
                account.keep()
                writer.write(pair)
    refuse_nothing(account, name, ledger)
