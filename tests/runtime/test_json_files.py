"""JSON files: what the strict reader accepts, and the message about what it refuses."""

import pytest

from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.json_files import read_json


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b'{"a": 1, "b": 2, "a": 3}', "field a occurs twice", id="repeated key"),
        pytest.param(b'{"a": NaN}', "NaN is not a JSON number", id="NaN"),
        pytest.param(b'{"a": [-Infinity]}', "-Infinity is not a JSON number", id="infinity"),
        pytest.param(b'{"a": 1e999}', "1e999 is too large for a number", id="too large"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit", id="5,000 digits"),
        pytest.param(b'{"a": "\\ud800"}', "it contains a lone surrogate", id="lone surrogate"),
        pytest.param(b'{\n"a": "\xff"}', "byte 9 is 0xff, not UTF-8", id="not UTF-8"),
        pytest.param(b'{\n"a": }', "line 2 is not JSON: Expecting value", id="no value"),
        pytest.param(b"", "line 1 is not JSON: Expecting value", id="empty file"),
        pytest.param(b"[" * 101 + b"]" * 101, "nested more than 100 deep", id="101 lists"),
        pytest.param(
            b'{"a":' * 5000 + b"0" + b"}" * 5000, "nested more than 100 deep", id="5,000 objects"
        ),
        pytest.param(b"[" * 100_000, "nested more than 100 deep", id="100,000 open lists"),
    ],
)
def test_a_file_that_other_programs_may_not_read_is_called_damaged(tmp_path, content, problem):
    """The message has one line: the file, the problem, and what the caller says to do about it."""
    path = tmp_path / "x.json"
    path.write_bytes(content)

    with pytest.raises(DamagedFile) as raised:
        read_json(path, remedy="get it again")

    message = str(raised.value)
    assert message.startswith(f"{path} is damaged: ")
    assert problem in message
    assert message.endswith(". get it again")
    assert "\n" not in message


def test_a_hundred_nesting_levels_are_read(tmp_path):
    """At most 100 levels are allowed: here an object with 99 lists, one in the other."""
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": ' + b"[" * 99 + b"7" + b"]" * 99 + b"}")

    value = read_json(path)["a"]
    for _ in range(99):
        (value,) = value

    assert value == 7


def test_the_largest_power_of_ten_is_read(tmp_path):
    """A float reaches 1.8e308."""
    path = tmp_path / "x.json"
    path.write_bytes(b"1e308")

    assert read_json(path) == 1e308


def test_a_pair_of_surrogates_is_read_as_one_character(tmp_path):
    """JSON may write a character beyond U+FFFF as two codes, called surrogates."""
    path = tmp_path / "x.json"
    path.write_bytes(b'{"\\ud83d\\ude00": 1}')

    assert read_json(path) == {"\U0001f600": 1}
