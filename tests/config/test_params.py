"""Reading an experiment from params.yaml."""

import pytest

from bleuprint.runtime.errors import UserError
from params import PARAMS, read_params, replace_once


def test_rules_run_in_a_fixed_order_whatever_their_order_in_params_yaml(tmp_path):
    """PARAMS has `clean: {non_printing, unicode}` and `filter: {length_ratio, length}`."""
    corpus = read_params(tmp_path).corpus("own")

    # PARAMS has `clean: {non_printing, unicode}` and `filter: {length_ratio, length}`.
    assert [edit.name() for edit in corpus.clean] == ["unicode", "non_printing"]
    assert [check.name() for check in corpus.filter] == ["length", "length_ratio"]


def test_another_order_of_rules_gives_the_same_settings(tmp_path):
    """So the order in which a user writes the rules makes no result out of date."""
    corpus = read_params(tmp_path).corpus("own")
    reordered = replace_once(
        PARAMS,
        "{non_printing: {}, unicode: {form: NFC}}",
        "{unicode: {form: NFC}, non_printing: {}}",
    )

    assert read_params(tmp_path, reordered).corpus("own") == corpus


def test_an_empty_filter_has_no_rules(tmp_path):
    text = replace_once(
        PARAMS, "filter: {length_ratio: {max: 3.0}, length: {min: 1, max: 100}}", "filter: {}"
    )

    assert read_params(tmp_path, text).corpus("own").filter == ()


def test_a_whole_number_may_be_written_with_an_exponent(tmp_path):
    """A number with an exponent is a float in YAML; max_updates must be a whole number."""
    text = replace_once(PARAMS, "max_updates: 10", "max_updates: 1e5")

    max_updates = read_params(tmp_path, text).system_settings("base").train.max_updates

    assert max_updates == 100_000
    assert type(max_updates) is int


def test_a_system_may_be_written_with_yaml_merge_keys(tmp_path):
    """`<<: *base` copies the mapping that is marked by `&base`."""
    wide = "  wide: {<<: *base, model: {<<: *model, d_model: 16}}\n"
    text = replace_once(PARAMS, "  base:\n", "  base: &base\n")
    text = replace_once(text, "published:", f"{wide}published:")

    settings = read_params(tmp_path, text)

    assert settings.system_settings("wide").model.d_model == 16
    assert settings.system_settings("wide").train == settings.system_settings("base").train


@pytest.mark.parametrize("max_updates", [11, 15, 16])
def test_as_many_checkpoints_may_be_averaged_as_the_training_keeps(tmp_path, max_updates):
    """A checkpoint is saved every 5 updates and after the last one: three in each case."""
    text = replace_once(PARAMS, "max_updates: 10", f"max_updates: {max_updates}")
    text = replace_once(text, "average: {last: 2}", "average: {last: 3}")
    text = replace_once(text, "keep_last: 2", "keep_last: 3")

    assert read_params(tmp_path, text).system_settings("base").average.last == 3


def test_an_unknown_corpus_is_an_error_that_lists_the_corpora(tmp_path):
    settings = read_params(tmp_path)

    with pytest.raises(UserError, match=r"no corpora entry 'wmt'; there are: own"):
        settings.corpus("wmt")
