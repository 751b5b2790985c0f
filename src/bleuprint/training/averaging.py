"""Averaging checkpoints: the arithmetic mean of each weight, computed in float64.

Uses NumPy, which imports in a tenth of the time of torch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, whole_folder

Tensors = dict[str, NDArray[Any]]


def average(checkpoints: Path, settings: Average, output: Path) -> None:
    """Average checkpoints of a folder, as exported by training, into the folder `output`.

    `checkpoints` contains UPDATE.safetensors, model.json, and checkpoints.json with the fingerprint
    and the validations of the training.
    """
    record = checkpoints / "checkpoints.json"
    training = _read(record)
    paths = _choose(checkpoints, settings, training)
    for path in paths:
        _check_training(path, training["fingerprint"], record)
    with whole_folder(output) as partial:
        weights = partial / "model.safetensors"
        try:
            save_file(mean(paths), weights, {"fingerprint": training["fingerprint"]})
        except SafetensorError as error:  # a full disk, which safetensors does not call an OSError
            raise UserError(f"{weights}: cannot be written: {error}") from None
        (partial / "model.json").write_bytes((checkpoints / "model.json").read_bytes())


def mean(paths: list[Path]) -> Tensors:
    """The mean of the tensors of each name; raises UserError if names or shapes differ.

    Memory: the sums and one tensor.
    """
    total: Tensors = {}
    for path in paths:
        with _opened(path) as file:
            names = file.offset_keys()  # in file order
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            if not total:
                total = {name: file.get_tensor(name).astype(np.float64) for name in shapes}
            elif shapes != {name: tensor.shape for name, tensor in total.items()}:
                raise UserError(f"{path}: other weights than {paths[0]}: they cannot be averaged")
            else:
                for name, tensor in total.items():
                    tensor += file.get_tensor(name)
    return {name: (total.pop(name) / len(paths)).astype(np.float32) for name in list(total)}


def updates_in(checkpoints: Path) -> list[int]:
    """The updates of a folder's checkpoints, ascending."""
    return sorted(_files(checkpoints))


def _files(checkpoints: Path) -> dict[int, Path]:
    files = (path for path in checkpoints.glob("*.safetensors") if path.stem.isdecimal())
    return {int(path.stem): path for path in files}


def _choose(checkpoints: Path, settings: Average, training: dict[str, Any]) -> list[Path]:
    """The files to average, oldest first; raises UserError if there are too few."""
    files = _files(checkpoints)
    updates, kind, count = sorted(files), "checkpoints", 1
    if settings.last is not None:
        setting, count = f"last is {settings.last}", settings.last
        chosen = updates[-count:]
    elif settings.best is not None:
        setting, count = f"best is {settings.best}", settings.best
        updates, kind = [u for u in _ranking(training) if u in files], "validated checkpoints"
        chosen = updates[:count]
    else:
        assert settings.updates is not None
        first, last = settings.updates
        setting = f"updates is [{first}, {last}]"
        chosen = [update for update in updates if first <= update <= last]
    if len(chosen) < count:
        available = ", ".join(map(str, sorted(updates))) or "none"
        raise UserError(f"{checkpoints}: average.{setting}, but the {kind} are: {available}")
    return [files[update] for update in sorted(chosen)]


def _ranking(training: dict[str, Any]) -> list[int]:
    """The validated updates, best first; of equal ones the earlier first."""
    metric = training["validation_metric"]
    sign = {"loss": 1, "bleu": -1}[metric]
    ranked = sorted(training["validations"], key=lambda v: (sign * v[metric], v["update"]))
    return [validation["update"] for validation in ranked]


def _check_training(path: Path, fingerprint: str, record: Path) -> None:
    """Raise UserError unless a checkpoint has the training's fingerprint."""
    with _opened(path) as file:
        actual = (file.metadata() or {}).get("fingerprint")
    if actual != fingerprint:
        reason = f"its fingerprint is {actual}" if actual else "it has no fingerprint"
        raise UserError(
            f"{path}: belongs to another training than {record}: {reason}, not {fingerprint}"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = read_json(path)
    except (FileNotFoundError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    return content


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file of tensors; raises UserError if it cannot be read."""
    try:
        with safe_open(path, "np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: {error}") from None
