"""Settings as strings by dotted key, such as train.lr_schedule.noam.factor, for comparison."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any


def flatten_settings(settings: Any) -> dict[str, str]:
    """Nested settings, dataclasses or YAML values, as one dictionary; None is left out."""
    return dict(_leaves("", settings))


def _leaves(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        value = {name.rstrip("_"): getattr(value, name) for name in names}
    if isinstance(value, Mapping) and (value or not key):
        for name, inner in value.items():
            yield from _leaves(f"{key}.{name}" if key else str(name), inner)
    elif isinstance(value, list | tuple) and any(map(dataclasses.is_dataclass, value)):
        for inner in value:  # rules
            yield from _leaves(f"{key}.{inner.name()}", inner)
    elif value is not None:  # true and false as in YAML
        values = value if isinstance(value, list | tuple) else [value]
        yield key, ", ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values)
