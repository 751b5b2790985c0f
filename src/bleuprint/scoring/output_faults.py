"""Faults of translations that need no reference to be seen: lost numbers, loops, another language.

The checks are those of cleaning (rules), and some that only the output of a model needs. The
references pass through the same checks: a fault that the reference of a line has, too, is of the
text or of the check, and does not count. Nor does what the tokenizer does to an address or number
on the way there and back (plain Moses prints name@host as name @ host).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

from bleuprint.config.corpus import Corpus
from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.rules.copied import Identical, Numbers
from bleuprint.rules.language_id import LanguageId
from bleuprint.rules.lengths import Ratio
from bleuprint.rules.rule import Candidate
from bleuprint.scoring.measure import Measure, Texts
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenizer, tokenizer_for
from bleuprint.text.unicode import blank_unprinted, blank_white

ANY, EMPTY, LANGUAGE = "any fault", "empty", "other language"

# As in the recipes' filters.
_RATIO, _LANGUAGE = Ratio(max=3.0), LanguageId(likelier=10.0)
_IDENTICAL, _NUMBERS = Identical(), Numbers()
# Addresses; and what programs fill in: {name}, {{name}}, ${name}, %s, %(name)s, %1$s.
_KEPT = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'«»„“”]*[^\s<>\"'«»„“”.,:;!?)\]}]|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
    r"|\$?\{{1,2} ?\w* ?\}{1,2}|%(?:\(\w+\)|\d\$)?[sdif]\b"
)
# The same, and numbers with their separators: what the tokenizer may bring back changed.
_COPIED = re.compile(rf"{_KEPT.pattern}|\d\S*\d")
_CLOSING = dict(zip("([{（［｛【「『《〈", ")]}）］｝】」』》〉", strict=True))
_BRACKETS = {*_CLOSING, *_CLOSING.values()}
# A loop: tokens in a row that occur three times, or from _PHRASE tokens on twice; up to _LONGEST.
_PHRASE, _LONGEST = 4, 20
# Sentences whose language is identified together.
_BLOCK = 512


@lru_cache(maxsize=1)  # the measures count them one by one
def _broken(texts: Texts) -> dict[str, list[tuple[int, int]]]:
    """By fault of each line, whether it has the fault, and whether it counts.

    It counts unless the reference has the fault, too; with ANY all lines do. LANGUAGE is left
    out if the target language is not one that LanguageId knows. What does not print, such as a mark
    of direction after a number, is no difference.
    """
    corpus = texts.corpus
    sources, references, hypotheses = (
        [*map(blank_unprinted, side)]
        for side in (texts.sources, texts.references, texts.hypotheses)
    )
    hypotheses = _as_written(sources, hypotheses, tokenizer_for(corpus.target, corpus.tokenize))
    check = _Checks(corpus, {*references, *hypotheses})
    broken: dict[str, list[tuple[int, int]]] = {name: [] for name in (ANY, *check.names)}
    for source, reference, hypothesis in zip(sources, references, hypotheses, strict=True):
        expected = {*check.faults(source, reference)}
        found = {*check.faults(source, hypothesis)} if hypothesis != reference else expected
        own = found - expected
        for name in check.names:
            broken[name].append((int(name in own), int(name not in expected)))
        broken[ANY].append((int(bool(own)), 1))
    return broken


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


class _Checks:
    """The checks of a corpus's translations, of which `translations` are all."""

    def __init__(self, corpus: Corpus, translations: Collection[str]) -> None:
        self._languages = corpus.source, corpus.target
        source, target = (tokenizer_for(each, corpus.tokenize) for each in self._languages)
        self._tokenizers = source.tokenize, target.tokenize
        checks = dict(_BY_LENGTH)
        if corpus.target in _LANGUAGE.known_languages:
            foreign = self._foreign(sorted(translations, key=len))
            checks[LANGUAGE] = lambda line: line.pair.target in foreign
        self._checks = checks | _BY_TEXT

    def _foreign(self, translations: Sequence[str]) -> set[str]:
        """Those in another language; in blocks, since one by one takes ten times as long."""
        foreign, languages = set[str](), (self._languages[1],) * 2
        for start in range(0, len(translations), _BLOCK):
            block = translations[start : start + _BLOCK]
            # without a source, of which the check has nothing to say
            lines = [Candidate(Pair("", each), languages, self._tokenizers) for each in block]
            kept = _LANGUAGE.keeps_each(lines)
            foreign.update(each for each, keeps in zip(block, kept, strict=True) if not keeps)
        return foreign

    @property
    def names(self) -> tuple[str, ...]:
        return EMPTY, *self._checks

    def faults(self, source: str, translation: str) -> Iterator[str]:
        """The faults of a line; an empty one has no other than that."""
        if not blank_white(translation).strip():
            yield EMPTY
            return
        line = Candidate(Pair(source, translation), self._languages, self._tokenizers)
        yield from (name for name, broken in self._checks.items() if broken(line))


def _too_short(line: Candidate) -> bool:
    source, target = map(len, line.tokens)
    return target < source and not _RATIO.keeps(line)


def _too_long(line: Candidate) -> bool:
    source, target = map(len, line.tokens)
    return target > source and not _RATIO.keeps(line)


def _kept_changed(line: Candidate) -> bool:
    source, target = (Counter(_KEPT.findall(sentence)) for sentence in line.pair)
    return source != target


def _new_loop(line: Candidate) -> bool:
    source, target = map(has_loop, line.tokens)
    return target and not source


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


def _unknown(line: Candidate) -> bool:
    source, target = (sentence.count(SPECIALS[UNK]) for sentence in line.pair)
    return target > source


def _unbalanced(line: Candidate) -> bool:
    source, target = map(is_balanced, line.pair)
    return source and not target


def is_balanced(sentence: str) -> bool:
    """Whether each bracket is closed by its own, those opened last first."""
    expected: list[str] = []
    for character in filter(_BRACKETS.__contains__, sentence):
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif not expected or expected.pop() != character:
            return False
    return not expected


_BY_LENGTH: dict[str, Callable[[Candidate], bool]] = {
    "too short": _too_short,
    "too long": _too_long,
}
_BY_TEXT: dict[str, Callable[[Candidate], bool]] = {
    "source copied": lambda line: not _IDENTICAL.keeps(line),
    "numbers": lambda line: not _NUMBERS.keeps(line),
    "URLs, placeholders": _kept_changed,
    "loop": _new_loop,
    "unknown token": _unknown,
    "brackets": _unbalanced,
}


def _counts(name: str) -> Callable[[Texts], list[tuple[int, int]] | None]:
    return lambda texts: _broken(texts).get(name)


# The faults in the order of tables. Their value is the number of lines that have them.
FAULTS = tuple(
    Measure(
        *(name, name, _counts(name), lambda sums: sums[:, 0]),
        kind="fault",
        digits=0,
        highest=math.inf,
        lower_is_better=True,
        share=True,
    )
    for name in (ANY, EMPTY, *_BY_LENGTH, LANGUAGE, *_BY_TEXT)
)
