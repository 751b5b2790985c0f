"""The training that a file of weights is from, by the header of the file. Without torch."""

from pathlib import Path

from safetensors import safe_open

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import system_errors


def check_origin(path: Path, training: str | None, named_in: str) -> None:
    """Raise UserError if the weights in a file are of another training than `named_in` says.

    Args:
        path: A file of weights, whose header has the fingerprint of their training.
        training: The fingerprint that is expected; None accepts any, as of a model made by hand.
        named_in: The name of the file that has the expected fingerprint.
    """
    with system_errors(path), safe_open(path, "np") as file:
        found = (file.metadata() or {}).get("fingerprint")
    if training is not None and found is not None and found != training:
        raise UserError(
            f"{path}: weights of another training ({found[:12]}...) than {named_in} names "
            f"({training[:12]}...)"
        )
