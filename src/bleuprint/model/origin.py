"""Whether a file of weights is the one that is described: its training, its bytes.

Without torch, which the stages resolve and average do not load.
"""

from pathlib import Path

from safetensors import safe_open

from bleuprint.model.description import DESCRIPTION
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import DamagedFile, check_regular_file, name_in_errors, sha256_of


def check_origin(path: Path, training: str | None, named_in: str) -> None:
    """Raise UserError if the weights in a file are of another training than `named_in` says.

    Args:
        path: A file of weights, whose header has the fingerprint of their training.
        training: The fingerprint that is expected; None accepts any, as of a model made by hand.
        named_in: The name of the file that has the expected fingerprint.
    """
    check_regular_file(path)
    with name_in_errors(path), safe_open(path, "np") as file:
        found = (file.metadata() or {}).get("fingerprint")
    if training is not None and found is not None and found != training:
        raise UserError(
            f"{path}: weights of another training ({found[:12]}...) than {named_in} names "
            f"({training[:12]}...)"
        )


def check_bytes(path: Path, expected: str | None) -> None:
    """Raise UserError if the SHA-256 of a file of weights is not the one in its model.json.

    Args:
        path: The file; hashing takes half a second a gigabyte (Zen 5).
        expected: The SHA-256 in model.json; None accepts any, as of a checkpoint.
    """
    if expected is not None and sha256_of(path) != expected:
        raise DamagedFile(path, f"its SHA-256 is not the one in {DESCRIPTION}")
