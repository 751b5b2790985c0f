"""Splitting: validation and test sets for corpora that come without them.

Pairs are drawn by a seeded permutation, or validation takes each n-th; what is left stays in its
order. Pairs left in train that share a sentence with what was drawn are dropped, as are drawn
validation pairs that share one with the test set.

Memory, where pairs are drawn: 9 bytes a training pair, and two hashes for each pair drawn.
"""

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.config.experiment import Split
from bleuprint.corpus.heldout import HeldOutSentences, Overlap
from bleuprint.corpus.steps.filtering import (
    carry_over,
    drop,
    refuse_nothing,
)
from bleuprint.corpus.steps.ledger import Ledger
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, TextFolder

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
    workers: int,
) -> None:
    """Draw the sets that are missing; those that a corpus came with stay as they are."""
    ledger = Ledger("split", corpus, RULES)
    given = before.held_out()
    with whole_folder(split) as unfinished:
        after = TextFolder(unfinished, before.source, before.target)
        if "valid" in given and len(given) > 1:
            carry_over(before, after, ["train"], ledger)
        else:
            places = _draw(corpus, settings, before.count("train"), given)
            drawn = HeldOutSentences(overlap)
            for name, place in ((NEW_TEST, _TEST), ("valid", _VALID)):
                if (chosen := places == place).any():
                    _write_drawn(before, after, name, chosen, drawn, ledger)
                    drawn.add(after.pairs(name))
            _write_rest(before, after, places, drawn, ledger, workers)
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
    if valid + test:
        order = np.random.Generator(np.random.PCG64(settings.seed)).permutation(pairs)
        places[order[:test]] = _TEST
        places[order[test : test + valid]] = _VALID
    return places


def _write_drawn(
    before: TextFolder,
    after: TextFolder,
    name: str,
    chosen: npt.NDArray[np.bool_],
    drawn: HeldOutSentences,
    ledger: Ledger,
) -> None:
    """Write the pairs drawn for one set, less those that share a sentence with the set before."""
    account = ledger.open(name)
    with after.writer(name) as writer:
        for block in before.blocks("train"):
            here = chosen[block.first - 1 :][: len(block)]
            if not here.any():
                continue
            pairs = [entry for entry, taken in zip(block.numbered(), here, strict=True) if taken]
            sides = drawn.sides(pair for _, pair in pairs)
            for (number, pair), side in zip(pairs, sides, strict=True):
                if side:
                    account.drop(RULES[1 + side], number, pair)
                else:
                    account.keep()
                    writer.write(pair)
    refuse_nothing(account, name, ledger)


def _write_rest(
    before: TextFolder,
    after: TextFolder,
    places: Places,
    drawn: HeldOutSentences,
    ledger: Ledger,
    workers: int,
) -> None:
    """Write what stays in train: what was not drawn, and shares no sentence with what was."""
    account = ledger.open("train")
    progress = Progress(f"split {ledger.corpus} train", len(places), "pairs")
    verdicts = places.copy()
    done = 0
    for sides in map_parts(partial(_Sides, drawn), before.blocks("train"), workers):
        here = slice(done, done + len(sides))
        shared = np.frombuffer(sides, np.uint8)
        leaks = np.where(shared, shared + _TEST, 0)
        verdicts[here] = np.where(places[here], places[here], leaks)
        done += len(sides)
        progress.advance(len(sides))
    progress.close()
    drop(before, after, verdicts, RULES, account)
    refuse_nothing(account, "train", ledger)


class _Sides:
    """Looks for the sentences of a block among those drawn, in whichever process."""

    def __init__(self, drawn: HeldOutSentences) -> None:
        self._drawn = drawn

    def __call__(self, block: Block) -> bytes:
        return self._drawn.sides(block.pairs())
