"""Fingerprints of settings: which differences change them, and which do not."""

import hashlib
from dataclasses import dataclass

from bleuprint.runtime.fingerprint import of_settings


@dataclass
class Length:
    """A cleaning rule with an optional field."""

    most: int | None
    least: int | None = None


@dataclass
class Ratio:
    """Another cleaning rule with a field of the same name."""

    most: int | None


def test_a_fingerprint_is_the_sha_256_of_the_settings_as_sorted_json():
    """A rule is written with its class; a field that is None is left out; keys are sorted."""
    json_text = '[{"Length": {"most": 3}}, {"a": [1, 2], "b": "ü"}, "x"]'
    expected = hashlib.sha256(json_text.encode()).hexdigest()

    assert of_settings(Length(most=3, least=None), {"b": "ü", "a": (1, 2)}, "x") == expected


def test_settings_with_other_values_classes_or_order_have_other_fingerprints():
    """Two runs with equal fingerprints share their results, so a difference must not be missed."""
    fingerprints = [
        of_settings(Length(3)),
        of_settings(Length(4)),
        of_settings(Ratio(3)),
        of_settings(Length(3, 3)),
        of_settings(Length(3), Ratio(3)),
        of_settings(Ratio(3), Length(3)),
        of_settings([Length(3), Ratio(3)]),
        of_settings({"a": None}),
        of_settings({}),
    ]

    assert len(set(fingerprints)) == len(fingerprints)


def test_the_order_of_keys_does_not_change_a_fingerprint():
    assert of_settings({"a": 1, "b": 2}) == of_settings({"b": 2, "a": 1})


def test_an_optional_field_without_a_value_does_not_change_a_fingerprint():
    """So a new version may add an optional setting, and old results stay valid."""
    assert of_settings(Length(most=3, least=None)) == of_settings(Length(most=3))


def test_sets_tuples_and_lists_with_equal_items_have_equal_fingerprints():
    """A set has no order: its items are sorted."""
    expected = of_settings(["a", "b", "c"])

    assert of_settings(frozenset({"c", "a", "b"})) == expected
    assert of_settings(("a", "b", "c")) == expected
