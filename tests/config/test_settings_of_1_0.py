"""Every recipe has the settings that it had in version 1.0.0, whatever the keys are called now."""

import re

import pytest

from recipes import SETTINGS
from tools.settings_of_1_0 import stored_settings

SETTINGS_OF_1_0 = stored_settings()

# Takes the place of the value of a key that only the other version has.
MISSING = "missing"
# Old keys of the resolved settings with dots between their parts, as regular expressions, and the
# new keys. Each pair is applied to the result of the pairs before it.
RENAMED_KEYS = [
    (r"^cells\.", "runs."),
    (r"^(runs\..*\.train)\.from\.", r"\1.init_from."),
    (r"^made_texts\.", "synthetic."),
    (r"^(runs\..*\.train)\.validate_every$", r"\1.validate_interval"),
    (r"^(runs\..*\.train)\.checkpoint_every$", r"\1.save_interval"),
    (r"^(runs\..*\.train)\.keep\.(last|best)$", r"\1.keep_\2"),
    (r"^(runs\..*\.train)\.keep\.every$", r"\1.keep_interval"),
    (r"^(runs\..*\.decode)\.no_repeat_ngram$", r"\1.no_repeat_ngram_size"),
    (r"^(runs\..*\.decode)\.min_length$", r"\1.min_len"),
    (r"^(corpora\.[^.]+\.vocabulary\.sentencepiece)\.model$", r"\1.model_type"),
    (r"^(corpora\.[^.]+\.vocabulary\.sentencepiece)\.size$", r"\1.vocab_size"),
    (r"^(corpora\.[^.]+\.clean)\.tags$", r"\1.html_tags"),
    (r"^(corpora\.[^.]+\.filter)\.sentence_marks$", r"\1.terminal_punctuation"),
    (r"^(corpora\.[^.]+\.filter)\.longest_word\.", r"\1.long_word."),
    (r"^(corpora\.[^.]+\.filter)\.ratio\.", r"\1.length_ratio."),
    (r"^(corpora\.[^.]+\.filter)\.numbers$", r"\1.numerals"),
    (r"^(corpora\.[^.]+\.filter)\.alphabetic\.", r"\1.alphabet_ratio."),
    (r"^(corpora\.[^.]+\.filter)\.script\.", r"\1.character_score."),
    (r"^(corpora\.[^.]+\.filter)\.alignment_score\.", r"\1.word_alignment."),
    (r"^(corpora\.[^.]+\.filter\.language_id)\.likelier$", r"\1.min_odds"),
    (r"^(published\.\d+)\.scored$", r"\1.metric"),
]
# New keys as regular expressions, old values, and what these values are called now.
RENAMED_VALUES = [
    (r"published\.\d+\.metric", "otherwise", "unknown"),
]

# Values that differ on purpose, by recipe and new key, as (old value, new value).
CHANGED_VALUES = {
    # The recipe has its own test sets, so nothing uses this share. Its default is recorded.
    ("iwslt14-de-en", "corpora.iwslt14-de-en.split.test"): (0.0, 0.05),
    # The report showed attention maps of every system, and now only where this setting is true.
    ("toy-sentence", "runs.toy.toy-sentence.decode.attention"): (MISSING, True),
    ("toy-sentence", "runs.reader.toy-sentences.decode.attention"): (MISSING, True),
}
_RULES_OF_COMMON_CRAWL = r"files\.train\.commoncrawl\.filter"
# Keys that 1.0.0 did not have, as regular expressions, and their value in all recipes.
ADDED_KEYS = {
    # Only external systems have translations, but DVC needs a value for each system.
    r"runs\.[^.]+\.[^.]+\.translations": False,
    # The texts of WMT14 are parts, and one has a rule of its own besides those of its corpus.
    r"corpora\.wmt14-[^.]+\.files\.train\.[^.]+\.separate": True,
    rf"corpora\.wmt14-[^.]+\.{_RULES_OF_COMMON_CRAWL}\.language_id\.min_odds": 10.0,
    rf"corpora\.wmt14-[^.]+\.{_RULES_OF_COMMON_CRAWL}\.length\.min": 1,
    rf"corpora\.wmt14-en-de\.{_RULES_OF_COMMON_CRAWL}\.length\.max": 80,
    rf"corpora\.wmt14-en-de\.{_RULES_OF_COMMON_CRAWL}\.length_ratio\.max": 9.0,
    rf"corpora\.wmt14-en-fr\.{_RULES_OF_COMMON_CRAWL}\.length\.max": 175,
    rf"corpora\.wmt14-en-fr\.{_RULES_OF_COMMON_CRAWL}\.length_ratio\.max": 1.5,
    # The metrics of own code; the test writes an empty list as an empty mapping.
    r"metrics": {},
}
# Keys that only 1.0.0 had, as regular expressions, and their value in all recipes.
REMOVED_KEYS = {
    # There is one engine today.
    r"runs\.[^.]+\.[^.]+\.decode\.engine": "pytorch",
}


