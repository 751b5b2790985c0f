"""The COMET model of an experiment. Part of the settings in `experiment.py`."""

from dataclasses import dataclass

from bleuprint.runtime.schema import NotBlank, Sha256


@dataclass(frozen=True)
class Comet:
    """A COMET model by its published name, of which there is one at most.

    `python`: the Python of an environment with unbabel-comet; `folder`: the model, with the
    tokenizer and configuration of its encoder in `encoder/`; `sha256`: that of the folder. Paths
    are relative to the project's root.
    """

    python: NotBlank
    folder: NotBlank
    sha256: Sha256
