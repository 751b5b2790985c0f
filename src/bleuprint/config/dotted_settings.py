"""All settings of one system as a flat list of texts, by which people compare systems."""

from collections.abc import Mapping, Sequence

from bleuprint.config.experiment import Settings
from bleuprint.runtime.flatten import flatten_settings


def dotted_settings(settings: Settings, name: str) -> dict[str, str]:
    """Return all settings of a system as text, under dotted keys, to show them to the user.

    A setting with the same value on all corpora of the system is returned once: `{"decode.beam":
    "4"}`. A setting whose value differs is returned for each corpus: `{"news.decode.beam": "4",
    "talks.decode.beam": "8"}`. If the system is trained only on some corpora of the experiment, the
    key `corpora` lists them.

    Args:
        settings: The settings of the experiment.
        name: The name of the system.
    """
    settings_by_corpus = {}
    for corpus, system in settings.settings_by_corpus(name).items():
        settings_by_corpus[corpus] = flatten_settings(system)
    # The settings with the same value on all corpora come first.
    value_by_key = _equal_entries(list(settings_by_corpus.values()))
    shared_keys = set(value_by_key)
    if len(settings_by_corpus) < len(settings.corpora):
        value_by_key["corpora"] = ", ".join(settings_by_corpus)
    for corpus, settings_on_corpus in settings_by_corpus.items():
        for key, value in settings_on_corpus.items():
            if key not in shared_keys:
                value_by_key[f"{corpus}.{key}"] = value
    return value_by_key


def _equal_entries(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the entries that all mappings have in common: the same key with the same value."""
    first_mapping, *other_mappings = mappings
    equal_entries = {}
    for key, value in first_mapping.items():
        if all(mapping.get(key) == value for mapping in other_mappings):
            equal_entries[key] = value
    return equal_entries
