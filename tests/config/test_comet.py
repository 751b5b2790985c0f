"""The COMET model that params.yaml may name."""

import pytest

from bleuprint.runtime.errors import UserError
from micro import COMET
from params import PARAMS, read


def test_a_model_or_none(tmp_path):
    assert read(tmp_path).comet is None
    ((name, model),) = read(tmp_path, f"{PARAMS}{COMET}").comet.items()
    assert (name, model.folder, model.sha256) == ("own-model", "comet/own-model", "c0" * 32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("comet:\n", "comet: is empty: remove the key, or add entries"),
        (COMET.replace("c0c0", "C0C0"), "comet.own-model.sha256: a SHA-256 is 64 hex"),
        (
            f"{COMET}{COMET.partition(chr(10))[2].replace('own', 'other')}",
            "comet: {.* has more than 1",
        ),
        (COMET.replace("folder", "model"), "comet.own-model.model: unknown key"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(UserError, match=rf"params\.yaml:\d+: {message}"):
        read(tmp_path, f"{PARAMS}{text}")
