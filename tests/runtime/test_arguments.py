"""An argument that a shell left empty is named by its option or its place."""

import pytest

from bleuprint.runtime.arguments import describe_empty_argument

END = " is empty: is a variable not set?"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a", "b"],
        ["--corpus", "own"],
        ["--corpus=own", "--all"],
        ["a="],
        ["--all", "a"],
        ["-n", "3"],
    ],
)
def test_arguments_that_name_something(arguments):
    assert describe_empty_argument(arguments) == ""
    assert describe_empty_argument(arguments, "bleuprint verify") == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--corpus="], "--corpus"),
        (["a", "--corpus= "], "--corpus"),
        (["--corpus", ""], "--corpus"),
        (["a", "--corpus", " \t"], "--corpus"),
        ([""], "argument 1"),
        (["a", "b", "  "], "argument 3"),
        (["-n", ""], "argument 2"),
        (["a", "", ""], "argument 2"),
    ],
)
def test_the_first_empty_argument_is_named(arguments, named):
    assert describe_empty_argument(arguments) == f"{named}{END}"


def test_a_place_is_of_the_whole_command_line():
    said = describe_empty_argument(["my file", ""], "bleuprint compare")
    assert said == f"argument 2 of bleuprint compare 'my file' ''{END}"
    assert describe_empty_argument(["--corpus", ""], "bleuprint compare") == f"--corpus{END}"
