"""The Moses tokenizer and detokenizer: the tokens of sacremoses, several times as fast.

sacremoses applies about twenty regular expressions to each sentence. Nearly all of them match
within a chunk, the text between two spaces. So the tokens of a chunk are the same in every
sentence, and they are cached by chunk. The exceptions:

- a period at the end of a chunk: whether it is split off depends on the first character of the next
  chunk, of which there are three kinds. The kind is part of the cache key.
- an apostrophe or comma at the beginning of the sentence, an apostrophe at its end or after a chunk
  that ends in one, and the name that the library gives to several dots. sacremoses tokenizes such a
  sentence as a whole.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any

from sacremoses import MosesDetokenizer, MosesTokenizer

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.detokenizer import join_czech_dashes
from bleuprint.text.unicode import replace_white_space

Tokens = list[str]

# The kinds of a chunk, by its first character, each written as a character of that kind: a
# lower-case letter, a digit, or another character. The cache key of a chunk with a final period
# ends with a space and the kind of the next chunk: "etc. x".
_LOWER_CASE = "x"
_DIGIT = "1"
_OTHER = "A"
# The end of the key of a chunk at the end of the sentence, which is treated as before "other".
_KEY_END_AT_SENTENCE_END = f" {_OTHER}"

# sacremoses writes this name in place of several dots while it tokenizes.
_DOTS_NAME = "DOTMULTI"
_DIGITS = frozenset("0123456789")


class Moses:
    """The Moses tokenizer and detokenizer of one language, with a cache of tokenized chunks.

    A chunk is the text between two spaces. Its tokens are nearly always the same in every sentence.
    A language whose abbreviations sacremoses does not know uses those of English.
    """

    def __init__(self, language: str, splits_at_hyphens: bool, escapes_xml: bool) -> None:
        """Create the tokenizer and the detokenizer of sacremoses, and an empty cache of tokens.

        Args:
            language: The code of the language, such as `de`.
            splits_at_hyphens: Whether words are split at hyphens: a-b becomes a @-@ b.
            escapes_xml: Whether & < > ' " | [ ] are written as XML entities, such as &amp;.
        """
        self._sacremoses = _make_fast_sacremoses(language)
        self._tokenize_with_sacremoses: Callable[..., Tokens] = partial(
            self._sacremoses.tokenize,
            aggressive_dash_splits=splits_at_hyphens,
            escape=escapes_xml,
        )
        # sacremoses never splits a word that consists of these characters alone.
        word_characters = self._sacremoses.IsAlnum
        if not splits_at_hyphens:
            word_characters += "-"
        self._word_characters = frozenset(word_characters)
        self._lower_case_letters = frozenset(self._sacremoses.IsLower)
        # Abbreviations keep their period (Dr. Who), some of them only before a number (No. 5).
        self._number_abbreviations = frozenset(self._sacremoses.NUMERIC_ONLY_PREFIXES)
        all_abbreviations = frozenset(self._sacremoses.NONBREAKING_PREFIXES)
        self._abbreviations = all_abbreviations - self._number_abbreviations
        # Calls `_tokenize_chunk` for each key that it does not contain yet.
        self._tokens_by_key = BoundedCache(self._tokenize_chunk)
        self._detokenizer = MosesDetokenizer(language)
        self._escapes_xml = escapes_xml

    def tokenize(self, sentence: str) -> Tokens:
        """Split a sentence into the tokens of sacremoses, the Moses tokenizer.

        The sentence is split at white space into chunks. sacremoses is slow, so the tokens of each
        chunk are taken from a cache. In a few sentences the tokens of a chunk depend on its
        neighbors; sacremoses tokenizes these sentences as a whole. All kinds of white space, and
        characters that do not print, count as a space.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        chunks = text.split()
        if chunks and _needs_whole_sentence(text, chunks):
            return self._tokenize_with_sacremoses(text)
        keys = self._cache_keys(text, chunks)
        # A hot loop: `map` and `chain` are faster here than a loop in Python. The cache tokenizes a
        # chunk when its key is looked up for the first time.
        return list(chain.from_iterable(map(self._tokens_by_key.__getitem__, keys)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of a sentence, as sacremoses does; lower-cased text stays lower-cased.

        XML entities become characters first, if `tokenize` writes them.
        """
        text = " ".join(tokens)
        if self._escapes_xml:
            text = self._detokenizer.unescape_xml(text)
        if self._detokenizer.lang == "cs":
            # At some Czech dashes, sacremoses would raise a TypeError.
            text = join_czech_dashes(text)
        sentence: str = self._detokenizer.detokenize(text.split(" "), unescape=False)
        return sentence

    def _cache_keys(self, text: str, chunks: list[str]) -> list[str]:
        """Return the keys under which the tokens of a sentence's chunks are cached.

        A chunk is the text between two spaces. Most keys are the chunk itself. But whether Moses
        splits off a period at the end of a chunk depends on how the next chunk begins, so the key
        also tells this: it is "etc. x" if a lower-case letter follows "etc.", "etc. 1" if a digit
        follows, and otherwise "etc. A".

        Args:
            text: The sentence.
            chunks: Its chunks. The list is changed and returned, since a copy would take time.
        """
        first_period = text.find(".")
        has_no_period = first_period < 0
        if has_no_period:
            return chunks
        if first_period == len(text) - 1:
            # In most sentences, the only period is the last character.
            chunks[-1] += _KEY_END_AT_SENTENCE_END
            return chunks
        # After the last chunk, `_OTHER` represents the end of the sentence. The loop goes over a
        # copy of the chunks, since it changes them.
        for index, (chunk, next_chunk) in enumerate(pairwise([*chunks, _OTHER])):
            if chunk[-1] == ".":
                chunks[index] = f"{chunk} {self._kind_of_beginning(next_chunk)}"
        return chunks

    def _kind_of_beginning(self, chunk: str) -> str:
        """Return how a chunk, the text between two spaces, begins.

        Moses splits off a period or keeps it, depending on what kind of character follows.

        Returns:
            A character that represents the kind: x for a lower-case letter, 1 for a digit, A for
            any other character.
        """
        first_character = chunk[0]
        if first_character in self._lower_case_letters:
            return _LOWER_CASE
        return _DIGIT if first_character in _DIGITS else _OTHER

    def _tokenize_chunk(self, key: str) -> tuple[str, ...]:
        """Split a chunk, the text between two spaces, into tokens: `so,` into `so` and `,`.

        Most chunks are a word, perhaps with a comma or a period at its end. They are split here by
        the rules of Moses, which is faster. sacremoses, the Moses tokenizer, splits the others.

        Args:
            key: The cache key of the chunk, which is the chunk itself. If it ends in a period, the
                key also tells what follows: "etc. x" before a lower-case letter, "etc. 1" before a
                digit, otherwise "etc. A".
        """
        is_word = self._word_characters.issuperset(key)
        if is_word:
            return (key,)
        chunk, _, next_kind = key.partition(" ")
        word = chunk[:-1]
        mark = chunk[-1]
        is_word_with_mark = word and mark in ",." and self._word_characters.issuperset(word)
        if is_word_with_mark:
            keeps_period = mark == "." and (
                next_kind == _LOWER_CASE
                or word in self._abbreviations
                or (next_kind == _DIGIT and word in self._number_abbreviations)
            )
            return (chunk,) if keeps_period else (word, mark)
        # Without a final period, what follows makes no difference, and any kind will do.
        return self._split_by_sacremoses(chunk, next_kind or _LOWER_CASE)

    def _split_by_sacremoses(self, chunk: str, next_word: str) -> tuple[str, ...]:
        """Split a chunk, the text between two spaces, into the tokens of sacremoses.

        Args:
            chunk: The chunk.
            next_word: A word that begins like the next word of the sentence: `x`, `1` or `A`.
        """
        # sacremoses has special rules for the ends of a sentence, so a word is put on either side
        # of the chunk, and removed from the tokens.
        tokens = self._tokenize_with_sacremoses(f"x {chunk} {next_word}")
        return tuple(tokens[1:-1])


def _needs_whole_sentence(text: str, chunks: list[str]) -> bool:
    """Return whether a sentence must be tokenized as a whole, without the cache of chunks.

    A chunk is the text between two spaces. Nearly always, sacremoses (the Moses tokenizer) splits a
    chunk in the same way in all sentences, so that its tokens can be cached. The exceptions are
    marks at the ends of a sentence, two apostrophes around a space, and a name that sacremoses uses
    internally.

    Args:
        text: The sentence.
        chunks: Its chunks, at least one.
    """
    begins_with_mark = chunks[0][0] in "',"
    ends_with_apostrophe = chunks[-1][-1] == "'"
    if begins_with_mark or ends_with_apostrophe:
        return True
    # The first test is fast, and sorts out most sentences.
    has_apostrophes_around_space = "'" in text and "' '" in " ".join(chunks)
    # sacremoses writes this name in place of several dots while it tokenizes.
    return has_apostrophes_around_space or _DOTS_NAME in text


def _make_fast_sacremoses(language: str) -> Any:
    """Create the tokenizer of sacremoses for a language, with two of its methods made faster.

    At each period, sacremoses calls `islower` and `isanyalpha`, and each call builds sets of
    thousands of characters. The replacements return the same, and use sets that are built once.
    """
    library = MosesTokenizer(language)
    library.islower = frozenset(library.IsLower).issuperset
    letters = frozenset(library.IsAlpha)

    def contains_letter(text: str) -> bool:
        """Return whether a text contains a letter."""
        return not letters.isdisjoint(text)

    library.isanyalpha = contains_letter
    return library
