"""The settings of the COMET model that scores translations."""

from dataclasses import dataclass

from bleuprint.runtime.schema import NotBlank, Sha256


@dataclass(frozen=True)
class Comet:
    """A COMET model. Paths are relative to the project's root.

    Attributes:
        python: The Python of an environment with unbabel-comet.
        folder: The model, with the tokenizer and configuration of its encoder in `encoder/`.
        sha256: The SHA-256 of the folder.
    """

    python: NotBlank
    folder: NotBlank
    sha256: Sha256
