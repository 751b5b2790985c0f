"""Every recipe resolves to the settings that it had in 1.0.0, whatever the keys are called now."""

import re

import pytest

from recipes import SETTINGS
from tools.settings_of_1_0 import stored_settings

SETTINGS_OF_1_0 = stored_settings()

# In place of the value of a key that one side lacks.
MISSING = "missing"
# What old dotted keys of the resolved settings are called now, as regular expressions. Each rule
# applies to what the rules before it give.
RENAMED = [
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
# What old values are called now, by the new key as a regular expression.
RENAMED_VALUES = [
    (r"published\.\d+\.metric", "otherwise", "unknown"),
]

# Values that differ on purpose, by recipe and new key, as (old value, new value).
CHANGED = {
    # the recipe has its own test sets, so that this share is used by nothing: its default is shown
    ("iwslt14-de-en", "corpora.iwslt14-de-en.split.test"): (0.0, 0.05),
    # the page showed attention of every system, and now of those that ask for it
    ("toy-sentence", "runs.toy.toy-sentence.decode.attention"): (MISSING, True),
    ("toy-sentence", "runs.reader.toy-sentences.decode.attention"): (MISSING, True),
}
# Keys that 1.0.0 did not have, as regular expressions, and the only value that recipes have there.
ADDED = {
    # only external systems have translations; DVC needs a value for each system
    r"runs\.[^.]+\.[^.]+\.translations": False,
}
# Keys that only 1.0.0 had, and the only value that recipes had there.
REMOVED = {
    # there is one engine
    r"runs\.[^.]+\.[^.]+\.decode\.engine": "pytorch",
}


def flattened(value, key=""):
    """The values of nested mappings and lists by dotted key, such as published.0.corpus."""
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict) or not value:
        return {key: value}
    found = {}
    for name, inner in value.items():
        found |= flattened(inner, f"{key}.{name}" if key else name)
    return found


def renamed(key):
    for old, new in RENAMED:
        key = re.sub(old, new, key)
    return key


def renamed_value(key, value):
    """The value of 1.0 as it is called now, at a new key."""
    for pattern, old, new in RENAMED_VALUES:
        if re.fullmatch(pattern, key) and value == old:
            return new
    return value


def differences(recipe, old_settings, new_settings):
    """The keys whose values differ, with both, without those that differ on purpose."""
    old_values = {}
    for old_key, old_value in flattened(old_settings).items():
        key = renamed(old_key)
        old_values[key] = renamed_value(key, old_value)
    new_values = flattened(new_settings)
    found = {}
    for key in old_values.keys() | new_values.keys():
        values = (old_values.get(key, MISSING), new_values.get(key, MISSING))
        if values[0] == values[1] or CHANGED.get((recipe, key)) == values:
            continue
        if not (is_of(ADDED, key, values[1]) or is_of(REMOVED, key, values[0])):
            found[key] = values
    return found


def is_of(rules, key, value):
    """Whether a rule knows the key, and this value as its only one."""
    return any(re.fullmatch(pattern, key) and known == value for pattern, known in rules.items())


def test_there_are_the_same_recipes():
    assert set(SETTINGS) == set(SETTINGS_OF_1_0)


@pytest.mark.parametrize("recipe", SETTINGS_OF_1_0)
def test_a_recipe_has_the_settings_of_1_0(recipe):
    new_settings = SETTINGS[recipe].resolved()
    assert differences(recipe, SETTINGS_OF_1_0[recipe], new_settings) == {}


def test_the_values_that_differ_on_purpose_do_differ():
    for (recipe, key), (old_value, new_value) in CHANGED.items():
        old_values = {renamed(key): v for key, v in flattened(SETTINGS_OF_1_0[recipe]).items()}
        assert old_values.get(key, MISSING) == old_value
        assert flattened(SETTINGS[recipe].resolved()).get(key, MISSING) == new_value
