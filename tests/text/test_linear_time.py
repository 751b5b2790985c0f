"""Time is linear in the length of a line, of any text, in every rule, tokenizer and check.

The one place where a time is asserted: a line twice as long takes about twice the time, and four
times where a row of characters is read again for each of them. Times are of this process alone,
the least of several.
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

pytestmark = pytest.mark.slow  # some 50 long lines through each of some 60 functions

# Repeated, they fill a line, whose end is another character: expressions may fail there alone.
UNITS = [
    *".,'\"-(][{/&<|`%$#@:;?!=_+1a…«„。་中กᄀ가あ\u0301\u200d\u200b\u00ad\u00a0",
    *("..a", "a.", "A.", "1.", "1,000,", "a-", "a'", "' ", "« ", "a ", ". ", "a\u0301\u0323"),
    *("\u0301\u0323", "http://", "www.", "a@", "a@a.", "%(", "&amp;", "&#", "&a", "<b>", "<b "),
    *("()", "👨\u200d", "\u0644\u0651\u064e"),
    *('""', '",', '":', '{"', "( ", "@@ ", " .", "_a ", "&quot; ", "aĠ", "1 ", "私 ", "</a>"),
]
LENGTH = 4_000
# Seconds a character that are fast, whatever the line is made of.
FAST = 2.5e-6
# Times the time for half the length; 4 is quadratic.
MOST = 3.2

FORMS = [{"form": "NFC"}, {"form": "NFKC"}]


def functions():
    for name, edit in EDITS.items():
        for settings in FORMS if name == "unicode" else [{}]:
            rule = edit(**settings)
            for language in ("en", "de") if name == "punctuation" else ("en",):
                yield f"{name} {settings} {language}", lambda s, r=rule, at=language: r.edit(s, at)
    for name, check in CHECKS.items():
        rule = check(**SETTINGS[name])
        yield name, lambda s, r=rule: r.keeps(candidate(s))
    yield "fault loop", lambda s: output_errors.has_loop(s.split())
    yield "fault brackets", output_errors.is_balanced
    yield "comparison_key", comparison_key
    for form in FORMS_OF_LINES:
        yield f"form {form.name}", form.matches
    segmented = [language for language, package in PACKAGES.items() if find_spec(package)]
    for name, languages in {**TOKENIZERS, "segmenter": segmented}.items():
        for language in languages if name != "spacy" or find_spec("spacy") else ():
            tokenizer = tokenizer_for(language, Tokenize(name, True, False, False))
            yield f"tokenize {name} {language}", tokenizer.tokenize
            yield f"detokenize {name} {language}", lambda s, t=tokenizer: t.detokenize(s.split(" "))


TOKENIZERS = {"moses": ("en", "fr"), "spacy": ("en",), "characters": ("en",), "none": ("en",)}
PACKAGES = {"ja": "fugashi", "zh": "rjieba", "th": "pythainlp"}


def candidate(sentence):
    pair = Pair(sentence, f"{sentence}y")
    return Candidate(pair, ("en", "de"), (str.split, str.split), lambda _: 0.0)


CASES = dict(functions())


def seconds(function, line):
    start = process_time()
    function(line)
    return process_time() - start


@pytest.mark.parametrize("name", CASES)
def test_twice_the_length_takes_about_twice_the_time(name):
    function = CASES[name]
    function("Warm up.")
    slow = {}
    for unit in UNITS:
        # Moses' own expressions for tokens are quadratic in a row of tags, as in version 1.0.
        if unit == "</a>" and name.startswith("tokenize moses"):
            continue
        whole, half = (unit * (n // len(unit)) + "x" for n in (LENGTH, LENGTH // 2))
        took = seconds(function, whole)
        if took > FAST * LENGTH:
            ratio = min(took, seconds(function, whole)) / least(function, half)
            # once more, since other processes slow this one down
            if ratio > MOST and least(function, whole) / least(function, half) > MOST:
                slow[unit] = ratio
    assert not slow


def least(function, line):
    return min(seconds(function, line) for _ in range(3))
