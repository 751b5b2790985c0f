"""A vocabulary: tokens (subwords or words) and their ids.

Special tokens are defined here only. A token of the text that is spelled like one ("<s>", say) gets
no id of its own and is encoded as UNK, so that text can neither end a sentence nor be padding.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bleuprint.runtime.files import DamagedFile, atomic_file
from bleuprint.text.parallel import read_lines

PAD, BOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """Tokens in the order of their ids: special tokens, then by count, then by code point.

    Pieces of SentencePiece are in the order of its model.
    """

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        """`counts`: the tokens other than special ones, in the order of their ids."""
        self.counts = [(token, 0) for token in SPECIALS] + list(counts)
        self.tokens = [token for token, _ in self.counts]
        self._ids = {token: i for i, token in enumerate(self.tokens) if i >= len(SPECIALS)}

    @classmethod
    def from_counts(
        cls, counts: Counter[str], max_size: int | None = None, min_count: int = 1
    ) -> "Vocabulary":
        """The vocabulary of a text in which each token occurs `counts` times.

        Keeps the `max_size` most frequent tokens (None: all; special tokens do not count) among
        those that occur at least `min_count` times.
        """
        ordinary = Counter({token: n for token, n in counts.items() if token not in SPECIALS})
        return cls(most_frequent(ordinary, min_count)[:max_size])

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of `tokens`, UNK for those not in the vocabulary. Adds no EOS."""
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of `ids` without PAD, BOS and EOS; UNK becomes "<unk>"."""
        return [self.tokens[i] for i in ids if i not in (PAD, BOS, EOS)]

    def write(self, path: Path) -> None:
        """Write "token count" a line; line n has the token of id n - 1."""
        write_counts(path, self.counts)

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        counts = read_counts(path)
        if [token for token, _ in counts[: len(SPECIALS)]] != [*SPECIALS]:
            raise DamagedFile(path, f"its first lines are not {', '.join(SPECIALS)}")
        return cls(counts[len(SPECIALS) :])


def most_frequent(counts: Counter[str], min_count: int) -> list[tuple[str, int]]:
    """The tokens that occur at least `min_count` times, by count, then by code point."""
    entries = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [entry for entry in entries if entry[1] >= min_count]


def write_counts(path: Path, entries: Iterable[tuple[str, int]]) -> None:
    """Write "token count" a line, in the order given."""
    with atomic_file(path) as partial, partial.open("wb") as file:
        for token, count in entries:
            file.write(f"{token} {count}\n".encode())


def read_counts(path: Path) -> list[tuple[str, int]]:
    """Read the file of `write_counts`; raises UserError, naming the line, if it is damaged."""
    entries = []
    for number, line in enumerate(read_lines(path), 1):
        token, separator, count = line.rpartition(" ")
        if not separator or not (count.isascii() and count.isdecimal()):
            raise DamagedFile(path, f"line {number} is not a token, a space and a count")
        entries.append((token, int(count)))
    return entries
