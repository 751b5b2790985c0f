"""The form of lines: whether they are sentences, or subwords, tokens, JSON, quoted or other fields.

Text that was prepared for another toolkit is valid UTF-8, trains without an error and scores
wrongly: only a look at its form tells.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import regex

# Of a long text the first lines are looked at, and then every _STEP-th one.
_FIRST, _STEP = 10_000, 100
# A form of fewer lines is not reported: one line may be chance.
_FEWEST = 2

# Subwords: @@ ends a token inside a word; OpenNMT's joiner stands where a space was put.
_BPE = re.compile(r"[^\s@]@@(?!\S)|\uffed\S|\S\uffed")
_PIECES = re.compile(r"(?<!\S)\u2581\S|\S\u2581(?!\S)")
_WORD_PIECE = re.compile(r"\s##\w")
_WORD_END = re.compile(r"</w>(?!\S)")
# The space of byte-level BPE. It is a letter of Maltese, too, where it begins some words.
_BYTE_SPACE = "\u0120"
_BYTE_SPACE_INSIDE = re.compile(r"[a-z]\u0120")
# The shares of the tokens of a line that have a sign which some words have in any text.
_MARKED, _UNDERLINED = 0.4, 0.15
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
# Scripts without spaces between words: a line of so many words that are so short was segmented.
_UNSPACED = regex.compile(r"[\p{lb=SA}\p{lb=ID}\p{lb=CJ}]+")
_FEW_WORDS, _LONG_WORD = 4, 6.0

_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{2,6}|#x[0-9A-Fa-f]{2,6});")
_IN_TAGS = re.compile(r"<(\w+)(?:\s[^<>]*)?>.*</\1>")
_JSON_MEMBER = re.compile(r"\"[^\"]*\"\s*:\s")
_FIELD = r"(?:\"(?:[^\"]|\"\")*\"|[^\",;\t]*)"
_QUOTED_FIELDS = re.compile(rf"(?=.*\"){_FIELD}(?:[,;\t]{_FIELD})+")
_NUMBERED_FIELD = re.compile(r"\d+[,;|](?=\D)\S")
_NUMBERS = re.compile(r"\d+(?: \d+)+")
# Scripts whose sentences begin with a capital letter; the letters of a line that is long enough.
_CASED = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}\p{Armenian}]")
_FEW_LETTERS = 15


@dataclass(frozen=True)
class Form:
    """A form that lines may have.

    `name` and `remedy` are for notes. `least`: the share of the lines from which it is reported,
    above what real sentences reach.
    """

    name: str
    remedy: str
    least: float
    matches: Callable[[str], object]


@dataclass(frozen=True)
class FoundForm:
    """A form of a text, the share of the lines that have it, and the number of the first one."""

    form: Form
    share: float
    line: int

    def text(self, unit: str = "line") -> str:
        """97% of the lines look like BPE subwords (@@), such as line 3."""
        share = "nearly all" if 0.995 <= self.share < 1 else f"{self.share:.0%}"
        return f"{share} of the {unit}s look like {self.form.name}, such as {unit} {self.line:,}"


def _is_json(line: str) -> bool:
    """Whether a line is an object or a list, or a member of one that is written over lines."""
    text = line.strip().rstrip(",")
    if text.startswith(('{"', "{'", '{ "', "{ '")) and text.endswith("}"):
        return ":" in text
    if text.startswith("[") and text.endswith("]"):
        try:
            return bool(json.loads(text))
        except (ValueError, RecursionError):
            return False
    return _JSON_MEMBER.match(text) is not None


def _is_quoted(line: str) -> bool:
    """Whether all of a line is inside one pair of quotation marks."""
    text = line.strip()
    inner = text[1:-1].replace('\\"', "").replace('""', "")
    return len(text) > 2 and text[0] == text[-1] == '"' and '"' not in inner


def _is_quoted_with_comma(line: str) -> bool:
    text = line.strip()
    return len(text) > 3 and text[0] in "\"'" and text.endswith(f"{text[0]},")


def _is_fields(line: str) -> bool:
    text = line.strip()
    quoted = '"' in text and _QUOTED_FIELDS.fullmatch(text) is not None
    return quoted or _NUMBERED_FIELD.match(text) is not None


def _is_pieces(line: str) -> bool:
    """Whether SentencePiece's sign is at words, or an underscore that was written in its place."""
    if _PIECES.search(line):
        return True
    if "_" not in line:
        return False
    tokens = line.split()
    beginning = [token[0] == "_" and token[-1] != "_" for token in tokens]
    ending = [token[-1] == "_" and token[0] != "_" for token in tokens]
    several = max(2, _UNDERLINED * len(tokens))
    if beginning[0]:
        return sum(beginning) >= several
    return sum(ending) >= several and (ending[-1] or ending[0])


def _is_byte_pieces(line: str) -> bool:
    if _BYTE_SPACE not in line:
        return False
    tokens = line.split()
    beginning = sum(token.startswith(_BYTE_SPACE) for token in tokens)
    if beginning >= max(2, _MARKED * len(tokens)):
        return True
    return len(_BYTE_SPACE_INSIDE.findall(line)) > 1


