"""A vocabulary: the tokens of a language (subwords or words) and their ids.

Special tokens are defined here only. A token of the text that is spelled like one, such as "<s>",
gets no id of its own and is encoded as UNK: so text can neither end a sentence nor be padding.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bleuprint.runtime.atomic_files import atomic_file
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.text.parallel import read_lines

# The ids of the special tokens: padding, begin of sentence, end of sentence, unknown token.
PAD, BOS, EOS, UNK = range(4)
# Their spelling, in the order of their ids.
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """The tokens of a language in the order of their ids.

    Special tokens come first. Subwords of BPE and whole words are sorted by count, then by code
    point; pieces of SentencePiece are in the order of its model.

    Attributes:
        counts: All tokens and how often each occurs in the training text; 0 for special tokens.
        tokens: All tokens.
    """

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        """Create a vocabulary: the special tokens, such as EOS, and then the tokens of a text.

        Args:
            counts: The tokens of the text in the order of their ids, and how often each occurs.
        """
        self.counts = [(token, 0) for token in SPECIALS]
        self.tokens = list(SPECIALS)
        # It lacks the special tokens: the word "<s>" in a text must become UNK, not BOS.
        self._ids: dict[str, int] = {}
        for token, count in counts:
            self._ids[token] = len(self.tokens)
            self.counts.append((token, count))
            self.tokens.append(token)

    @classmethod
    def from_counts(
        cls, counts: Counter[str], max_size: int | None = None, min_count: int = 1
    ) -> "Vocabulary":
        """Create the vocabulary of a text.

        Args:
            counts: How often each token occurs in the text.
            max_size: The largest number of tokens, special tokens not counted; None for all. The
                most frequent tokens are kept.
            min_count: How often a token must occur to be kept.
        """
        # A word of the text that is spelled like a special token, such as <s>, gets no id.
        ordinary_counts = counts.copy()
        for token in SPECIALS:
            del ordinary_counts[token]
        return cls(most_frequent(ordinary_counts, min_count)[:max_size])

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens, UNK for unknown ones; EOS is not appended."""
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens of ids without PAD, BOS and EOS; UNK becomes "<unk>"."""
        return [self.tokens[token_id] for token_id in ids if token_id not in (PAD, BOS, EOS)]

    def write(self, path: Path) -> None:
        """Write a token, a space and its count on each line; line n has the id n - 1."""
        write_counts(path, self.counts)

    @classmethod
    def read(cls, path: Path) -> "Vocabulary":
        """Read a vocabulary.

        Raises:
            DamagedFile: A line is damaged, or the file does not begin with the special tokens.
        """
        counts = read_counts(path)
        first_tokens = [token for token, _ in counts[: len(SPECIALS)]]
        if first_tokens != list(SPECIALS):
            raise DamagedFile(path, f"its first lines are not {', '.join(SPECIALS)}")
        return cls(counts[len(SPECIALS) :])


def most_frequent(counts: Counter[str], min_count: int) -> list[tuple[str, int]]:
    """Return the tokens that occur at least `min_count` times, with their counts.

    The most frequent token comes first. Tokens with the same count are sorted by code point.

    Args:
        counts: How often each token occurs in the training text.
        min_count: The smallest count of a token that is returned.
    """

    def sort_key(entry: tuple[str, int]) -> tuple[int, str]:
        """Return the key to sort by: smaller keys come first, so counts become negative."""
        token, count = entry
        return -count, token

    entries = []
    for token, count in sorted(counts.items(), key=sort_key):
        if count >= min_count:
            entries.append((token, count))
    return entries


def write_counts(path: Path, entries: Iterable[tuple[str, int]]) -> None:
    """Write a token, a space and its count on each line, in the order of `entries`.

    Args:
        path: The file to write.
        entries: The tokens with their counts.
    """
    with atomic_file(path) as unfinished_path, unfinished_path.open("wb") as file:
        for token, count in entries:
            file.write(f"{token} {count}\n".encode())


def read_counts(path: Path) -> list[tuple[str, int]]:
    """Read tokens and their counts, as `write_counts` writes them.

    Raises:
        DamagedFile: A line is not a token, a space and a count; the message names the line.
    """
    entries = []
    for number, line in enumerate(read_lines(path), 1):
        # A token may itself contain spaces, so only the last space separates it from the count.
        token, separator, count = line.rpartition(" ")
        is_count = count.isascii() and count.isdecimal()
        if not separator or not is_count:
            raise DamagedFile(path, f"line {number} is not a token, a space and a count")
        entries.append((token, int(count)))
    return entries
