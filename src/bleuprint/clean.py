"""Cleaning: raw files into one training text of printable, normalised sentences.

Only training text is changed. Validation and test sets go on byte for byte, nothing dropped: what
a system is scored on is what was published, and the tokeniser deals with odd characters in it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from bleuprint.characters import normalise
from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Clean
from bleuprint.sieve import carry_over, count, sift

RULES = ("empty side",)


def clean_folder(
    corpus: str,
    settings: Clean,
    train: Sequence[str],
    valid: Sequence[str],
    raw: TextFolder,
    clean: Path,
    ledger_path: Path,
) -> None:
    """Join the parts `train` and `valid` of `raw`, in this order, and clean the training text."""
    ledger = Ledger("clean", corpus, RULES)
    parts = [f"train.{part}" for part in train]
    with whole_folder(clean) as partial:
        after = TextFolder(partial, raw.source, raw.target)
        pairs = chain.from_iterable(raw.pairs(part) for part in parts)
        total = sum(raw.count(part) for part in parts)
        sift(_normalised(pairs, settings), total, after, "train", judge, ledger)
        if valid:
            _join(raw, [f"valid.{part}" for part in valid], after)
            count(after, "valid", ledger)
        tests = [name for name in raw.names() if name.startswith("test.")]
        carry_over(raw, after, tests, ledger)
        ledger.write(ledger_path)


def judge(pair: Pair) -> str | None:
    """The rule that drops a cleaned pair."""
    return None if pair.source and pair.target else "empty side"


def _normalised(pairs: Iterator[Pair], settings: Clean) -> Iterator[Pair]:
    for pair in pairs:
        yield Pair(*(normalise(side, settings.unicode) for side in pair))


def _join(before: TextFolder, parts: Sequence[str], after: TextFolder) -> None:
    """Write the parts one after the other as `valid`; a last line without its \\n is given one."""
    with after.writer("valid") as writer:
        for part in parts:
            for pair in before.pairs(part):
                writer.write(pair)
