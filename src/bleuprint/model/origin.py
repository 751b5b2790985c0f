"""Checks that a file of weights is the one that is described: its training, its bytes.

This module does not import torch, because the stages `resolve` and `average` use it, and they run
faster without torch.
"""

from pathlib import Path

from safetensors import safe_open

from bleuprint.model.description import DESCRIPTION
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile, name_in_errors
from bleuprint.runtime.regular_files import check_regular_file, sha256_of

# A fingerprint is 64 hexadecimal digits; messages show the first ones.
_SHOWN_DIGITS = 12


def check_origin(path: Path, training: str | None, named_in: str) -> None:
    """Check that the weights in a file come from the expected training run.

    A training run is identified by its fingerprint, a hash of everything that decides its result.

    Args:
        path: A file of weights, whose header contains the fingerprint of their training run. A file
            without a fingerprint is accepted, since weights may come from another program.
        training: The expected fingerprint; None accepts any.
        named_in: The name of the file that contains the expected fingerprint, for the message.

    Raises:
        UserError: The weights come from another training run.
    """
    check_regular_file(path)
    with name_in_errors(path), safe_open(path, "np") as file:
        metadata = file.metadata() or {}
    found_training = metadata.get("fingerprint")
    if training is None or found_training is None:
        return  # There is nothing to compare.
    if found_training == training:
        return
    raise UserError(
        f"{path} contains weights of another training ({found_training[:_SHOWN_DIGITS]}...) than "
        f"{named_in} names ({training[:_SHOWN_DIGITS]}...)"
    )


def check_bytes(path: Path, expected_sha256: str | None) -> None:
    """Check that a file of weights is intact, by the SHA-256 in model.json.

    Hashing takes half a second per gigabyte on an AMD processor of 2024 (Zen 5).

    Args:
        path: The file of weights.
        expected_sha256: The SHA-256 in model.json. None accepts any file: no SHA-256 is recorded
            for the checkpoints of a training run.

    Raises:
        DamagedFile: The file has another SHA-256.
    """
    if expected_sha256 is not None and sha256_of(path) != expected_sha256:
        raise DamagedFile(path, f"its SHA-256 differs from the one in {DESCRIPTION}")