def _is_tokens(line: str) -> bool:
    """Whether a tokenizer has set punctuation or words apart by spaces."""
    if " " not in line:
        return False
    if _TOKEN.search(line):
        return True
    if len(_POINT_APART.findall(line)) > len(_POINT_ATTACHED.findall(line)):
        return True
    if line.isascii():
        return False
    words = [word for word in line.split() if _UNSPACED.fullmatch(word)]
    return len(words) >= _FEW_WORDS and len("".join(words)) <= _LONG_WORD * len(words)


def _is_characters(line: str) -> bool:
    tokens = line.split()
    alone = [token for token in tokens if len(token) == 1]
    return len(tokens) >= 5 and len(alone) >= 0.9 * len(tokens) and any(map(str.isalpha, alone))


def _is_lower_case(line: str) -> bool:
    return line.islower() and len(_CASED.findall(line)) >= _FEW_LETTERS


_ALONE = "write the sentences alone, one per line"
ENTITIES = Form(
    "text with HTML entities (&amp;)",
    "replace the entities by their characters",
    0.2,
    _ENTITY.search,
)
LOWER_CASE = Form(
    "lower-cased text",
    "BLEU is cased: use text with its capital letters",
    0.9,
    _is_lower_case,
)
# What is right in text that was tokenized on purpose.
TOKENS = (
    Form(
        "characters set apart by spaces",
        "join the characters first",
        0.5,
        _is_characters,
    ),
    Form(
        "tokens set apart by spaces",
        "detokenize them first, as sacremoses detokenize does",
        0.2,
        _is_tokens,
    ),
    Form(
        "numbers of tokens",
        "decode them first by the vocabulary that made them",
        0.5,
        lambda line: _NUMBERS.fullmatch(line.strip()),
    ),
)
# In the order in which they are reported: first those that may enclose others.
FORMS = (
    Form("JSON", _ALONE, 0.2, _is_json),
    Form("quoted strings with a comma at the end", _ALONE, 0.1, _is_quoted_with_comma),
    Form("quoted or numbered fields (CSV)", _ALONE, 0.3, _is_fields),
    Form(
        "columns of a table (tabs)",
        "use format tsv with columns, or write one column alone",
        0.3,
        lambda line: "\t" in line.strip(),
    ),
    Form(
        "quoted strings",
        "remove the quotation marks, unless they belong to the sentences",
        0.5,
        _is_quoted,
    ),
    Form(
        "sentences with special symbols (<s>, </s>)",
        "remove the symbols: bleuprint adds its own",
        0.1,
        _SPECIAL.search,
    ),
    Form(
        "sentences in tags (XML, SGML)",
        _ALONE,
        0.3,
        lambda line: _IN_TAGS.fullmatch(line.strip()),
    ),
    Form("BPE subwords (@@)", "join the subwords first: sed -E 's/@@( |$)//g'", 0.05, _BPE.search),
    Form("SentencePiece pieces (▁)", "join the pieces first, as spm_decode does", 0.1, _is_pieces),
    Form("WordPiece subwords (##)", "join the subwords first", 0.1, _WORD_PIECE.search),
    Form("BPE subwords (</w>)", "join the subwords first", 0.1, _WORD_END.search),
    Form(
        "byte-level BPE (Ġ)",
        "decode it first by the tokenizer that made it",
        0.2,
        _is_byte_pieces,
    ),
    *TOKENS,
    ENTITIES,
    LOWER_CASE,
)


class FormCounter:
    """Counts the lines of each form of a text."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._lines = 0
        self._counts = [0] * len(FORMS)
        self._first = [0] * len(FORMS)
        for number, line in enumerate(lines, 1):
            self.add(number, line)

    def add(self, number: int, line: str) -> None:
        """Count line `number`, from 1. Empty lines, and most of a long text, are left out."""
        if number > _FIRST and number % _STEP:
            return
        if not line.strip():
            return
        self._lines += 1
        for place, form in enumerate(FORMS):
            if form.matches(line):
                self._counts[place] += 1
                if not self._first[place]:
                    self._first[place] = number

    def shares(self) -> dict[str, float]:
        """The share of the lines of each form that occurs, by its name."""
        return {
            form.name: count / self._lines
            for form, count in zip(FORMS, self._counts, strict=True)
            if count
        }

    def found(
        self, ignored: Collection[Form] = (), references: "FormCounter | None" = None
    ) -> FoundForm | None:
        """The first form that is frequent enough, None of sentences.

        Args:
            ignored: Forms that the text has on purpose.
            references: The forms of the text that this one is compared with. What half as many of
                its lines have is right here, too.
        """
        expected = {} if references is None else references.shares()
        for place, form in enumerate(FORMS):
            count = self._counts[place]
            if form in ignored or count < _FEWEST:
                continue
            share = count / self._lines
            if share >= form.least and expected.get(form.name, 0.0) < share / 2:
                return FoundForm(form, share, self._first[place])
        return None
