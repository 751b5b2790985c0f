"""params.yaml as a document: values by YAML 1.2, and messages if it is not valid YAML."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, params_error, read_params, replace_once


@pytest.mark.parametrize("number", ["1e-3", "1e-03", "1E-3"])
def test_a_number_with_an_exponent_needs_no_decimal_point(tmp_path, number):
    """By YAML 1.1, `1e-3` would be text."""
    text = replace_once(PARAMS, "lr: 1e-03", f"lr: {number}")

    train = read_params(tmp_path, text).system_settings("base").train

    assert train.lr_schedule.inverse_sqrt.lr == 0.001


@pytest.mark.parametrize("target", ['"no"', "no"])
def test_no_is_text(tmp_path, target):
    """By YAML 1.1, `no` without quotes would be false. It is the code of Norwegian."""
    text = replace_once(PARAMS, 'target: "no"', f"target: {target}")

    assert read_params(tmp_path, text).corpus("own").target == "no"


def test_a_whole_number_is_accepted_for_a_float(tmp_path):
    """The dropout `residual` is 0 in one params.yaml and 0.0 in the other."""
    text = replace_once(PARAMS, "residual: 0,", "residual: 0.0,")

    for equal_text in (PARAMS, text):
        model = read_params(tmp_path, equal_text).system_settings("base").model
        assert model.dropout.residual == 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "experiment: trial", "experiment: a\x00", ":1: not valid YAML", id="null character"
        ),
        pytest.param(
            "    clean:",
            "   clean:",
            ":12: not valid YAML: expected <block end>, but found '<block",
            id="wrong indentation: the parser's reason",
        ),
        pytest.param(
            "    clean:",
            "   clean:",
            ". Is it indented like its neighbors, with a space after each",
            id="wrong indentation: a hint",
        ),
        pytest.param("heads: 2", "heads:2", "a space after each colon?", id="no space"),
        pytest.param(
            "    clean:",
            "  \tclean:",
            ":12: not valid YAML: the line is indented with a tab. Use",
            id="tab",
        ),
        pytest.param(
            "corpora:\n",
            "corpora: &all\n  <<: *all\n",
            "not valid YAML",
            id="mapping merged into itself",
        ),
        pytest.param(
            "experiment: trial",
            f"experiment: {'[' * 1000}",
            "not valid YAML: maximum recursion",
            id="nested too deeply",
        ),
        pytest.param(
            "clip_norm: 1.0",
            f"clip_norm: 1{'0' * 5000}",
            "not valid YAML: Exceeds the limit",
            id="thousands of digits",
        ),
        pytest.param(
            "seed: 1}",
            "seed: 2020-99-99}",
            "not valid YAML: month must be in 1..12",
            id="impossible date",
        ),
        pytest.param(
            "heads: 2",
            "heads: 2\n      heads: 4",
            'found duplicate key "heads"',
            id="key written twice",
        ),
    ],
)
def test_invalid_yaml_is_reported_in_one_line(tmp_path, old, new, message):
    """Each case replaces one place of a valid params.yaml."""
    error = params_error(tmp_path, replace_once(PARAMS, old, new))

    assert error.startswith(f"{tmp_path / 'params.yaml'}:")
    assert message in error
    assert "\n" not in error


@pytest.mark.parametrize(
    "text", [pytest.param("&a [*a]", id="list"), pytest.param("&a {x: *a}", id="mapping")]
)
def test_an_entry_that_contains_itself_is_reported(tmp_path, text):
    """`&a` names an entry, and `*a` repeats the entry of this name."""
    message = params_error(tmp_path, text)

    assert message == (
        f"{tmp_path / 'params.yaml'}: not valid YAML: "
        "an entry contains itself by an alias (*). Write it in full"
    )


def test_missing_params_are_reported(tmp_path):
    with pytest.raises(UserError, match=r"params\.yaml: no such file"):
        load_settings(tmp_path / "params.yaml")
