"""A message names an argument that a shell left empty, by its option or its position.

A shell passes an empty argument for "$NAME" if the variable NAME is not set.
"""

import pytest

from bleuprint.runtime.arguments import describe_empty_argument


@pytest.mark.parametrize("command", ["", "bleuprint verify"], ids=["options", "with command"])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no arguments"),
        pytest.param(["a", "b"], id="two words"),
        pytest.param(["--corpus", "own"], id="option and value"),
        pytest.param(["--corpus=own", "--all"], id="option=value and switch"),
        pytest.param(["a="], id="word that ends in ="),
        pytest.param(["--all", "a"], id="switch and word"),
        pytest.param(["-n", "3"], id="short option"),
    ],
)
def test_no_message_is_returned_if_all_arguments_have_text(arguments, command):
    assert describe_empty_argument(arguments, command) == ""


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param(["--corpus="], "--corpus", id="option=value"),
        pytest.param(["a", "--corpus= "], "--corpus", id="option=space"),
        pytest.param(["--corpus", ""], "--corpus", id="option value"),
        pytest.param(["a", "--corpus", " \t"], "--corpus", id="option spaces"),
        pytest.param([""], "argument 1", id="only argument"),
        pytest.param(["a", "b", "  "], "argument 3", id="last argument"),
        pytest.param(["-n", ""], "argument 2", id="after a short option"),
        pytest.param(["a", "", ""], "argument 2", id="two empty arguments"),
    ],
)
def test_the_message_names_the_first_empty_argument(arguments, name):
    message = describe_empty_argument(arguments)

    assert message == f"{name} is empty. Is a variable not set?"


def test_an_argument_without_an_option_is_shown_with_the_whole_command():
    """Its number alone would not tell the user which word of the command is meant."""
    message = describe_empty_argument(["my file", ""], "bleuprint compare")

    expected = "argument 2 of bleuprint compare 'my file' '' is empty. Is a variable not set?"
    assert message == expected


def test_an_empty_option_is_shown_without_the_command():
    message = describe_empty_argument(["--corpus", ""], "bleuprint compare")

    assert message == "--corpus is empty. Is a variable not set?"
