"""Sifting: what the stages that drop or change training pairs one by one have in common."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bleuprint.corpus.steps.ledger import Account, Ledger
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import Block, Pair, TextFolder, count_lines, packed

_ACCOUNT = "account.json"


class Sifted(NamedTuple):
    """What is left of a block: both sides as bytes, and the account of its pairs."""

    source: bytes
    target: bytes
    account: Account


# Takes a pair of the set, by number, and gives what goes on of it; None if it has dropped it,
# which is then in the account.
Judge = Callable[[int, Pair, Account], Pair | None]


class Sieve:
    """Sifts blocks by a judge, in whichever process."""

    def __init__(self, judge: Judge, account: Callable[[], Account]) -> None:
        """`account` opens one for a block."""
        self._judge, self._account = judge, account

    def __call__(self, block: Block) -> Sifted:
        account, kept = self._account(), []
        for number, pair in block.numbered():
            if (left := self._judge(number, pair, account)) is not None:
                account.keep()
                kept.append(left)
        return Sifted(*packed(kept), account)


def sift(
    blocks: Iterable[Block],
    prepare: Callable[[], Callable[[Block], Sifted]],
    after: TextFolder,
    name: str,
    progress: Progress,
    account: Account,
    workers: int,
) -> None:
    """Write what is left of some blocks as set `name` of `after`, and add to the account."""
    with after.writer(name) as writer:
        for part in map_parts(prepare, blocks, workers):
            writer.write_packed(part.source, part.target)
            account.add(part.account)
            progress.advance(part.account.pairs_in)
    progress.close()


def sift_shard(
    blocks: Iterable[Block],
    pairs: int,
    prepare: Callable[[], Callable[[Block], Sifted]],
    part: TextFolder,
    ledger: Ledger,
    workers: int,
) -> None:
    """Write what is left of a shard, of so many pairs, into the folder of `part`."""
    account = ledger.open("train")
    progress = Progress(f"{ledger.stage} {ledger.corpus} train", pairs, "pairs")
    sift(blocks, prepare, part, "train", progress, account, workers)
    write_json(part.path / _ACCOUNT, vars(account))


def gather_train(parts: Sequence[Path], after: TextFolder, ledger: Ledger, pairs: int) -> None:
    """Join the shards' training texts and accounts, which are to be of so many pairs in all.

    Raises UserError if a shard does not hold what its account says, and if nothing is left.
    """
    account = ledger.open("train")
    left = [TextFolder(part, after.source, after.target).files("train") for part in parts]
    for part, files in zip(parts, left, strict=True):
        of_part = Account(**read_json(part / _ACCOUNT))
        account.add(of_part)
        check_lines(part, files, of_part.pairs_out)
    if account.pairs_in != pairs:
        raise UserError(
            f"{parts[0].parent}: shards of {account.pairs_in} pairs, but there are {pairs}: "
            "remove it"
        )
    for files, joined in zip(zip(*left, strict=True), after.files("train"), strict=True):
        join_files(files, joined)
    refuse_nothing(account, "train", ledger)


Verdicts = npt.NDArray[np.uint8]


def drop(
    before: TextFolder,
    after: TextFolder,
    verdicts: Verdicts,
    rules: Sequence[str],
    account: Account,
) -> None:
    """Write the pairs of train whose verdict is 0; others are dropped by the n-th of `rules`."""
    with after.writer("train") as writer:
        for block in before.blocks("train"):
            found = verdicts[block.first - 1 :][: len(block)].tolist()
            if not any(found):
                writer.write_packed(block.source, block.target)
                account.keep(len(found))
                continue
            kept = []
            for (number, pair), verdict in zip(block.numbered(), found, strict=True):
                if verdict:
                    account.drop(rules[verdict - 1], number, pair)
                else:
                    account.keep()
                    kept.append(pair)
            writer.write_packed(*packed(kept))


def refuse_nothing(account: Account, name: str, ledger: Ledger) -> None:
    """Raise UserError if no pair of a set is left."""
    if not account.pairs_out:
        raise UserError(
            f"corpus {ledger.corpus}: nothing left of {name} after {ledger.stage}: {account.drops}"
        )


def join_files(files: Sequence[Path], joined: Path) -> None:
    """Write files one after the other; each ends at a line's end."""
    with joined.open("wb") as out:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)


def carry_over(before: TextFolder, after: TextFolder, names: Iterable[str], ledger: Ledger) -> None:
    """Copy sets byte for byte, and count them."""
    for name in names:
        for old, new in zip(before.files(name), after.files(name), strict=True):
            shutil.copyfile(old, new)
        count(after, name, ledger)


def check_lines(part: Path, files: Iterable[Path], lines: int) -> None:
    """Raise UserError unless each file of a shard has so many lines."""
    for path in files:
        if (found := count_lines(path)) != lines:
            raise UserError(f"{path}: {found} lines, not {lines}: damaged; remove {part}")


def count(folder: TextFolder, name: str, ledger: Ledger) -> None:
    """Account for a set of which every pair stays, reading all of it."""
    account = ledger.open(name)
    for block in folder.blocks(name):
        account.keep(len(block.pairs()))
