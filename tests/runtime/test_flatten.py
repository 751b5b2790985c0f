"""Settings by dotted key, with every kind of value written as in params.yaml."""

from dataclasses import dataclass

from bleuprint.runtime.flatten import flatten_settings


@dataclass
class Schedule:
    """Nested settings; Python reserves the word `from`, so the field `from_` stands for it."""

    lr: float
    from_: str | None


@dataclass
class LengthRule:
    """A cleaning rule, which has a name."""

    most: int

    @staticmethod
    def key():
        """Return the name under which files record the rule."""
        return "length"


def test_nested_settings_get_dotted_keys():
    schedule = Schedule(lr=0.5, from_="base")
    settings = {"train": {"lr_schedule": schedule, "seed": 3}, "beam": 4}

    assert flatten_settings(settings) == {
        "train.lr_schedule.lr": "0.5",
        "train.lr_schedule.from": "base",
        "train.seed": "3",
        "beam": "4",
    }


def test_settings_without_a_value_are_omitted():
    settings = {"train": Schedule(lr=0.5, from_=None), "ema": None}

    assert flatten_settings(settings) == {"train.lr": "0.5"}


def test_true_and_false_are_lower_case_and_lists_are_joined_with_commas():
    settings = {"joint": True, "plain": False, "seeds": [1, 2, 30], "flags": (True, "a")}

    assert flatten_settings(settings) == {
        "joint": "true",
        "plain": "false",
        "seeds": "1, 2, 30",
        "flags": "true, a",
    }


def test_an_empty_mapping_or_list_inside_the_settings_is_a_value():
    """`clean: {}` turns cleaning off, so it must be visible when two systems are compared."""
    settings = {"clean": {}, "filter": []}

    assert flatten_settings(settings) == {"clean": "{}", "filter": ""}


def test_empty_settings_give_an_empty_result():
    assert flatten_settings({}) == {}


def test_the_key_of_a_rule_contains_its_name_instead_of_its_position():
    """A new rule before others would otherwise change the keys of all that follow."""
    settings = {"filter": [LengthRule(most=80)], "clean": (LengthRule(most=7),)}

    assert flatten_settings(settings) == {"filter.length.most": "80", "clean.length.most": "7"}
