"""Nested settings as one dictionary with dotted keys, so that two systems can be compared."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any


def flatten_settings(settings: Any) -> dict[str, str]:
    """Turn nested settings into one dictionary with keys such as `train.lr_schedule.noam.factor`.

    This makes it easy to compare two systems setting by setting.

    Args:
        settings: A dataclass or the values of a YAML file.

    Returns:
        Each value as text, as in YAML. Settings that are None are omitted.
    """
    return dict(_flat_entries("", settings))


def _flat_entries(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each single value in nested settings, as its dotted key and its text.

    For example, `("train", {"seed": 1, "betas": [0.9, 0.98]})` yields `("train.seed", "1")` and
    `("train.betas", "0.9, 0.98")`.

    Args:
        key: The dotted key of `value`; empty for the whole settings.
        value: A dataclass, a mapping, a list, or a single value.
    """
    if dataclasses.is_dataclass(value):
        # A field whose name is a keyword of Python, such as `from`, ends with an underscore.
        names = [field.name for field in dataclasses.fields(value)]
        value = {name.rstrip("_"): getattr(value, name) for name in names}
    # An empty mapping inside the settings, as in `clean: {}`, is a value itself.
    is_empty_entry = value == {} and key != ""
    if isinstance(value, Mapping) and not is_empty_entry:
        for name, entry in value.items():
            entry_key = f"{key}.{name}" if key else str(name)
            yield from _flat_entries(entry_key, entry)
    elif isinstance(value, list | tuple):
        if any(dataclasses.is_dataclass(item) for item in value):
            # A list of cleaning rules: the name of each rule is a part of its key.
            for rule in value:
                yield from _flat_entries(f"{key}.{rule.key()}", rule)
        else:
            yield key, ", ".join(_value_text(item) for item in value)
    elif value is not None:
        yield key, _value_text(value)


def _value_text(value: Any) -> str:
    """Return a single value as text; true and false as in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
