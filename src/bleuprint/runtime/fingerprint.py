"""Fingerprints: the SHA-256 of the settings that decide a result (of code: closure.py)."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def of_settings(*settings: Any) -> str:
    """The SHA-256 of settings (dataclasses, numbers, strings); the order of keys does not count."""
    text = json.dumps(list(map(_plain, settings)), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Settings as JSON values; class names are included, since rules may have equal fields.

    What is not set (None) is left out, so that a new optional setting changes no fingerprint.
    """
    if dataclasses.is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        fields = {name: entry for name, entry in given.items() if entry is not None}
        return {type(value).__name__: _plain(fields)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, frozenset):
        return sorted(value)
    return value
