"""Which words of a text a system has met in its training text."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

import numpy as np
import regex

from bleuprint.dataset.binarized import ENDS, IDS, BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import UNK
from bleuprint.runtime.memoize import BoundedCache
from bleuprint.runtime.progress import track

# Sentences that are read together; unknown words that a message names, and its longest.
_SENTENCES, _NAMED, _LONGEST = 1 << 16, 10, 40
# Tokens of a training text whose words are read, at most.
_MOST = 20_000_000
# Letters and digits, whatever the tokenizer joins to them; in scripts without spaces (UAX #14) and
# of symbols each character.
_ALONE = r"\p{lb=SA}\p{lb=ID}\p{lb=CJ}\p{Tibetan}\p{So}\p{Sc}"
_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+|[{_ALONE}]", regex.V1)


class KnownWords:
    """The distinct words of the training text of a corpus's source side.

    They are read from the binarized text when first asked for; of texts of more than 20 million
    tokens, which would take a minute and lack few words, only UNK is unknown. A word is not known
    if it is UNK in the training text, or has one.
    """

    def __init__(self, corpus: BinaryCorpus, language: str = "") -> None:
        """`language`: that of the text, of a corpus with several directions."""
        self._corpus, self._language = corpus, language or corpus.source
        self._segmentation = corpus.segmentation(corpus.source)
        self._known = BoundedCache(self._is_known)
        self._read = corpus.sets["train"].source_tokens <= _MOST

    def unknown(self, words: Iterable[str]) -> list[str]:
        """Those of `words` that are not known, in their order."""
        return [word for word in words if not self._known[word]]

    def __len__(self) -> int:
        return len(self._all)

    def __str__(self) -> str:
        pairs, name = self._corpus.sets["train"].pairs, self._corpus.folder.name
        of_words = f", with {len(self):,} different source words" if self._read else ""
        return f"{pairs:,} pairs of {name}{of_words}"

    def note(self, unknown: Counter[str], count: int) -> tuple[str, str]:
        """What to say of a text of `count` words, and its kind: a warning if most are unknown.

        Names the most frequent of the unknown ones, so that the line is short for any text.
        """
        named = [word for word, _ in unknown.most_common(_NAMED)]
        named = [word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…" for word in named]
        more = f" and {len(unknown) - _NAMED:,} others" if len(unknown) > _NAMED else ""
        said = f"{unknown.total():,} of {count:,} words were not in the training text: "
        said += f"{', '.join(named)}{more} ({self})"
        if 2 * unknown.total() <= count:
            return said, "note"
        cure = f"is it {self._language}? For other text: bleuprint new-corpus --help"
        return f"{said}: the translations are guesses; {cure}", "warning"

    @cached_property
    def _all(self) -> set[str]:
        return set(words(self._segmentation.decode(self._distinct())))

    def _distinct(self) -> list[int]:
        """The ids of each distinct token of the tokenizer, without those that have UNK."""
        base = f"{self._corpus.folder}/train.{self._corpus.source}"
        ids, ends = (np.load(f"{base}.{kind}", mmap_mode="r") for kind in (IDS, ENDS))
        alone, joined = np.zeros(len(self._segmentation.vocabulary), bool), set[bytes]()
        bounds = [0, *ends[_SENTENCES - 1 : -1 : _SENTENCES].tolist(), len(ids)]
        spans = track(pairwise(bounds), "read the training text", len(bounds) - 1, "blocks")
        for start, stop in spans:
            block = np.asarray(ids[start:stop])
            after = np.flatnonzero(self._segmentation.ends_word(block)) + 1
            first = np.concatenate(([0], after[:-1]))
            single = after - first == 1
            alone[block[first[single]]] = True
            several = ~single & ~np.logical_or.reduceat(block == UNK, first)
            content, size = block.tobytes(), block.itemsize
            cuts = (size * first[several]).tolist(), (size * after[several]).tolist()
            joined.update(content[begin:end] for begin, end in zip(*cuts, strict=True))
        alone[UNK] = False
        tokens: list[int] = np.frombuffer(b"".join(joined), ids.dtype).tolist()
        return [*np.flatnonzero(alone).tolist(), *tokens]

    def _is_known(self, word: str) -> bool:
        ids = self._segmentation.encode([word])[:-1].tolist()
        # as SentencePiece normalizes it
        if UNK in ids or not self._read:
            return UNK not in ids
        return "".join(self._segmentation.decode(ids)) in self._all


def words(tokens: Iterable[str]) -> list[str]:
    """The words of a tokenized sentence, without its punctuation."""
    found: list[str] = _WORD.findall(" ".join(tokens))
    return found
