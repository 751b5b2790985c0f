"""The description of each system on the page, in a line."""

from dataclasses import replace

import pytest

import result_trees as trees
from bleuprint.report.page.differences import describe_rows
from systems import with_systems


@pytest.fixture
def settings(tmp_path):
    """Return the settings of two systems, base and other, which are the same."""
    return trees.settings_in(tmp_path, ("base", "other"))


def describe(settings, other):
    """Return the description of the system other, after its settings have changed."""
    return describe_rows(with_systems(settings, {"other": other}), {})["other"]


def test_the_first_system_is_described_by_the_size_of_its_model(settings):
    """The systems after it are described by the settings that differ from it."""
    model = settings.system_settings("base").model

    description = describe_rows(settings, {})["base"]

    assert description.startswith(
        f"{model.encoder_layers} + {model.decoder_layers} layers, "
        f"d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads"
    )


def test_a_system_that_differs_only_in_what_changes_no_weights_is_as_the_first(settings):
    base = settings.system_settings("base")
    other = replace(base, train=replace(base.train, save_interval=1))

    assert describe(settings, other) == "as base"


def test_another_system_is_described_by_the_settings_that_change_its_weights(settings):
    """How often a training is validated changes no weights, so `validate_interval` is omitted."""
    base = settings.system_settings("base")
    train = replace(base.train, validate_interval=base.train.validate_interval + 1, max_updates=77)
    other = replace(base, model=replace(base.model, d_model=64), train=train)

    assert describe(settings, other) == "max_updates 77, d_model 64"


def test_a_description_names_five_settings_and_counts_the_rest(settings):
    """The description is one line below the name of a system."""
    base = settings.system_settings("base")
    three_dropouts = replace(base.model.dropout, embedding=0.5, residual=0.5, attention=0.5)
    model = replace(base.model, dropout=three_dropouts, bias=False, norm="pre", activation="gelu")
    other_in_six_settings = replace(base, model=model)

    description = describe(settings, other_in_six_settings)

    assert description.startswith("norm pre, activation gelu, dropout.embedding 0.5")
    assert description.endswith(" and 1 more")
    assert len(description.split(", ")) == 5
