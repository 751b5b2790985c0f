"""What the stages that drop training pairs have in common."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from bleuprint.characters import comparable
from bleuprint.errors import UserError
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.progress import track

# Names the rule that drops a pair; None keeps it.
Judge = Callable[[Pair], str | None]


def sift(
    pairs: Iterable[Pair], total: int, after: TextFolder, name: str, judge: Judge, ledger: Ledger
) -> None:
    """Write the pairs that `judge` keeps as set `name` of `after`, and account for all.

    `total` pairs are expected. Raises UserError if none is kept.
    """
    account = ledger.open(name)
    with after.writer(name) as writer:
        for pair in track(pairs, f"{ledger.stage} {ledger.corpus} {name}", total, "pairs"):
            account.pairs_in += 1
            rule = judge(pair)
            if rule is None:
                writer.write(pair)
                account.pairs_out += 1
            else:
                account.drop(rule, pair)
    if not account.pairs_out:
        raise UserError(
            f"corpus {ledger.corpus}: nothing left of {name} after {ledger.stage}: {account.drops}"
        )


def held_out(folder: TextFolder) -> list[str]:
    """The names of the sets in a folder that are not for training: valid and the tests."""
    return [name for name in folder.names() if name != "train"]


def carry_over(before: TextFolder, after: TextFolder, names: Iterable[str], ledger: Ledger) -> None:
    """Copy sets byte for byte, and count them."""
    for name in names:
        for old, new in zip(before.files(name), after.files(name), strict=True):
            shutil.copyfile(old, new)
        count(after, name, ledger)


def count(folder: TextFolder, name: str, ledger: Ledger) -> None:
    """Account for a set of which every pair stays, reading all of it."""
    for _ in counted(folder.pairs(name), name, ledger):
        pass


def counted(pairs: Iterable[Pair], name: str, ledger: Ledger) -> Iterator[Pair]:
    """Pass pairs through and account for them: as many out as in."""
    account = ledger.open(name)
    for pair in pairs:
        account.pairs_in += 1
        account.pairs_out += 1
        yield pair


HASH_BYTES = 16


def hash_of(text: str) -> bytes:
    """A hash that no two texts will share."""
    return blake2b(text.encode(), digest_size=HASH_BYTES).digest()


class HeldOutSentences:
    """Sentences that must not turn up in training; as a judge, names the rule a pair breaks.

    They are compared after folding of spaces, case and compatible characters.
    """

    def __init__(self, source_rule: str, target_rule: str) -> None:
        self._rules = source_rule, target_rule
        self._sources: set[bytes] = set()
        self._targets: set[bytes] = set()

    def add(self, pair: Pair) -> None:
        self._sources.add(hash_of(comparable(pair.source)))
        self._targets.add(hash_of(comparable(pair.target)))

    def judge(self, pair: Pair) -> str | None:
        if hash_of(comparable(pair.source)) in self._sources:
            return self._rules[0]
        if hash_of(comparable(pair.target)) in self._targets:
            return self._rules[1]
        return None
