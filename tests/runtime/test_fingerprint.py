"""Fingerprints of settings: what they depend on, and what makes no difference."""

import hashlib
from dataclasses import dataclass

from bleuprint.runtime.fingerprint import of_settings


@dataclass
class Length:
    """A rule with one field."""

    most: int | None
    least: int | None = None


@dataclass
class Ratio:
    """Another rule with a field of the same name."""

    most: int | None


def test_it_is_the_sum_of_sorted_json():
    text = '[{"Length": {"most": 3}}, {"a": [1, 2], "b": "ü"}, "x"]'
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert of_settings(Length(3), {"b": "ü", "a": (1, 2)}, "x") == expected


def test_values_classes_and_their_order_count():
    different = [
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
    assert len(set(different)) == len(different)


def test_what_is_not_set_and_the_order_of_keys_and_sets_make_no_difference():
    assert of_settings(Length(3, None)) == of_settings(Length(3))
    assert of_settings({"a": 1, "b": 2}) == of_settings({"b": 2, "a": 1})
    assert (
        of_settings(frozenset("abc")) == of_settings(["a", "b", "c"]) == of_settings(tuple("abc"))
    )
