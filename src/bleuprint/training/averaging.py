"""Averaging checkpoints: the arithmetic mean of each weight, computed in float64; ensembles.

Uses NumPy, which imports in a tenth of the time of torch.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import (
    read_object,
    sha256_of,
    system_errors,
    whole_folder,
    write_json,
)
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, ranking

Tensors = dict[str, NDArray[Any]]
MODEL = "model.json"


def average(checkpoints: Path, settings: Average, output: Path) -> None:
    """Average checkpoints of a folder, as exported by training, into the folder `output`.

    `checkpoints` contains UPDATE.safetensors, model.json, checkpoints.json, and
    UPDATE.ema.safetensors if the training kept a moving average. The average's model.json holds,
    as `averaged`, the settings, the updates of the checkpoints, and the SHA-256 of the result.
    An ensemble has such a folder for each of its checkpoints, named by the update.
    """
    training = CheckpointsRecord.read(checkpoints)
    chosen = choose(checkpoints, settings, training)
    updates = [int(path.name.partition(".")[0]) for path in chosen]
    averaged = {"settings": settings.given, "updates": updates}
    description = read_object(checkpoints / MODEL)
    for path in chosen:
        if sha256_of(path) != training.files.get(path.name):
            record = checkpoints / CHECKPOINTS
            raise UserError(
                f"{path}: is not the checkpoint that {record} describes; run: dvc checkout --force "
                f"{checkpoints}"
            )
    with whole_folder(output) as partial:
        if settings.ensemble:
            if len(chosen) == 1:
                raise UserError(f"{checkpoints}: average.ensemble of one checkpoint, {updates[0]}")
            for update in updates:
                average(checkpoints, Average(updates=(update, update)), partial / str(update))
        else:
            averaged["sha256"] = _write_mean(chosen, training.fingerprint, partial)
        write_json(partial / MODEL, {**description, "averaged": averaged})


def _write_mean(paths: list[Path], fingerprint: str, folder: Path) -> str:
    """Write the mean of checkpoints; returns its SHA-256."""
    tensors, weights = mean(paths), folder / "model.safetensors"
    with system_errors(weights):
        save_file(tensors, weights, {"fingerprint": fingerprint})
    return sha256_of(weights)


def mean(paths: list[Path]) -> Tensors:
    """The mean of the tensors of each name; memory: the sums and one tensor.

    Raises UserError if a file cannot be read.
    """
    total: Tensors = {}
    for path in paths:
        try:
            with safe_open(path, "np") as file:
                for name in file.offset_keys():  # in file order
                    tensor = file.get_tensor(name).astype(np.float64)
                    total[name] = total[name] + tensor if name in total else tensor
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path}: {error}") from None
    return {name: (total.pop(name) / len(paths)).astype(np.float32) for name in list(total)}


def _files(checkpoints: Path) -> dict[int, Path]:
    files = (path for path in checkpoints.glob("*.safetensors") if path.stem.isdecimal())
    return {int(path.stem): path for path in files}


def choose(checkpoints: Path, settings: Average, training: CheckpointsRecord) -> list[Path]:
    """The files to average, oldest first; raises UserError if there are too few."""
    if settings.ema:
        if not (moving := list(checkpoints.glob("*.ema.safetensors"))):
            raise UserError(f"{checkpoints}: average.ema, but the training kept no moving average")
        return moving
    files = _files(checkpoints)
    updates, kind, count = sorted(files), "checkpoints", 1
    if settings.last is not None:
        setting, count = f"last is {settings.last}", settings.last
        chosen = updates[-count:]
    elif settings.best is not None:
        setting, count = f"best is {settings.best}", settings.best
        ranked = ranking(training.validations, training.validation_metric)
        updates, kind = [update for update in ranked if update in files], "validated checkpoints"
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
