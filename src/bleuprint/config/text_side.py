"""Where one side of a text of a corpus comes from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextSide:
    """Where one side of a text comes from, for the report.

    Attributes:
        text: The name of the text, SET.PART.
        side: source, target, or both.
        origin: The file, or the system that translated the side.
        sha256: The SHA-256 of the file; empty if params.yaml does not have it.
    """

    text: str
    side: str
    origin: str
    sha256: str = ""
