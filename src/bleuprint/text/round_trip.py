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

from collections.abc import Callable, Iterable, Sequence
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

    def __init__(self, language: str, splits_at_hyphens: bool, escapes_xml: bool) -> None:
        """Create the tokenizer of sacremoses, and a detokenizer, with which its tokens are tested.

        Args:
            language: The code of the language, such as `de`.
            splits_at_hyphens: Whether words are split at hyphens: a-b becomes a @-@ b.
            escapes_xml: Whether & < > ' " | [ ] are written as XML entities, such as &amp;.
        """
        # sacremoses must not write XML entities: its tokens are first compared with the sentence.
        # `tokenize` writes the entities afterwards.
        super().__init__(language, splits_at_hyphens, escapes_xml=False)
        if language in ELIDING:
            # sacremoses splits after an apostrophe (l' homme) only in French and Italian. Catalan
            # and Irish need the same, and its rules for French are right for all of them.
            self._sacremoses.lang = "fr"
        self._splits_at_apostrophes = language in SPLIT_AT_APOSTROPHES
        if self._splits_at_apostrophes:
            # A word of these characters is never split, so apostrophes must not be among them.
            self._word_characters -= frozenset(APOSTROPHES)
        self._is_french = language == "fr"
        self._trial_detokenizer = Detokenizer(language)
        self._line_by_key = BoundedCache(self._chunk_line)
        self._escapes_xml = escapes_xml
        self._escaped_tokens = BoundedCache(self._sacremoses.escape_xml)

    def tokenize(self, sentence: str) -> Tokens:
        """Split a sentence into tokens that `detokenize` joins to the same sentence.

        The sentence is split at white space into chunks, and the tokens of each chunk are taken
        from a cache. The spaces beside quotes and currency signs depend on the whole sentence, so
        in a sentence that contains them, the tokens are then tested together and changed where
        necessary. All kinds of white space, and characters that do not print, count as a space.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` and `chain` are faster here than a loop in Python. The cache tokenizes a
        # chunk when its key is looked up for the first time.
        tokens = list(chain.from_iterable(map(self._tokens_by_key.__getitem__, keys)))
        has_sentence_marks = not _SENTENCE_MARKS.isdisjoint(tokens)
        if has_sentence_marks:
            chunks = [self._tokens_by_key[key] for key in keys]
            tokens = self._repair_sentence(chunks)
        if self._escapes_xml:
            return [self._escaped_tokens[token] for token in tokens]
        return tokens

    def tokenize_to_line(self, sentence: str) -> str:
        """Return the tokens of a sentence as one text, separated by spaces.

        For most sentences, this joins cached texts and takes two thirds of the time of `tokenize`.
        A sentence with a quote, for example, cannot be joined from parts and goes to `tokenize`.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` is faster here than a comprehension.
        line = " ".join(map(self._line_by_key.__getitem__, keys))
        # `_chunk_line` has put this mark, a line break, before the text of some chunks.
        if _NEEDS_SENTENCE in line:
            return " ".join(self.tokenize(sentence))
        return line

    def _chunk_line(self, key: str) -> str:
        """Return the tokens of a chunk, the text between two spaces, separated by spaces.

        A line break is put before them if the caller cannot use them unchanged. This is so if they
        contain a quote or a currency sign, whose spaces depend on the rest of the sentence, or if
        XML entities must still be written.

        Args:
            key: The cache key of the chunk, which `_cache_keys` explains.
        """
        tokens = self._tokens_by_key[key]
        line = " ".join(tokens)
        needs_sentence = self._escapes_xml or not _SENTENCE_MARKS.isdisjoint(tokens)
        return f"{_NEEDS_SENTENCE}{line}" if needs_sentence else line

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the tokens of a sentence; lower-cased text stays lower-cased.

        XML entities become characters first, if `tokenize` writes them.
        """
        if self._escapes_xml:
            tokens = self._detokenizer.unescape_xml(" ".join(tokens)).split(" ")
        return self._trial_detokenizer.detokenize(tokens)

    def _split_by_sacremoses(self, chunk: str, next_word: str) -> tuple[str, ...]:
        """Split a chunk, the text between two spaces, only where it can be joined again.

        sacremoses, the Moses tokenizer, proposes the tokens. If the detokenizer would put a space
        between two of them, they become one token: `AT`, `&` and `T` become `AT&T`. If the tokens
        lack characters of the chunk, the whole chunk becomes one token.

        Args:
            chunk: The chunk.
            next_word: A word that begins like the next word of the sentence: `x`, `1` or `A`.
        """
        # sacremoses splits at ASCII apostrophes only.
        ascii_chunk = chunk.translate(TO_APOSTROPHE) if self._splits_at_apostrophes else chunk
        # sacremoses has special rules for the ends of a sentence, so a word is put on either side
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
        # With a word on either side, it shows whether the detokenizer would join the chunk to it.
        with_neighbors = self._repair_chunk([("x",), tokens, ("x",)])
        return tuple(with_neighbors[1:-1])

    def _repair_chunk(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Merge those tokens of a chunk between which the detokenizer would put a wrong space.

        A chunk is the text between two spaces. Its tokens are joined as a test. If the result has
        a space inside the chunk, the tokens on both sides of it become one. Merged tokens may get
        other spaces than before, so this is repeated.

        Two differences are accepted: spaces beside quotes at the edges of the chunk, which depend
        on the rest of the sentence, and a space that is added after a comma.

        Args:
            chunks: The tokens of the chunk, between those of the word before it and after it.

        Returns:
            All tokens, in the attempt with the fewest wrong spaces. If tokens still change in the
            last attempt, each chunk is one token.
        """
        tokens, is_complete = _repair(chunks, self._wrong_gaps_in_chunk, stops_after_first=False)
        if is_complete:
            return tokens
        return [merge_tokens(tokens_of_chunk) for tokens_of_chunk in chunks]

    def _repair_sentence(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Change the tokens of a sentence with quotes or currency signs, so that it can be joined.

        The tokens are joined as a test. At a wrong or missing space, two tokens become one, or a
        token gets the sign ␠, by which the detokenizer adds a space. Each attempt repairs only the
        first wrong place: whether a quote opens or closes depends on the quotes before it, so one
        repair may also correct the following places.

        Args:
            chunks: The tokens of each chunk, that is, of each text between two spaces.

        Returns:
            The tokens of the sentence, in the attempt with the fewest wrong spaces.
        """
        tokens, _ = _repair(chunks, self._wrong_gaps, stops_after_first=True)
        return tokens

    def _wrong_gaps_in_chunk(self, spaced: SpacedTokens) -> set[int]:
        """Return the gaps with wrong spaces, except for differences that a chunk may have.

        Args:
            spaced: The tokens of a chunk, and where the text has spaces.
        """
        wrong_gaps = self._wrong_gaps(spaced)
        wrong_gaps -= spaced.gaps_at_edge_quotes()
        wrong_gaps -= spaced.gaps_after_commas()
        return wrong_gaps

    def _wrong_gaps(self, spaced: SpacedTokens) -> set[int]:
        """Join tokens as a test, and return where the result has a wrong space, or lacks one.

        The spaces that French has before ? ! : ; % and inside « » do not count as missing, since
        `detokenize` adds them.

        Args:
            spaced: The tokens, and where the sentence has spaces.

        Returns:
            The wrong gaps. A gap is the position between two tokens; gap i follows token i.
        """
        joined = self._trial_detokenizer.join_without_french_spaces(spaced.tokens)
        wrong_gaps = spaced.wrong_gaps(joined)
        if self._is_french:
            wrong_gaps -= spaced.gaps_with_french_space()
        return wrong_gaps


def _repair(
    chunks: Sequence[Sequence[str]],
    find_wrong_gaps: Callable[[SpacedTokens], set[int]],
    stops_after_first: bool,
) -> tuple[Tokens, bool]:
    """Change tokens until they are joined without wrong spaces, or for a number of attempts.

    Args:
        chunks: The tokens of each chunk, that is, of each text between two spaces.
        find_wrong_gaps: Joins tokens as a test, and returns between which of them a space is wrong.
        stops_after_first: Whether each attempt repairs only the first wrong gap.

    Returns:
        All tokens, in the attempt with the fewest wrong spaces; and whether the attempts came to an
        end, since no gap could be repaired any more.
    """
    spaced = SpacedTokens.from_chunks(chunks)
    best_tokens = spaced.tokens
    fewest_wrong: int | None = None
    for _ in range(_MAX_ATTEMPTS):
        wrong_gaps = find_wrong_gaps(spaced)
        if fewest_wrong is None or len(wrong_gaps) < fewest_wrong:
            best_tokens = spaced.tokens
            fewest_wrong = len(wrong_gaps)
        repaired = spaced.repaired(sorted(wrong_gaps), stops_after_first)
        if repaired is None:
            return best_tokens, True
        spaced = repaired
    return best_tokens, False


def _restore_apostrophes(ascii_tokens: Iterable[str], chunk: str) -> Tokens:
    """Return tokens with the apostrophes of the original text, such as ’ instead of '.

    The Moses tokenizer knows only the ASCII apostrophe, so all others were replaced by it. This
    kept the length of the text: the characters of each token are still at the same position. For
    example, the tokens `l'` and `eau` of the text `l’eau` become `l’` and `eau`.

    Args:
        ascii_tokens: The tokens with ASCII apostrophes. The token @-@ represents one character, a
            hyphen at which a word was split.
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
