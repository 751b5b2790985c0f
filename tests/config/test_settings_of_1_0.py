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


def differences(recipe, old_settings, new_settings):
    """The keys whose values differ, with both, without those that differ on purpose."""
    old_values = {renamed(key): value for key, value in flattened(old_settings).items()}
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
