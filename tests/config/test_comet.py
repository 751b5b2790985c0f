"""The COMET model that params.yaml may name."""

import pytest

from bleuprint.runtime.errors import UserError
from micro import COMET
from params import PARAMS, read


def test_a_model_or_none(tmp_path):
    assert read(tmp_path).comet is None
    ((name, model),) = read(tmp_path, f"{PARAMS}{COMET}").comet.items()
    assert (name, model.folder, model.sha256) == ("own-model", "comet/own-model", "c0" * 32)


def test_a_second_model_is_refused(tmp_path):
    second = COMET.partition("\n")[2].replace("own", "other")
    with pytest.raises(UserError, match=r"params\.yaml:\d+: comet: {.* has more than 1"):
        read(tmp_path, f"{PARAMS}{COMET}{second}")


def test_an_empty_section_is_refused(tmp_path):
    text = PARAMS.replace("systems:\n", "comet:\nsystems:\n")
    with pytest.raises(UserError, match=r"params\.yaml:\d+: comet: is empty: remove the key"):
        read(tmp_path, text)


def test_a_sha256_in_capitals_is_refused(tmp_path):
    """It would equal the SHA-256 of no folder."""
    text = PARAMS + COMET.replace("c0" * 32, "C0" * 32)
    with pytest.raises(UserError, match=r"params\.yaml:\d+: comet\.own-model\.sha256: .*'C0C0"):
        read(tmp_path, text)
