"""Detects the form of a text: whether its lines are sentences, or something else by mistake.

A form is a way in which lines may be written: as BPE subwords (Hal@@ lo), as tokens set apart by
spaces (Hello , world !), as JSON, as fields of a table, in lower case, and so on. Text of such a
form is valid UTF-8 and trains without an error, but its scores are wrong or cannot be compared.

`FORMS` lists all forms with what to do about each. Every form has a test of a single line, made of
regular expressions and shares of tokens. One line may have a form by chance: `form_counter` counts
the lines of a text that have each form.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import regex

# Subwords: @@ ends a token inside a word; OpenNMT's joiner stands where a space was put.
_BPE = re.compile(r"[^\s@]@@(?!\S)|\uffed\S|\S\uffed")
_PIECES = re.compile(r"(?<!\S)\u2581\S|\S\u2581(?!\S)")
_WORD_PIECE = re.compile(r"\s##\w")
_WORD_END = re.compile(r"</w>(?!\S)")
# The space of byte-level BPE. It is a letter of Maltese, too, where it begins some words.
_BYTE_SPACE = "\u0120"
_PRINTED_BYTES = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTE_SPACE_INSIDE = re.compile(r"[a-z]\u0120")
# A line is in subwords if at least this share of its tokens begins with a byte-level space, or has
# an underscore at one end. In any text, a few words do.
_MIN_BYTE_SPACE_SHARE = 0.4
_MIN_UNDERSCORE_SHARE = 0.15
_SPECIAL = re.compile(r"(?<!\S)(?:</?s>|<(?:bos|eos|pad|sep|cls)>|\[(?:CLS|SEP|PAD)\])(?!\S)", re.I)

# Tokens that only tokenizers write: &apos; and @-@ of Moses, brackets and n't of the Penn Treebank.
_TOKEN = re.compile(
    r"(?<!\S)&(?:quot|apos|#91|#93|#124);(?!\S)"
    r"|(?<!\S)&apos;(?:s|t|re|ve|ll|d|m)(?!\S)"
    r"|(?<!\S)@[^\w\s]@(?!\S)"
    r"|(?<!\S)\( [^()]+ \)(?!\S)"
    r"|(?<!\S)-(?:LRB|RRB)-(?!\S)"
    r"|\w (?:n't|'(?:s|re|ve|ll|d|m))(?!\S)"
)
# French sets a space before ? ! : ; and », no language before a period or a comma. The periods of
# an ellipsis (" . . .") do not count.
_POINT_APART = re.compile(r"[^\s.,] [.,](?!\S)(?! [.,])|\S [。、，．]")
# A careless writer sets some points apart, and others where they belong.
_POINT_ATTACHED = re.compile(r"[^\W\d_][.,](?!\S)")
# Scripts without spaces between words, such as Chinese and Thai. A line was segmented into words if
# it has at least so many words with at most so many characters on average.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=ID}\p{lb=CJ}]+")
_MIN_SEGMENTED_WORDS = 4
_MAX_MEAN_WORD_LENGTH = 6.0
# A line is set apart into characters if it has at least so many tokens, and at least this share of
# them is one character long.
_MIN_CHARACTER_TOKENS = 5
_MIN_CHARACTER_SHARE = 0.9

_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{2,6}|#x[0-9A-Fa-f]{2,6});")
_IN_TAGS = re.compile(r"<(\w+)(?:\s[^<>]*)?>.*</\1>")
_JSON_MEMBER = re.compile(r"\"[^\"]*\"\s*:\s")
_FIELD = r"(?:\"(?:[^\"]|\"\")*\"|[^\",;\t]*)"
_QUOTED_FIELDS = re.compile(rf"(?=.*\"){_FIELD}(?:[,;\t]{_FIELD})+")
_NUMBERED_FIELD = re.compile(r"\d+[,;|](?=\D)\S")
# Fields of a list of the best translations (0 ||| TEXT ||| -1.2), and of the pairs that fast_align
# reads (Hello ||| Hallo).
_BAR_FIELDS = re.compile(r"(?<!\S)\|\|\|(?!\S)")
# The times of subtitles in SubRip and WebVTT, YouTube's SBV, LRC, Advanced SubStation and MicroDVD.
_SUBTITLE_TIMES = re.compile(
    r"\d:\d\d[.,]\d{1,3} *--> *\d"
    r"|^\d+:\d\d:\d\d\.\d{3},\d+:\d\d:\d\d\.\d{3}\s*$"
    r"|^\[\d{1,3}:\d\d[.:]\d\d\d?\]"
    r"|^(?:Dialogue|Comment): \d+,\d+:\d\d:\d\d\.\d\d,"
    r"|^\{\d+\}\{\d+\}"
)
# Characters as JSON and Python write them in strings: \u00f6, \U0001f600, \xf6.
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U000[0-9A-Fa-f]{5}|x[0-9A-Fa-f]{2})")
# A token with factors, as Moses (the|DT) and OpenNMT write them, or with a part of speech (the_DT).
_FACTORED_TOKEN = re.compile(r"[^|\uffe8]+(?:[|\uffe8][^|\uffe8]+)+|.+[/_](?:[A-Z]{2,5}\$?|[.,:])")
# A line is in factored tokens if at least this share of its tokens are, and at least so many.
_MIN_FACTORED_SHARE = 0.8
_MIN_FACTORED_TOKENS = 2
_NUMBERS = re.compile(r"\d+(?: \d+)+")
# Scripts whose sentences begin with a capital letter, and the number of their letters from which a
# line is long enough to contain one.
_CASED = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}]")
_MIN_CASED_LETTERS = 15


@dataclass(frozen=True)
class Form:
    """A form that lines may have.

    Attributes:
        name: What the lines look like, for notes.
        remedy: What to do about it, as a sentence without its full stop, for notes.
        min_share: The share of the lines from which the form is reported. Real sentences stay below
            it.
        matches: Returns a true value for a line of this form.
        translations_remedy: What to do about it in a file of translations of an external system;
            `remedy` if it is empty.
    """

    name: str
    remedy: str
    min_share: float
    matches: Callable[[str], object]
    translations_remedy: str = ""


def _is_json(line: str) -> bool:
    """Return whether a line is written in JSON: an object, a list, or one member of an object.

    A program may write one object per line, or an object over several lines, with one member each,
    such as "en": "Hello". Objects with single quotation marks, as Python prints them, also count.
    """
    text = line.strip().rstrip(",")
    is_object = text.startswith(('{"', "{'", '{ "', "{ '")) and text.endswith("}")
    if is_object:
        return ":" in text
    is_in_brackets = text.startswith("[") and text.endswith("]")
    if is_in_brackets:
        try:
            # A sentence may be in brackets, too, so the brackets must contain JSON. The result of
            # an empty list, [], is False.
            return bool(json.loads(text))
        except (ValueError, RecursionError):
            return False
    return _JSON_MEMBER.match(text) is not None


def _is_quoted(line: str) -> bool:
    """Return whether one pair of quotation marks encloses the whole line, as in a file of strings.

    A line such as "Yes", he said, "no" has several pairs; it is an ordinary sentence.
    """
    text = line.strip()
    if len(text) <= 2 or text[0] != '"' or text[-1] != '"':
        return False
    # Escaped quotation marks, as \" or "", belong to the quoted text.
    quoted_text = text[1:-1].replace('\\"', "").replace('""', "")
    return '"' not in quoted_text


def _is_quoted_with_comma(line: str) -> bool:
    """Return whether a line is a quoted string and a comma, as an element of a list in code."""
    text = line.strip()
    if len(text) <= 3:
        return False
    first_character = text[0]
    is_quotation_mark = first_character in "\"'"
    return is_quotation_mark and text.endswith(f"{first_character},")


def _is_csv_row(line: str) -> bool:
    """Return whether a line looks like a row of a CSV file: 12,Hello or "Hello","Hallo".

    Many sentences contain commas, so a field must be in quotation marks, or the first field must be
    a number.
    """
    text = line.strip()
    if '"' in text and _QUOTED_FIELDS.fullmatch(text):
        return True
    return _NUMBERED_FIELD.match(text) is not None


def _is_sentencepiece(line: str) -> bool:
    """Return whether a line consists of SentencePiece's subwords, such as ▁Hal lo.

    SentencePiece writes a space as ▁, at the beginning or end of a subword. Some programs write an
    underscore instead. Ordinary text also contains a few underscores, so 15% of the tokens must
    have one, all on the same side.
    """
    has_space_sign = _PIECES.search(line)
    if has_space_sign:
        return True
    if "_" not in line:
        return False
    tokens = line.split()
    min_tokens = max(2, _MIN_UNDERSCORE_SHARE * len(tokens))
    # If words begin with an underscore, so does the first word.
    if _has_only_first_underscore(tokens[0]):
        return _count_tokens(tokens, _has_only_first_underscore) >= min_tokens
    # If words end with an underscore, so does the first or the last word.
    if _has_only_last_underscore(tokens[0]) or _has_only_last_underscore(tokens[-1]):
        return _count_tokens(tokens, _has_only_last_underscore) >= min_tokens
    return False


def _has_only_first_underscore(token: str) -> bool:
    """Return whether a token begins with an underscore, but does not end with one."""
    return token[0] == "_" and token[-1] != "_"


def _has_only_last_underscore(token: str) -> bool:
    """Return whether a token ends with an underscore, but does not begin with one."""
    return token[-1] == "_" and token[0] != "_"


def _count_tokens(tokens: Iterable[str], has_property: Callable[[str], object]) -> int:
    """Count the tokens for which a function returns a true value."""
    count = 0
    for token in tokens:
        if has_property(token):
            count += 1
    return count


def _bytes_by_character() -> dict[str, int]:
    """Return the byte that each character of byte-level BPE represents, as in GPT-2.

    Byte-level BPE splits the bytes of a text into subwords, and writes each byte as a visible
    character. A byte that is a visible character in Latin-1 is written as that character. The other
    bytes, in ascending order, are written as the characters from U+0100 on: a space, byte 32,
    becomes Ġ.
    """
    bytes_by_character = {}
    next_code_point = 0x100
    for byte in range(256):
        if byte in _PRINTED_BYTES:
            bytes_by_character[chr(byte)] = byte
        else:
            bytes_by_character[chr(next_code_point)] = byte
            next_code_point += 1
    return bytes_by_character


_BYTES_BY_CHARACTER = _bytes_by_character()


def _decodes_as_byte_level_bpe(line: str) -> bool:
    """Return whether a line can be decoded as byte-level BPE, to a text without control characters.

    Byte-level BPE writes each byte of a UTF-8 text as a visible character. Some of these characters
    are also letters of Maltese, but a sentence in Maltese cannot be decoded: its letter ħ would
    represent a byte that UTF-8 does not allow there, and ġ and ċ would represent control
    characters.
    """
    characters = "".join(line.split())
    if not all(character in _BYTES_BY_CHARACTER for character in characters):
        return False
    encoded_text = bytes(_BYTES_BY_CHARACTER[character] for character in characters)
    try:
        text = encoded_text.decode()
    except UnicodeDecodeError:
        return False
    for character in text:
        is_control = unicodedata.category(character) == "Cc"
        if is_control and character not in "\t\n\r":
            return False
    return True


def _is_factored(line: str) -> bool:
    """Return whether nearly all tokens of a line have factors, such as a part of speech: the|DT.

    Moses writes factors in this way, and OpenNMT and part-of-speech taggers in similar ones.
    """
    tokens = line.split()
    factored_tokens = _count_tokens(tokens, _FACTORED_TOKEN.fullmatch)
    min_tokens = max(_MIN_FACTORED_TOKENS, _MIN_FACTORED_SHARE * len(tokens))
    return factored_tokens >= min_tokens


def _is_byte_level_bpe(line: str) -> bool:
    """Return whether a line consists of subwords of byte-level BPE, such as Hello Ġworld.

    Byte-level BPE writes a space as Ġ. Either 40% of the tokens, and at least two, begin with Ġ; or
    the subwords have no spaces between them, and Ġ is inside the line at least twice:
    HelloĠnewĠworld. Maltese has the same letter, so it must also be possible to decode the line.
    """
    if _BYTE_SPACE not in line or not _decodes_as_byte_level_bpe(line):
        return False
    tokens = line.split()
    marked_tokens = 0
    for token in tokens:
        if token.startswith(_BYTE_SPACE):
            marked_tokens += 1
    min_tokens = max(2, _MIN_BYTE_SPACE_SHARE * len(tokens))
    if marked_tokens >= min_tokens:
        return True
    signs_inside_words = _BYTE_SPACE_INSIDE.findall(line)
    return len(signs_inside_words) > 1


def _is_tokenized(line: str) -> bool:
    """Return whether a line consists of tokens with spaces between them, such as Hello , world !

    There are three signs of it: a token that only tokenizers write, such as &apos; or n't; more
    periods and commas with a space before them than without; and spaces between the words of a
    language that is written without spaces, such as Chinese or Thai.
    """
    if " " not in line:
        return False
    has_token_of_tokenizer = _TOKEN.search(line)
    if has_token_of_tokenizer:
        return True
    points_after_space = len(_POINT_APART.findall(line))
    points_after_word = len(_POINT_ATTACHED.findall(line))
    if points_after_space > points_after_word:
        return True
    # All scripts without spaces between words are outside of ASCII.
    if line.isascii():
        return False
    unspaced_words = [word for word in line.split() if _UNSPACED.fullmatch(word)]
    if len(unspaced_words) < _MIN_SEGMENTED_WORDS:
        return False
    # A sentence that was not tokenized may also have spaces, but its parts are long.
    character_count = sum(len(word) for word in unspaced_words)
    return character_count <= _MAX_MEAN_WORD_LENGTH * len(unspaced_words)


def _is_split_into_characters(line: str) -> bool:
    """Return whether a line consists of single characters with spaces between them: H e l l o.

    Nearly all tokens must be one character long, and one of them must be a letter.
    """
    tokens = line.split()
    if len(tokens) < _MIN_CHARACTER_TOKENS:
        return False
    characters = [token for token in tokens if len(token) == 1]
    if len(characters) < _MIN_CHARACTER_SHARE * len(tokens):
        return False
    return any(character.isalpha() for character in characters)


def _is_lower_case(line: str) -> bool:
    """Return whether a line has no capital letter, although it is long enough to expect one.

    Its length is counted in letters of scripts that have capital letters, such as Latin.
    """
    return line.islower() and len(_CASED.findall(line)) >= _MIN_CASED_LETTERS


_ALONE = "Write the sentences alone, one per line"
_TRANSLATIONS_ALONE = "Write the translations alone, one per line"
ENTITIES = Form(
    "text with HTML entities (&amp;)",
    "Replace the entities by their characters",
    0.2,
    _ENTITY.search,
)
LOWER_CASE = Form(
    "lower-cased text",
    "BLEU is cased, so use text with its capital letters",
    0.9,
    _is_lower_case,
)
# Forms that are right in a text that was tokenized on purpose.
TOKENS = (
    Form(
        "characters set apart by spaces",
        "Join the characters first",
        0.5,
        _is_split_into_characters,
    ),
    Form(
        "tokens set apart by spaces",
        "Detokenize them first, as sacremoses detokenize does",
        0.2,
        _is_tokenized,
    ),
    Form(
        "numbers of tokens",
        "Decode them first by the vocabulary that made them",
        0.5,
        lambda line: _NUMBERS.fullmatch(line.strip()),
    ),
)
# All forms. The first one that applies is reported, so a form that may enclose another, such as
# JSON whose strings are subwords, comes before it.
FORMS = (
    Form("JSON", _ALONE, 0.2, _is_json, _TRANSLATIONS_ALONE),
    Form(
        "fields with ||| between them (n-best list, fast_align)",
        _ALONE,
        0.1,
        _BAR_FIELDS.search,
        _TRANSLATIONS_ALONE,
    ),
    Form(
        "subtitles with their times (-->)",
        _ALONE,
        0.1,
        _SUBTITLE_TIMES.search,
        _TRANSLATIONS_ALONE,
    ),
    Form(
        "quoted strings with a comma at the end",
        _ALONE,
        0.1,
        _is_quoted_with_comma,
        _TRANSLATIONS_ALONE,
    ),
    Form("quoted or numbered fields (CSV)", _ALONE, 0.3, _is_csv_row, _TRANSLATIONS_ALONE),
    Form(
        "columns of a table (tabs)",
        "Use format tsv with columns, or write one column alone",
        0.3,
        lambda line: "\t" in line.strip(),
        _TRANSLATIONS_ALONE,
    ),
    Form(
        "quoted strings",
        "Remove the quotation marks, unless they belong to the sentences",
        0.5,
        _is_quoted,
    ),
    Form(
        "sentences with special symbols (<s>, </s>)",
        "Remove the symbols, since bleuprint adds its own",
        0.1,
        _SPECIAL.search,
        "Remove the symbols",
    ),
    Form(
        "sentences in tags (XML, SGML)",
        _ALONE,
        0.3,
        lambda line: _IN_TAGS.fullmatch(line.strip()),
        _TRANSLATIONS_ALONE,
    ),
    Form(
        "factored tokens (the|DT)",
        "Remove the factors, then detokenize the words",
        0.3,
        _is_factored,
    ),
    Form("BPE subwords (@@)", "Join the subwords first: sed -E 's/@@( |$)//g'", 0.05, _BPE.search),
    Form(
        "SentencePiece pieces (▁)",
        "Join the pieces first, as spm_decode does",
        0.1,
        _is_sentencepiece,
    ),
    Form("WordPiece subwords (##)", "Join the subwords first", 0.2, _WORD_PIECE.search),
    Form("BPE subwords (</w>)", "Join the subwords first", 0.1, _WORD_END.search),
    Form(
        "byte-level BPE (Ġ)",
        "Decode it first by the tokenizer that made it",
        0.2,
        _is_byte_level_bpe,
    ),
    *TOKENS,
    Form(
        "text with escaped characters (\\u00f6)",
        "Replace the escapes by their characters",
        0.05,
        _ESCAPE.search,
    ),
    ENTITIES,
    LOWER_CASE,
)
