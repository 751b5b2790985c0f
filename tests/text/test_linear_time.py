"""Every rule, tokenizer and check takes time that is linear in the length of a line.

These are the only tests that measure time: a line that is twice as long must take about twice the
time. It would take four times the time if characters of a row were read again for each of them.
Times are those of this process alone, the shortest of several.
"""

from importlib.util import find_spec
from time import process_time

import pytest

from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.rule import Candidate
from bleuprint.scoring import output_errors
from bleuprint.text.parallel import Pair
from bleuprint.text.text_form import FORMS as FORMS_OF_LINES
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from bleuprint.text.unicode import comparison_key
from checks import SETTINGS

pytestmark = pytest.mark.slow  # Each of about 60 functions reads about 50 long lines.

# A line consists of one of these, repeated, and another character at its end: an expression may
# match the row, and fail at the end only.
SINGLE_CHARACTERS = ".,'\"-(][{/&<|`%$#@:;?!=_+1a…«„。་中กᄀ가あ\u0301\u200d\u200b\u00ad\u00a0"
REPEATED_PARTS = [
    *SINGLE_CHARACTERS,
    "..a",
    "a.",
    "A.",
    "1.",
    "1,000,",
    "a-",
    "a'",
    "' ",
    "« ",
    "a ",
    ". ",
    "a\u0301\u0323",
    "\u0301\u0323",
    "http://",
    "www.",
    "a@",
    "a@a.",
    "%(",
    "&amp;",
    "&#",
    "&a",
    "<b>",
    "<b ",
    "()",
    "👨\u200d",
    "\u0644\u0651\u064e",
    '""',
    '",',
    '":',
    '{"',
    "( ",
    "@@ ",
    " .",
    "_a ",
    "&quot; ",
    "aĠ",
    "1 ",
    "私 ",
    "</a>",
]
LINE_LENGTH = 4_000
# A function that needs less per character is fast enough, whatever the line contains.
FAST_SECONDS_PER_CHARACTER = 2.5e-6
# The largest ratio of the times for a line and for half of it: 2 is linear, 4 is quadratic.
MAX_RATIO = 3.2

TOKENIZER_LANGUAGES = {
    "moses": ("en", "fr"),
    "spacy": ("en",),
    "characters": ("en",),
    "none": ("en",),
    "segmenter": ("ja", "zh", "th"),
}
# The packages that a tokenizer needs in a language; the others are always installed.
SEGMENTER_PACKAGES = {"ja": "fugashi", "zh": "rjieba", "th": "pythainlp"}


def edit_functions():
    """Return the functions of all edits: each takes a sentence."""
    functions = {}
    for name, edit in EDITS.items():
        settings_of_rule = [{"form": "NFC"}, {"form": "NFKC"}] if name == "unicode" else [{}]
        languages = ("en", "de") if name == "punctuation" else ("en",)
        for settings in settings_of_rule:
            rule = edit(**settings)
            for language in languages:
                functions[f"{name} {settings} {language}"] = (
                    lambda sentence, rule=rule, language=language: rule.edit(sentence, language)
                )
    return functions


def candidate(sentence):
    """Return a pair for checks, whose target is nearly equal to the source."""
    pair = Pair(sentence, f"{sentence}y")
    return Candidate(pair, ("en", "de"), (str.split, str.split), lambda _: 0.0)


def check_functions():
    """Return the functions of all checks: each takes a sentence."""
    functions = {}
    for name, check in CHECKS.items():
        rule = check(**SETTINGS[name])
        functions[name] = lambda sentence, rule=rule: rule.keeps(candidate(sentence))
    return functions


def is_installed(tokenizer, language):
    """Return whether the package is installed that a tokenizer needs in a language."""
    if tokenizer == "spacy":
        return find_spec("spacy") is not None
    if tokenizer == "segmenter":
        return find_spec(SEGMENTER_PACKAGES[language]) is not None
    return True


def tokenizer_functions():
    """Return the functions that tokenize and detokenize: each takes a sentence."""
    functions = {}
    for name, languages in TOKENIZER_LANGUAGES.items():
        for language in languages:
            if not is_installed(name, language):
                continue
            settings = Tokenize(name, lowercase=True, hyphens=False, escape=False)
            tokenizer = tokenizer_for(language, settings)
            functions[f"tokenize {name} {language}"] = tokenizer.tokenize
            functions[f"detokenize {name} {language}"] = lambda sentence, tokenizer=tokenizer: (
                tokenizer.detokenize(sentence.split(" "))
            )
    return functions


def other_functions():
    """Return further functions that read a sentence."""
    functions = {
        "fault loop": lambda sentence: output_errors.has_loop(sentence.split()),
        "fault brackets": output_errors.is_balanced,
        "comparison_key": comparison_key,
    }
    for form in FORMS_OF_LINES:
        functions[f"form {form.name}"] = form.matches
    return functions


FUNCTIONS = edit_functions() | check_functions() | other_functions() | tokenizer_functions()


def seconds(function, line):
    """Return the processor time, in seconds, that a function takes for a line."""
    start = process_time()
    function(line)
    return process_time() - start


def shortest_seconds(function, line):
    """Measure three times how long a function takes for a line; return the shortest time."""
    return min(seconds(function, line) for _ in range(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_twice_the_length_takes_about_twice_the_time(name):
    """Each line repeats a part, such as a comma or a tag, 4,000 characters long, and ends in x.

    In quadratic time it takes four times as long; a web page without spaces would take hours. A
    ratio of more than 3.2 fails, unless the function is fast: 2.5 microseconds per character.
    """
    function = FUNCTIONS[name]
    function("Warm up.")
    ratio_by_part = {}
    for part in REPEATED_PARTS:
        # Moses' own expressions for tokens are quadratic in a row of tags, as in version 1.0.
        if part == "</a>" and name.startswith("tokenize moses"):
            continue
        line = part * (LINE_LENGTH // len(part)) + "x"
        half_line = part * (LINE_LENGTH // 2 // len(part)) + "x"
        first_seconds = seconds(function, line)
        if first_seconds <= FAST_SECONDS_PER_CHARACTER * LINE_LENGTH:
            continue
        line_seconds = min(first_seconds, seconds(function, line))
        ratio = line_seconds / shortest_seconds(function, half_line)
        if ratio > MAX_RATIO:
            # Measure again, since other processes slow this one down.
            ratio = shortest_seconds(function, line) / shortest_seconds(function, half_line)
        if ratio > MAX_RATIO:
            ratio_by_part[part] = ratio

    assert not ratio_by_part
