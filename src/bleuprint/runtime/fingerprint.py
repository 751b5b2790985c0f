"""Fingerprints of settings: a run with the same settings has the same fingerprint.

The fingerprints of code are in `closure`.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

# The metadata of a dataclass field that does not count.
NOT_COUNTED = {"is_counted": False}


def of_settings(*settings: Any) -> str:
    """Return a hash of settings, which tells whether results were computed with these settings.

    The order of keys does not count. A dataclass field that is None does not count either, so that
    a new optional setting does not change the hashes of old settings. A field with the metadata
    `NOT_COUNTED` never counts.

    Args:
        *settings: Dataclasses, mappings, lists, numbers and texts.
    """
    json_values = [_to_json_value(value) for value in settings]
    text = json.dumps(json_values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _to_json_value(value: Any) -> Any:
    """Convert settings into values that JSON can write.

    A dataclass becomes `{CLASS: {FIELD: VALUE}}`, without fields that are None. The name of the
    class tells two cleaning rules with equal fields apart. A class with the attribute
    `fingerprint_name` counts under this name instead.
    """
    if dataclasses.is_dataclass(value):
        fields = {}
        for field in dataclasses.fields(value):
            field_value = getattr(value, field.name)
            is_counted = field.metadata.get("is_counted", True)
            if field_value is not None and is_counted:
                fields[field.name] = _to_json_value(field_value)
        class_name = getattr(value, "fingerprint_name", type(value).__name__)
        return {class_name: fields}
    if isinstance(value, Mapping):
        return {key: _to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return value
