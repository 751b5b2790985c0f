"""Filtering: training pairs that are too short, too long or too unequal are dropped."""

from pathlib import Path

from bleuprint.files import whole_folder
from bleuprint.ledger import Ledger
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Filter
from bleuprint.sieve import carry_over, held_out, sift

RULES = ("too short", "too long", "length ratio")


def filter_folder(
    corpus: str, settings: Filter, before: TextFolder, filtered: Path, ledger_path: Path
) -> None:
    """Drop from train what `settings` rule out; validation and test sets stay as they are."""
    ledger = Ledger("filter", corpus, RULES)
    with whole_folder(filtered) as partial:
        after = TextFolder(partial, before.source, before.target)
        total = before.count("train")
        sift(before.pairs("train"), total, after, "train", lambda p: judge(p, settings), ledger)
        carry_over(before, after, held_out(before), ledger)
        ledger.write(ledger_path)


def judge(pair: Pair, settings: Filter) -> str | None:
    """The first rule that drops a pair, by its words between spaces."""
    shorter, longer = sorted((_words(pair.source), _words(pair.target)))
    if shorter < settings.min_words:
        return "too short"
    if longer > settings.max_words:
        return "too long"
    if longer > settings.max_ratio * shorter:
        return "length ratio"
    return None


def _words(sentence: str) -> int:
    return sum(1 for word in sentence.split(" ") if word)
