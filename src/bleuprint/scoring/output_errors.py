"""Output errors: errors of translations that can be seen without a reference.

Examples are lost numbers, loops, and another language. The checks come from the cleaning rules;
some more are only for the output of a model. The references pass through the same checks: if the
reference of a line has an error, too, the text or the check is the cause, and the line does not
count.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.rules.agreement import Identical, Numerals
from bleuprint.rules.language_id import LanguageId
from bleuprint.rules.lengths import LengthRatio
from bleuprint.rules.rule import Candidate
from bleuprint.scoring.metric import Metric, TranslatedSet, first_sum
from bleuprint.text.language_codes import language_code
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenizer, tokenizer_for
from bleuprint.text.unicode import replace_unprintable, replace_white_space

ANY_ERROR = "any error"
EMPTY_OUTPUT = "empty"
WRONG_LANGUAGE = "wrong language"
CUT_OFF = "cut off"

# The report explains the error where it occurs.
CUT_OFF_NOTE = (
    f"{CUT_OFF}: the translation ended at the maximum length of an output (decode.max_len_a, "
    "decode.max_len_b), where the model preferred to go on"
)

# Checks of cleaning, with the settings of the recipes' filters.
_LENGTH_RATIO = LengthRatio(max=3.0)
_LANGUAGE = LanguageId(min_odds=10.0)
_IDENTICAL = Identical()
_NUMERALS = Numerals()
# Addresses; and what programs fill in: {name}, {{name}}, ${name}, %s, %(name)s, %1$s.
_PLACEHOLDER = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'«»„“”]*[^\s<>\"'«»„“”.,:;!?)\]}]|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
    r"|\$?\{{1,2} ?\w* ?\}{1,2}|%(?:\(\w+\)|\d\$)?[sdif]\b"
)
# The same, and numbers with their separators: what the tokenizer may bring back changed.
_COPIED = re.compile(rf"{_PLACEHOLDER.pattern}|\d\S*\d")
# The closing bracket of each opening one.
_CLOSING_BRACKETS = dict(zip("([{（［｛【「『《〈", ")]}）］｝】」』》〉", strict=True))
_ALL_CLOSING = frozenset(_CLOSING_BRACKETS.values())
# Tokens in a row are a loop if they occur three times, from _PHRASE_TOKENS tokens on twice; longer
# loops than _MAX_LOOP_TOKENS are not looked for.
_PHRASE_TOKENS = 4
_MAX_LOOP_TOKENS = 20
# Sentences whose language is identified together: one by one takes ten times as long.
_SENTENCES_AT_ONCE = 512

# What an error counts on each line: 1 if the translation has the error, and 1 if the line counts.
LineCounts = list[tuple[int, int]]


def _output_error(name: str) -> Metric:
    """Create the metric of one kind of error: the number of translations that have the error.

    Args:
        name: The name of the error in results and in tables, such as `empty`.
    """

    def statistics(test_set: TranslatedSet) -> LineCounts | None:
        """Return two numbers per line: 1 if it has the error, and 1 if it is counted (else 0).

        Returns:
            The numbers; None if this error is not looked for in the test set.
        """
        return _count_errors(test_set).get(name)

    return Metric(
        key=name,
        label=name,
        statistics=statistics,
        value=first_sum,
        kind="error",
        digits=0,
        highest=math.inf,
        lower_is_better=True,
        is_share=True,
    )


@lru_cache(maxsize=1)  # The metric of each error calls this for the same test set.
def _count_errors(test_set: TranslatedSet) -> dict[str, LineCounts]:
    """Look for all kinds of errors in the translations of a test set, line by line.

    The reference of each line passes through the same checks. If it has an error, too, the text or
    the check is to blame and not the system, so the line is not counted for this kind of error.
    Unprintable characters, such as marks of the writing direction, are ignored.

    Returns:
        For each kind of error, two numbers per line: 1 if the translation has the error, and 1 if
        the line is counted. The kind ANY_ERROR means one or more errors; it counts all lines.
        WRONG_LANGUAGE is missing if the target language cannot be identified, and CUT_OFF if no
        translation ended at the maximum length.
    """
    source_language = language_code(test_set.corpus.source)
    target_language = language_code(test_set.corpus.target)
    source_tokenizer = tokenizer_for(source_language, test_set.corpus.tokenize)
    target_tokenizer = tokenizer_for(target_language, test_set.corpus.tokenize)
    sources = [replace_unprintable(line) for line in test_set.sources]
    references = [replace_unprintable(line) for line in test_set.references]
    hypotheses = []
    for source, line in zip(sources, test_set.hypotheses, strict=True):
        hypothesis = replace_unprintable(line)
        hypotheses.append(_restore_copied_words(hypothesis, source, target_tokenizer))
    # First, the kinds of errors that can be looked for in this test set.
    error_names = [EMPTY_OUTPUT, *_CHECKS]
    foreign_sentences: set[str] = set()
    if target_language in LanguageId.known_languages:
        error_names.append(WRONG_LANGUAGE)
        foreign_sentences = _foreign_sentences({*references, *hypotheses}, target_language)
    if test_set.cut:
        error_names.append(CUT_OFF)
    finder = _ErrorFinder(
        languages=(source_language, target_language),
        tokenizers=(source_tokenizer.tokenize, target_tokenizer.tokenize),
        foreign_sentences=foreign_sentences,
    )
    # Then, each line is checked for all of them.
    counts: dict[str, LineCounts] = {ANY_ERROR: []}
    for error_name in error_names:
        counts[error_name] = []
    lines = zip(sources, references, hypotheses, strict=True)
    # `cut` numbers lines from 1.
    for line_number, (source, reference, hypothesis) in enumerate(lines, 1):
        reference_errors = finder.find(Pair(source, reference))
        errors = finder.find(Pair(source, hypothesis)) - reference_errors
        if line_number in test_set.cut:
            errors.add(CUT_OFF)
        for error_name in error_names:
            has_error = error_name in errors
            is_counted = error_name not in reference_errors
            counts[error_name].append((int(has_error), int(is_counted)))
        has_any_error = bool(errors)
        counts[ANY_ERROR].append((int(has_any_error), 1))
    return counts


@dataclass(frozen=True)
class _ErrorFinder:
    """Finds the errors of translations.

    Attributes:
        languages: The source and target language.
        tokenizers: Split a source and a target sentence into tokens.
        foreign_sentences: The target sentences in another language, identified before.
    """

    languages: tuple[str, str]
    tokenizers: tuple[Callable[[str], list[str]], Callable[[str], list[str]]]
    foreign_sentences: set[str]

    def find(self, pair: Pair) -> set[str]:
        """Return the names of the errors of a translation.

        No other error is looked for in an empty translation.

        Args:
            pair: A source sentence and its translation.
        """
        is_empty = not replace_white_space(pair.target).strip()
        if is_empty:
            return {EMPTY_OUTPUT}
        # The checks read a `Candidate`, since some of them are rules that also clean training text.
        candidate = Candidate(pair, self.languages, self.tokenizers)
        errors = {name for name, has_error in _CHECKS.items() if has_error(candidate)}
        if pair.target in self.foreign_sentences:
            errors.add(WRONG_LANGUAGE)
        return errors


def _restore_copied_words(hypothesis: str, source: str, tokenizer: Tokenizer) -> str:
    """Undo what the tokenizer has changed in addresses and numbers that a translation copies.

    Moses, for example, splits the address name@host of a source, and joins it again as
    name @ host in the translation. That is not an error of the translation, so name@host is
    restored.

    Args:
        hypothesis: The translation.
        source: Its source.
        tokenizer: The tokenizer of the target language.
    """
    for copied_word in _COPIED.findall(source):
        # How the tokenizer would print this word in a translation.
        changed_word = tokenizer.detokenize(tokenizer.tokenize(copied_word))
        if changed_word:
            hypothesis = hypothesis.replace(changed_word, copied_word)
    return hypothesis


def _foreign_sentences(sentences: Iterable[str], language: str) -> set[str]:
    """Return the sentences that are in another language than the given one.

    The rule that cleans training text identifies the language. It checks many sentences of similar
    length at once, which is much faster than one by one.

    Args:
        sentences: The sentences.
        language: The code of the language that they should be in.
    """
    foreign = set()
    # Sorted, so that each block has sentences of similar length.
    remaining = iter(sorted(sentences, key=len))
    while block := list(islice(remaining, _SENTENCES_AT_ONCE)):
        candidates = []
        for sentence in block:
            # The rule is for sentence pairs. With an empty source, it looks at the target only.
            candidate = Candidate(
                Pair(source="", target=sentence),
                (language, language),
                (str.split, str.split),
            )
            candidates.append(candidate)
        for sentence, is_kept in zip(block, _LANGUAGE.keeps_each(candidates), strict=True):
            if not is_kept:
                foreign.add(sentence)
    return foreign


def has_loop(tokens: Sequence[str]) -> bool:
    """Return whether a translation repeats the same tokens in a row, a typical error of models.

    Up to three tokens are a loop if they occur three times in a row: "of the of the of the". Four
    or more tokens are a loop if they occur twice: "the cat sat on the cat sat on". A loop must
    contain a letter or a digit, so rows of dots are allowed.

    Args:
        tokens: The tokens of the translation.
    """
    max_size = min(_MAX_LOOP_TOKENS, len(tokens) // 2)
    for size in range(1, max_size + 1):
        # In a loop of `size` tokens, each token equals the one `size` places before it, except in
        # the first round. So `size` such matches in a row are a second round, and 2 * size a third.
        needed_matches = size if size >= _PHRASE_TOKENS else 2 * size
        matches = 0
        for position in range(size, len(tokens)):
            if tokens[position] != tokens[position - size]:
                matches = 0
                continue
            matches += 1
            if matches < needed_matches:
                continue
            last_round = "".join(tokens[position - size + 1 : position + 1])
            if any(map(str.isalnum, last_round)):
                return True
    return False


def is_balanced(sentence: str) -> bool:
    """Return whether each bracket in a sentence has its partner, in the right order.

    `(a [b] c)` is balanced; `(a [b) c]`, `(a` and `a)` are not.
    """
    # The closing brackets of all open ones. The last one belongs to the innermost bracket, and must
    # come first.
    missing: list[str] = []
    for character in sentence:
        if character in _CLOSING_BRACKETS:
            missing.append(_CLOSING_BRACKETS[character])
        elif character in _ALL_CLOSING:
            expected = missing.pop() if missing else None
            if character != expected:
                return False
    return not missing


def _is_too_short(candidate: Candidate) -> bool:
    """Return whether a cleaning rule removes a translation as too short for its source."""
    source_tokens, target_tokens = candidate.tokens
    is_shorter = len(target_tokens) < len(source_tokens)
    return is_shorter and not _LENGTH_RATIO.keeps(candidate)


def _is_too_long(candidate: Candidate) -> bool:
    """Return whether a cleaning rule removes a translation as too long for its source."""
    source_tokens, target_tokens = candidate.tokens
    is_longer = len(target_tokens) > len(source_tokens)
    return is_longer and not _LENGTH_RATIO.keeps(candidate)


def _is_untranslated(candidate: Candidate) -> bool:
    """Return whether a translation is a copy of its source."""
    return not _IDENTICAL.keeps(candidate)


def _changes_numbers(candidate: Candidate) -> bool:
    """Return whether a translation lacks a number of its source, or adds one."""
    return not _NUMERALS.keeps(candidate)


def _changes_placeholders(candidate: Candidate) -> bool:
    """Return whether a translation lacks a web address or placeholder of its source, or adds one.

    A placeholder is what a program fills in, such as {name} or %s.
    """
    in_source = _PLACEHOLDER.findall(candidate.pair.source)
    in_translation = _PLACEHOLDER.findall(candidate.pair.target)
    # Sorted, since a translation may put them into another order.
    return sorted(in_source) != sorted(in_translation)


def _adds_loop(candidate: Candidate) -> bool:
    """Return whether a translation repeats tokens in a row, and its source does not."""
    source_tokens, target_tokens = candidate.tokens
    return has_loop(target_tokens) and not has_loop(source_tokens)


def _adds_unknown_token(candidate: Candidate) -> bool:
    """Return whether a translation contains more `<unk>`, unknown words, than its source."""
    unknown = SPECIALS[UNK]
    return candidate.pair.target.count(unknown) > candidate.pair.source.count(unknown)


def _breaks_brackets(candidate: Candidate) -> bool:
    """Return whether brackets do not match in a translation, although they do in its source."""
    return not is_balanced(candidate.pair.target) and is_balanced(candidate.pair.source)


# The checks of one translation: they return whether it has the error.
_CHECKS: dict[str, Callable[[Candidate], bool]] = {
    "too short": _is_too_short,
    "too long": _is_too_long,
    "untranslated": _is_untranslated,
    "numbers": _changes_numbers,
    "URLs, placeholders": _changes_placeholders,
    "repetition": _adds_loop,
    "unknown token": _adds_unknown_token,
    "brackets": _breaks_brackets,
}

# The errors in the order of tables.
OUTPUT_ERRORS = (
    _output_error(ANY_ERROR),
    _output_error(EMPTY_OUTPUT),
    _output_error("too short"),
    _output_error("too long"),
    _output_error(WRONG_LANGUAGE),
    _output_error("untranslated"),
    _output_error("numbers"),
    _output_error("URLs, placeholders"),
    _output_error("repetition"),
    _output_error("unknown token"),
    _output_error("brackets"),
    _output_error(CUT_OFF),
)
