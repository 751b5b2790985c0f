"""All settings of one system as a flat list of texts, by which people compare systems."""

from collections.abc import Mapping, Sequence

from bleuprint.config.experiment import Settings
from bleuprint.runtime.flatten import flatten_settings


def dotted_settings(settings: Settings, name: str) -> dict[str, str]:
    """Return all settings of a system as text, for people, by keys such as `decode.beam`.

    A system may have other settings on some corpora. A setting with the same value on all its
    corpora comes first, once. A setting that differs follows for each corpus, under a key such
    as `news.decode.beam`. If the system is trained only on some of the experiment's corpora,
    the key `corpora` lists them.

    Args:
        settings: The settings of the experiment.
        name: The name of the system.
    """
    settings_by_corpus = {}
    for corpus, system in settings.settings_by_corpus(name).items():
        settings_by_corpus[corpus] = flatten_settings(system)
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
    """Return the entries that all of some mappings have, with the same value, in their order."""
    first_mapping, *other_mappings = mappings
    equal_entries = {}
    for key, value in first_mapping.items():
        if all(mapping.get(key) == value for mapping in other_mappings):
            equal_entries[key] = value
    return equal_entries