def flatten(value, key=""):
    """Return the values in nested dicts and lists by their keys, such as published.0.corpus."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict) or not value:
        return {key: value}
    values = {}
    for name, inner_value in value.items():
        values |= flatten(inner_value, f"{key}.{name}" if key else name)
    return values


def new_key_of(old_key):
    """Return what a key of version 1.0 is called now."""
    key = old_key
    for pattern, replacement in RENAMED_KEYS:
        key = re.sub(pattern, replacement, key)
    return key


def new_value_of(new_key, old_value):
    """Return what a value of version 1.0 is called now."""
    for pattern, renamed_value, new_value in RENAMED_VALUES:
        if re.fullmatch(pattern, new_key) and old_value == renamed_value:
            return new_value
    return old_value


def values_of_1_0(recipe):
    """Return the values that a recipe had in version 1.0, by their new keys."""
    values = {}
    for old_key, old_value in flatten(SETTINGS_OF_1_0[recipe]).items():
        key = new_key_of(old_key)
        values[key] = new_value_of(key, old_value)
    return values


def values_today(recipe):
    """Return the values that a recipe has today, by their keys."""
    return flatten(SETTINGS[recipe].resolved())


def has_known_value(values_by_pattern, key, value):
    """Return whether a pattern matches the key, and the value is the one that belongs to it."""
    for pattern, known_value in values_by_pattern.items():
        if re.fullmatch(pattern, key) and value == known_value:
            return True
    return False


def is_intended(recipe, key, old_value, new_value):
    """Return whether the two values of a key differ on purpose."""
    if CHANGED_VALUES.get((recipe, key)) == (old_value, new_value):
        return True
    is_added = has_known_value(ADDED_KEYS, key, new_value)
    is_removed = has_known_value(REMOVED_KEYS, key, old_value)
    return is_added or is_removed


def test_the_recipes_are_those_of_1_0():
    assert set(SETTINGS) == set(SETTINGS_OF_1_0)


@pytest.mark.parametrize("recipe", SETTINGS_OF_1_0)
def test_a_recipe_has_the_settings_of_1_0(recipe):
    """Only renamed keys and intended changes may differ: results of version 1.0 stay valid.

    Its settings are stored in a file; the keys are translated to today's names.
    """
    old_values = values_of_1_0(recipe)
    new_values = values_today(recipe)

    differences = {}
    for key in old_values.keys() | new_values.keys():
        old_value = old_values.get(key, MISSING)
        new_value = new_values.get(key, MISSING)
        if old_value != new_value and not is_intended(recipe, key, old_value, new_value):
            differences[key] = (old_value, new_value)
    assert differences == {}


@pytest.mark.parametrize(("recipe", "key"), CHANGED_VALUES)
def test_a_value_that_is_said_to_differ_from_1_0_differs_so(recipe, key):
    old_value, new_value = CHANGED_VALUES[recipe, key]

    assert values_of_1_0(recipe).get(key, MISSING) == old_value
    assert values_today(recipe).get(key, MISSING) == new_value
