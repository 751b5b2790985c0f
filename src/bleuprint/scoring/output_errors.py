"""Errors of translations that need no reference to be seen: lost numbers, loops, another language.

The checks are those of cleaning (rules), and some that only the output of a model needs. The
references pass through the same checks: an error that the reference of a line has, too, is of the
text or of the check, and does not count. Nor does what the tokenizer does to an address or number
on the way there and back (plain Moses prints name@host as name @ host).
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.rules.agreement import Identical, Numerals
from bleuprint.rules.language_id import LanguageId
from bleuprint.rules.lengths import LengthRatio
from bleuprint.rules.rule import Candidate
from bleuprint.scoring.metric import Metric, Texts
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenizer, tokenizer_for
from bleuprint.text.unicode import replace_unprintable, replace_white_space

ANY_ERROR, EMPTY_OUTPUT, WRONG_LANGUAGE, CUT_OFF = "any error", "empty", "wrong language", "cut off"

# Said where it occurs.
CUT_OFF_NOTE = (
    f"{CUT_OFF}: the translation ended at the maximum length of an output (decode.max_len_a, "
    "decode.max_len_b), where the model preferred to go on"
)

# As in the recipes' filters.
_RATIO, _LANGUAGE = LengthRatio(max=3.0), LanguageId(min_odds=10.0)
_IDENTICAL, _NUMBERS = Identical(), Numerals()
# Addresses; and what programs fill in: {name}, {{name}}, ${name}, %s, %(name)s, %1$s.
_KEPT = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'«»„“”]*[^\s<>\"'«»„“”.,:;!?)\]}]|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
    r"|\$?\{{1,2} ?\w* ?\}{1,2}|%(?:\(\w+\)|\d\$)?[sdif]\b"
)
# The same, and numbers with their separators: what the tokenizer may bring back changed.
_COPIED = re.compile(rf"{_KEPT.pattern}|\d\S*\d")
_CLOSING = dict(zip("([{（［｛【「『《〈", ")]}）］｝】」』》〉", strict=True))
_CLOSED = frozenset(_CLOSING.values())
# A loop: tokens in a row that occur three times, or from _PHRASE tokens on twice; up to _LONGEST.
_PHRASE, _LONGEST = 4, 20
# Sentences whose language is identified together.
_BLOCK = 512


@lru_cache(maxsize=1)  # the metrics count them one by one
def _broken(texts: Texts) -> dict[str, list[tuple[int, int]]]:
    """By error of each line, whether it has the error, and whether it counts.

    It counts unless the reference has the error, too; with ANY_ERROR all lines do. WRONG_LANGUAGE
    is left out if the target language is not one that LanguageId knows, and CUT_OFF if no
    translation was cut.
    What does not print, such as a mark of direction after a number, is no difference.
    """
    languages = texts.corpus.source, texts.corpus.target
    source, target = (tokenizer_for(each, texts.corpus.tokenize) for each in languages)
    sources, references, hypotheses = (
        [*map(replace_unprintable, side)]
        for side in (texts.sources, texts.references, texts.hypotheses)
    )
    hypotheses = _as_written(sources, hypotheses, target)
    checks = dict(_CHECKS)
    if languages[1] in LanguageId.known_languages:
        foreign = _foreign({*references, *hypotheses}, languages[1])
        checks[WRONG_LANGUAGE] = lambda line: line.pair.target in foreign
    else:
        del checks[WRONG_LANGUAGE]

    def errors(pair: Pair) -> set[str]:
        if not replace_white_space(pair.target).strip():
            return {EMPTY_OUTPUT}
        line = Candidate(pair, languages, (source.tokenize, target.tokenize))
        return {name for name, fails in checks.items() if fails(line)}

    broken: dict[str, list[tuple[int, int]]] = {
        name: [] for name in (ANY_ERROR, EMPTY_OUTPUT, *checks)
    }
    if texts.cut:
        broken[CUT_OFF] = []
    lines = zip(sources, references, hypotheses, strict=True)
    for number, (line, reference, hypothesis) in enumerate(lines, 1):
        expected = errors(Pair(line, reference))
        own = errors(Pair(line, hypothesis)) - expected
        if number in texts.cut:
            own.add(CUT_OFF)
        for name in broken.keys() - {ANY_ERROR}:
            broken[name].append((int(name in own), int(name not in expected)))
        broken[ANY_ERROR].append((int(bool(own)), 1))
    return broken


def _kept(sentence: str) -> list[str]:
    return sorted(_KEPT.findall(sentence))


def _as_written(
    sources: Sequence[str], hypotheses: Sequence[str], tokenizer: Tokenizer
) -> list[str]:
    """Translations with the addresses and numbers of their sources as they are written there."""
    written = []
    for source, hypothesis in zip(sources, hypotheses, strict=True):
        for copied in _COPIED.findall(source):
            changed = tokenizer.detokenize(tokenizer.tokenize(copied))
            hypothesis = hypothesis.replace(changed, copied) if changed else hypothesis
        written.append(hypothesis)
    return written


def _foreign(translations: Iterable[str], language: str) -> set[str]:
    """Those in another language; in blocks, since one by one takes ten times as long."""
    foreign, rest = set[str](), iter(sorted(translations, key=len))
    while block := [*islice(rest, _BLOCK)]:
        # without a source, of which the check has nothing to say
        lines = [
            Candidate(Pair("", each), (language, language), (str.split,) * 2) for each in block
        ]
        kept = _LANGUAGE.keeps_each(lines)
        foreign.update(each for each, keeps in zip(block, kept, strict=True) if not keeps)
    return foreign


def has_loop(tokens: Sequence[str]) -> bool:
    """Whether tokens in a row, a letter or digit among them, recur at once, as defined above."""
    for size in range(1, min(_LONGEST, len(tokens) // 2) + 1):
        needed = size if size >= _PHRASE else 2 * size
        run = 0
        for place in range(size, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - size] else 0
            segment = "".join(tokens[place - size + 1 : place + 1]) if run >= needed else ""
            if any(map(str.isalnum, segment)):
                return True
    return False


def is_balanced(sentence: str) -> bool:
    """Whether each bracket is closed by its own, those opened last first."""
    expected = list[str]()
    for character in sentence:
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in _CLOSED and (not expected or expected.pop() != character):
            return False
    return not expected


def _more(errors: Callable[[Any], int], sides: tuple[Any, Any]) -> bool:
    """Whether the translation has more errors than its source."""
    source, target = map(errors, sides)
    return target > source


_CHECKS: dict[str, Callable[[Candidate], bool]] = {
    "too short": lambda line: _more(len, line.tokens[::-1]) and not _RATIO.keeps(line),
    "too long": lambda line: _more(len, line.tokens) and not _RATIO.keeps(line),
    WRONG_LANGUAGE: lambda _: False,  # of all lines together
    "untranslated": lambda line: not _IDENTICAL.keeps(line),
    "numbers": lambda line: not _NUMBERS.keeps(line),
    "URLs, placeholders": lambda line: _kept(line.pair.source) != _kept(line.pair.target),
    "repetition": lambda line: _more(has_loop, line.tokens),
    "unknown token": lambda line: _more(lambda side: side.count(SPECIALS[UNK]), line.pair),
    "brackets": lambda line: _more(lambda side: not is_balanced(side), line.pair),
}


# The errors in the order of tables. Their value is the number of lines that have them.
OUTPUT_ERRORS = tuple(
    Metric(
        *(name, name, lambda texts, name=name: _broken(texts).get(name), lambda sums: sums[:, 0]),
        kind="error",
        digits=0,
        highest=math.inf,
        lower_is_better=True,
        is_share=True,
    )
    for name in (ANY_ERROR, EMPTY_OUTPUT, *_CHECKS, CUT_OFF)
)
