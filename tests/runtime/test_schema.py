"""What a message says about a wrong value in a record, which is a JSON file with known fields."""

import json
from dataclasses import dataclass

import pytest

from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.schema import Sha256, read_record


@dataclass(frozen=True)
class Loss:
    step: int


@dataclass(frozen=True)
class Training:
    rate: float
    losses: list[Loss]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(
            {"losses": [{"step": 2}, {"step": 3}]},
            "field rate is missing, as in a file that another version wrote",
            id="missing field",
        ),
        pytest.param(
            {"rate": 1.5, "losses": [{"step": 2}, {"step": "x"}]},
            "field losses.1.step: 'x' is not a whole number",
            id="wrong type",
        ),
        pytest.param(
            {"rate": 1.5, "losses": [{"step": 2}, {"step": 3}], "extra": None},
            "field extra is unknown, as in a file that another version wrote",
            id="unknown field",
        ),
    ],
)
def test_the_message_about_a_record_names_the_wrong_field(tmp_path, content, problem):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))

    with pytest.raises(DamagedFile) as raised:
        read_record(Training, path, "get it again")

    assert str(raised.value) == f"{path} is damaged: {problem}. get it again"


@dataclass(frozen=True)
class FileRecord:
    sha256: Sha256


def test_a_pattern_with_braces_is_shown_in_the_message(tmp_path):
    """The pattern of a SHA-256 ends with {64}; str.format would read it as a placeholder."""
    path = tmp_path / "record.json"
    path.write_text('{"sha256": "abc"}')

    with pytest.raises(DamagedFile, match="field sha256: 'abc' String should match pattern"):
        read_record(FileRecord, path)
