"""The outcomes of contrastive tests, and contrast.json, which stores them."""

from pathlib import Path
from typing import TypedDict

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, reading

CONTRAST = "contrast.json"


class Outcome(TypedDict):
    """The outcome of a phenomenon's tests.

    `failed`: the numbers, from 1, of those of the `pairs` of which the wrong translation is at
    least as probable as the right one.
    """

    name: str
    pairs: int
    failed: list[int]


class TestOutcomes(TypedDict):
    """The outcomes on a test set; `sha256` is that of the pairs, in tokens."""

    sha256: str
    phenomena: list[Outcome]


class Contents(TypedDict):
    """The content of contrast.json; `model`: the fingerprint of the model's training."""

    model: str
    tests: dict[str, TestOutcomes]


def read_outcomes(path: Path, model: str) -> dict[str, TestOutcomes] | None:
    """The outcomes by test set; None if there is no file, as of an earlier version.

    Raises UserError if it is damaged, or of another training than that with the fingerprint
    `model`.
    """
    if not path.exists():
        return None
    content = read_object(path, Contents.__required_keys__)
    if content["model"] != model:
        raise UserError(f"{path}: of another training than that of training.json; run: dvc repro")
    with reading(path):
        for each in (each for of in content["tests"].values() for each in of["phenomena"]):
            if not {*each["failed"]} <= {*range(1, each["pairs"] + 1)}:
                raise ValueError(f"failed pairs of {each['name']} that are not among its pairs")
    tests: dict[str, TestOutcomes] = content["tests"]
    return tests
