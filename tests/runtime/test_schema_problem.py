"""What a message says of a wrong value in a record."""

from dataclasses import dataclass

import pytest

from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.schema import Sha256, read_record


@dataclass(frozen=True)
class Record:
    sha256: Sha256


def test_a_pattern_with_braces_is_shown(tmp_path):
    path = tmp_path / "record.json"
    path.write_text('{"sha256": "abc"}')
    with pytest.raises(DamagedFile, match="field sha256: 'abc' String should match pattern"):
        read_record(Record, path)
