"""Moses' tokens, except where Moses would not join them again.

sacremoses splits `aujourd’hui`, http://a.b/c, {user_name}, 9:15, 1/2, AT&T and letters with
combining marks, and its detokenizer joins the pieces with spaces. Then no system could reproduce
the reference. The tokenizer of this module makes the round trip through tokens lossless:

- Addresses, placeholders and numbers are patterns that the library does not split.
- A chunk, the text between two spaces, is split only where the detokenizer joins it again. To find
  out, its tokens are joined on trial. Tokens between which a wrong space appears are made one.
- A mark or apostrophe that would lose a space is marked with the sign ␠ (U+2420).

`SpacedTokens` finds the wrong spaces and repairs the tokens.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.detokenizer import (
    APOSTROPHES,
    CURRENCIES,
    ELIDING,
    HYPHEN_TOKEN,
    QUOTES,
    SPLIT_AT_APOSTROPHES,
    TO_APOSTROPHE,
    Detokenizer,
)
from bleuprint.text.moses import Moses, Tokens
from bleuprint.text.spaced_tokens import SpacedTokens, merge_tokens
from bleuprint.text.unicode import replace_white_space

# Addresses, without a mark that ends the sentence.
_ADDRESSES = (
    r"(?<![\w+.-])(?:[a-z][a-z0-9+.-]*://|www\.|mailto:)"
    r"[^\s<>\"«»„“”]*[^\s<>\"'«»„“”.,:;!?)\]}]",
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
)
# Placeholders that programs fill in: {x}, {{x}}, ${x}, #{x}, %{x}, %s, %(x)s, %1$s, %.2f. Tags and
# entities of HTML and XML.
_PLACEHOLDERS = (
    r"[$#%]?\{{1,2}[^\s{}]*\}{1,2}",
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*+\d*+(?:\.\d+)?[sdifuxcgeor@](?!\w)|%%",
    r"</?[a-z][^\s<>]*>|</?\d+/?>|&(?:[a-z]\w*|#\d+);",
)
# Times, fractions, dates, decimal numbers: digits with single separators between them.
_NUMBERS = (r"(?<!\d)\d+(?:[.,:/'’٫٬]\d+)+",)
PROTECTED = ["|".join((*_ADDRESSES, *_PLACEHOLDERS, *_NUMBERS))]

# Marks whose spaces depend on the whole sentence: quotes, and currency signs except $.
_SENTENCE_MARKS = QUOTES | CURRENCIES - {"$"}
# Marks the text of a chunk whose tokens depend on the sentence. A sentence contains no line break.
_NEEDS_SENTENCE = "\n"
# How often tokens are joined on trial. Each attempt repairs what the last one left wrong.
_MAX_ATTEMPTS = 8


class RoundTripMoses(Moses):
    """A tokenizer and detokenizer of one language that reproduce the sentence.

    `detokenize(tokenize(sentence))` is the sentence with single spaces, with these exceptions:
    after , ; ? ! a missing space is added; an ASCII mark or quote alone between two spaces loses
    one of them; French has spaces before ? ! : ; % and inside « ».
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        """Create sacremoses' tokenizer, and a detokenizer, with which its tokens are tried out.

        Args:
            language: The code of the language, such as `de`.
            hyphens: Whether words are split at hyphens: a-b becomes a @-@ b.
            escape: Whether & < > ' " | [ ] are written as XML entities, such as &amp;.
        """
        # This class compares tokens with the sentence, and writes XML entities only after that. So
        # sacremoses must not write them.
        super().__init__(language, hyphens, escape=False)
        if language in ELIDING:
            # sacremoses splits after apostrophes (l' homme) in French and Italian only. Its rules
            # for French are right for all languages that do so.
            self._sacremoses.lang = "fr"
        self._splits_at_apostrophes = language in SPLIT_AT_APOSTROPHES
        if self._splits_at_apostrophes:
            # Words that consist of these characters are not split.
            self._word_characters -= frozenset(APOSTROPHES)
        self._is_french = language == "fr"
        self._trial_detokenizer = Detokenizer(language)
        self._line_by_key = BoundedCache(self._chunk_line)
        self._escape = escape
        self._escaped_tokens = BoundedCache(self._sacremoses.escape_xml)

    def tokenize(self, sentence: str) -> Tokens:
        """Split a sentence into tokens that `detokenize` joins to the same sentence.

        The sentence is split at white space, and the tokens of each part are looked up in a cache.
        In a sentence with quotes or currency signs, they are then adapted to each other. All kinds
        of white space, and characters that do not print, count as a space.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` and `chain` are faster here than a loop in Python. The cache tokenizes a
        # part when its key is looked up for the first time.
        tokens = list(chain.from_iterable(map(self._tokens_by_key.__getitem__, keys)))
        has_sentence_marks = not _SENTENCE_MARKS.isdisjoint(tokens)
        if has_sentence_marks:
            chunks = [self._tokens_by_key[key] for key in keys]
            tokens = self._repair_sentence(chunks)
        if self._escape:
            return [self._escaped_tokens[token] for token in tokens]
        return tokens

    def tokenize_to_line(self, sentence: str) -> str:
        """Return the tokens of a sentence as one text, separated by spaces.

        For most sentences, this joins cached texts and takes two thirds of the time of `tokenize`.
        The other sentences contain a chunk whose cached text begins with a line break; they are
        tokenized by `tokenize`.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` is faster here than a comprehension.
        line = " ".join(map(self._line_by_key.__getitem__, keys))
        if _NEEDS_SENTENCE in line:
            return " ".join(self.tokenize(sentence))
        return line

    def _chunk_line(self, key: str) -> str:
        """Return the tokens of a chunk, the text between two spaces, separated by spaces.

        A line break in front of them says that they cannot be used as they are: they depend on the
        rest of the sentence, since they contain a quote or currency sign, or they are to be written
        with XML entities.

        Args:
            key: The cache key of the chunk, which `_cache_keys` explains.
        """
        tokens = self._tokens_by_key[key]
        line = " ".join(tokens)
        needs_sentence = self._escape or not _SENTENCE_MARKS.isdisjoint(tokens)
        return f"{_NEEDS_SENTENCE}{line}" if needs_sentence else line

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of a sentence; lower-cased text stays lower-cased.

        XML entities become characters first, if `tokenize` writes them.
        """
        if self._escape:
            tokens = self._detokenizer.unescape_xml(" ".join(tokens)).split(" ")
        return self._trial_detokenizer.detokenize(tokens)

    def _split_by_sacremoses(self, chunk: str, next_word: str) -> tuple[str, ...]:
        """Split a chunk, the text between two spaces, only where it can be joined again.

        sacremoses proposes the tokens. Where the detokenizer would put a space between two of them,
        they become one token. Where the tokens have lost characters of the chunk, the whole chunk
        is one token.

        Args:
            chunk: The chunk.
            next_word: A word that begins like the next word of the sentence: `x`, `1` or `A`.
        """
        # sacremoses splits at ASCII apostrophes only.
        ascii_chunk = chunk.translate(TO_APOSTROPHE) if self._splits_at_apostrophes else chunk
        # sacremoses treats the ends of a sentence in another way, so a word is put on either side
        # of the chunk, and removed from the tokens.
        sentence = f"x {ascii_chunk} {next_word}"
        try:
            all_tokens = self._tokenize_with_sacremoses(sentence, protected_patterns=PROTECTED)
        except ValueError:
            # sacremoses cannot protect more than 1,000 addresses and numbers in one text.
            return (chunk,)
        ascii_tokens = all_tokens[1:-1]
        rejoined = "".join("-" if token == HYPHEN_TOKEN else token for token in ascii_tokens)
        if rejoined != ascii_chunk:
            # sacremoses has changed characters: it writes a name for several dots.
            return (chunk,)
        tokens = _restore_apostrophes(ascii_tokens, chunk)
        # The words around the chunk show whether the detokenizer would join it to a neighbor.
        with_neighbors = self._repair_chunk([("x",), tokens, ("x",)])
        return tuple(with_neighbors[1:-1])

    def _repair_chunk(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Merge those tokens of a chunk between which the detokenizer would put a wrong space.

        A chunk is the text between two spaces. Its tokens are joined on trial; where the result has
        a space inside the chunk, the tokens on both sides of it become one. This is repeated, since
        new tokens may be joined in another way. Spaces beside quotes at the edges of the chunk are
        left to `_repair_sentence`, and a missing space after a comma may be added.

        Args:
            chunks: The tokens of the chunk, between those of the word before it and after it.

        Returns:
            All tokens, in the attempt with the fewest wrong spaces. If tokens still change in the
            last attempt, each chunk is one token.
        """
        spaced = SpacedTokens.from_chunks(chunks)
        best_tokens = spaced.tokens
        fewest_wrong: int | None = None
        for _ in range(_MAX_ATTEMPTS):
            wrong_gaps = self._wrong_gaps(spaced)
            wrong_gaps -= spaced.gaps_at_edge_quotes()
            wrong_gaps -= spaced.gaps_after_commas()
            if fewest_wrong is None or len(wrong_gaps) < fewest_wrong:
                best_tokens = spaced.tokens
                fewest_wrong = len(wrong_gaps)
            repaired = spaced.repaired(sorted(wrong_gaps), only_first=False)
            if repaired is None:
                return best_tokens
            spaced = repaired
        return [merge_tokens(tokens) for tokens in chunks]

    def _repair_sentence(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Change the tokens of a sentence with quotes or currency signs, so that it can be joined.

        The tokens are joined on trial. Where the result has a wrong space or lacks one, two tokens
        become one, or a token is marked. Each attempt repairs only the first wrong place: whether a
        quote opens or closes depends on the quotes before it, so one repair may also set the
        following ones right.

        Args:
            chunks: The tokens of each chunk, that is, of each text between two spaces.

        Returns:
            The tokens of the sentence, in the attempt with the fewest wrong spaces.
        """
        spaced = SpacedTokens.from_chunks(chunks)
        best_tokens = spaced.tokens
        fewest_wrong: int | None = None
        for _ in range(_MAX_ATTEMPTS):
            wrong_gaps = self._wrong_gaps(spaced)
            if fewest_wrong is None or len(wrong_gaps) < fewest_wrong:
                best_tokens = spaced.tokens
                fewest_wrong = len(wrong_gaps)
            repaired = spaced.repaired(sorted(wrong_gaps), only_first=True)
            if repaired is None:
                break
            spaced = repaired
        return best_tokens

    def _wrong_gaps(self, spaced: SpacedTokens) -> set[int]:
        """Join tokens on trial; return where the result has a wrong space, or lacks one.

        The spaces that French has before ? ! : ; % and inside « » do not count as missing, since
        `detokenize` adds them.

        Args:
            spaced: The tokens, and where the sentence has spaces.

        Returns:
            Gaps, that is, positions between two tokens: gap i follows token i.
        """
        joined = self._trial_detokenizer.join_without_french_spaces(spaced.tokens)
        wrong_gaps = spaced.wrong_gaps(joined)
        if self._is_french:
            wrong_gaps -= spaced.gaps_with_french_space()
        return wrong_gaps


def _restore_apostrophes(ascii_tokens: Iterable[str], chunk: str) -> Tokens:
    """Return tokens with the characters of the original text, such as ’ instead of '.

    All apostrophes were written as ASCII before the text was tokenized. So token and text still
    have the same length, and the characters of each token are cut out of the text.

    Args:
        ascii_tokens: The tokens with ASCII apostrophes. The token @-@ represents one character, a
            hyphen inside a word.
        chunk: The original text, without spaces.
    """
    tokens = []
    position = 0
    for ascii_token in ascii_tokens:
        if ascii_token == HYPHEN_TOKEN:
            tokens.append(HYPHEN_TOKEN)
            position += 1
        else:
            end = position + len(ascii_token)
            tokens.append(chunk[position:end])
            position = end
    return tokens
