"""Joint byte-pair encoding with subword-nmt.

A unit that the next one continues ends in "@@". Memory grows with the number of different words.
"""

import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from bleuprint.errors import UserError
from bleuprint.files import whole_file
from bleuprint.pairs import TextFolder, read_lines
from bleuprint.progress import track

CONTINUED = "@@"

_HEADER = "#version: 0.2\n"
_CACHED_WORDS = 200_000


def count_words(text: TextFolder, corpus: str) -> Counter[str]:
    """How often each token occurs in train, both sides together."""
    counts: Counter[str] = Counter()
    for file in text.files("train"):
        lines = track(read_lines(file), f"count words {corpus}", text.count("train"), "lines")
        for line in lines:
            counts.update(line.split(" "))
    del counts[""]
    return counts


def learn_codes(corpus: str, merges: int, tokens: TextFolder, codes: Path) -> None:
    """Learn at most `merges` merges from both sides of train; rarer ones than twice are not made.

    The codes are those of `subword-nmt learn-bpe` for the two files joined. With none, words
    are spelt in characters.
    """
    words = count_words(tokens, corpus)
    learnt = io.StringIO()
    if merges and any(len(word) > 1 for word in words):
        # Counts are passed on, and not the text: subword-nmt splits lines where Python does.
        with _quiet():
            entries = [f"{word} {count}" for word, count in words.items()]
            learn_bpe(entries, learnt, merges, is_dict=True)
    else:
        learnt.write(_HEADER)
    with whole_file(codes) as partial:
        partial.write_bytes(learnt.getvalue().encode())


class Bpe:
    """Splits words into units by the merges that `learn_codes` wrote, and joins them again."""

    def __init__(self, codes: Path) -> None:
        lines = list(read_lines(codes))
        if not lines or lines[0] + "\n" != _HEADER:
            raise UserError(f"{codes}:1: not the codes of a byte-pair encoding")
        for number, line in enumerate(lines[1:], 2):
            if len(line.split(" ")) != 2:
                raise UserError(f"{codes}:{number}: {line!r} is not a merge of two units")
        # Left to count, subword-nmt takes the end of a file without merges for one.
        text = io.StringIO("".join(f"{line}\n" for line in lines), newline="\n")
        self._bpe: Any = BPE(text, merges=len(lines) - 1, separator=CONTINUED)

    def segment(self, tokens: Sequence[str]) -> list[str]:
        """The units of these tokens."""
        if len(self._bpe.cache) > _CACHED_WORDS:
            self._bpe.cache.clear()
        if any(token.endswith(CONTINUED) for token in tokens):
            return [unit for token in tokens for unit in self._unmistakable(token)]
        units: list[str] = self._bpe.segment_tokens(tokens)
        return units

    def _unmistakable(self, token: str) -> list[str]:
        """The units of a token, the last one never looking continued: "@@" becomes "@@@ @"."""
        units: list[str] = self._bpe.segment_tokens([token])
        last = units[-1:]
        if last and last[0].endswith(CONTINUED):
            return [*units[:-1], last[0][:-1] + CONTINUED, last[0][-1]]
        return units


def join(units: Iterable[str]) -> list[str]:
    """The tokens that these units make; the last one ends wherever the units do."""
    tokens, begun = [], ""
    for unit in units:
        if unit.endswith(CONTINUED):
            begun += unit.removesuffix(CONTINUED)
        else:
            tokens.append(begun + unit)
            begun = ""
    return [*tokens, begun] if begun else tokens


@contextmanager
def _quiet() -> Iterator[None]:
    """Let the learner's bar reach a terminal and nothing else, since it never ends a line."""
    if sys.stderr.isatty():
        yield
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        yield
