"""Settings by dotted key: every kind of value, as it is written in params.yaml."""

from dataclasses import dataclass

from bleuprint.runtime.flatten import flatten_settings


@dataclass
class Schedule:
    """Settings in settings; `from_` is called `from` in params.yaml."""

    lr: float
    from_: str | None


@dataclass
class Rule:
    """A rule, which is named in place of its position."""

    most: int

    @staticmethod
    def name():
        return "length"


def test_nested_settings_have_dotted_keys():
    settings = {"train": {"lr_schedule": Schedule(0.5, "base"), "seed": 3}, "beam": 4}
    assert flatten_settings(settings) == {
        "train.lr_schedule.lr": "0.5",
        "train.lr_schedule.from": "base",
        "train.seed": "3",
        "beam": "4",
    }


def test_what_is_not_set_is_left_out():
    assert flatten_settings({"train": Schedule(0.5, None), "ema": None}) == {"train.lr": "0.5"}


def test_truth_and_lists_are_written_as_in_yaml():
    settings = {"joint": True, "plain": False, "seeds": [1, 2, 30], "flags": (True, "a")}
    assert flatten_settings(settings) == {
        "joint": "true",
        "plain": "false",
        "seeds": "1, 2, 30",
        "flags": "true, a",
    }


def test_an_empty_mapping_is_a_value_and_empty_settings_are_none():
    assert flatten_settings({"clean": {}, "filter": []}) == {"clean": "{}", "filter": ""}
    assert flatten_settings({}) == {}


def test_rules_are_named():
    assert flatten_settings({"filter": [Rule(80)], "clean": (Rule(7),)}) == {
        "filter.length.most": "80",
        "clean.length.most": "7",
    }
