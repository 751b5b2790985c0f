"""Averaging checkpoints: the arithmetic mean of each weight, computed in float64; ensembles.

Uses NumPy, which imports in a tenth of the time of torch.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from bleuprint.config.system import Average
from bleuprint.model.origin import check_origin
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import (
    atomic_folder,
    check_regular_file,
    name_in_errors,
    read_json_object,
    sha256_of,
    write_json,
)
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, ranking

Tensors = dict[str, NDArray[Any]]
MODEL = "model.json"


def average_checkpoints(checkpoints: Path, settings: Average, output: Path) -> None:
    """Average checkpoints of a folder, as exported by training, into the folder `output`.

    `checkpoints` contains UPDATE.safetensors, model.json, checkpoints.json, and
    UPDATE.ema.safetensors if the training kept a moving average. The average's model.json holds,
    as `averaged`, the settings and the updates of the checkpoints, and the SHA-256 of the weights.
    An ensemble has such a folder for each of its checkpoints, named by the update.
    """
    training = CheckpointsRecord.read(checkpoints)
    chosen = checkpoints_to_average(checkpoints, settings, training)
    updates = [int(path.name.partition(".")[0]) for path in chosen]
    for path in chosen:
        check_origin(path, training.fingerprint, CHECKPOINTS)
    model, mark = read_json_object(checkpoints / MODEL), {"fingerprint": training.fingerprint}
    averaged = {"settings": settings.chosen, "updates": updates}
    with atomic_folder(output) as partial:
        folders = {partial / str(update): [update] for update in updates}
        for folder, of in folders.items() if settings.ensemble else [(partial, updates)]:
            folder.mkdir(exist_ok=True)
            paths = [path for update, path in zip(updates, chosen, strict=True) if update in of]
            with name_in_errors(weights := folder / "model.safetensors"):
                save_file(mean_tensors(paths), weights, mark)
            description = {**model, "averaged": averaged | {"updates": of}}
            description["weights_sha256"] = sha256_of(weights)
            write_json(folder / MODEL, description)
        if settings.ensemble:
            write_json(partial / MODEL, {**model, "averaged": averaged})


def mean_tensors(paths: list[Path]) -> Tensors:
    """The mean of the tensors of each name; memory: the sums and one tensor."""
    total: Tensors = {}
    for path in paths:
        check_regular_file(path)
        with name_in_errors(path), safe_open(path, "np") as file:
            for name in file.offset_keys():  # in file order
                tensor = file.get_tensor(name).astype(np.float64)
                total[name] = total[name] + tensor if name in total else tensor
    return {name: (total.pop(name) / len(paths)).astype(np.float32) for name in list(total)}


def checkpoints_to_average(
    checkpoints: Path, settings: Average, training: CheckpointsRecord
) -> list[Path]:
    """The files to average, oldest first; raises UserError if there are too few.

    As of a training that `patience` ended before it kept as many.
    """
    if settings.ema:
        if not (moving := list(checkpoints.glob("*.ema.safetensors"))):
            raise UserError(f"{checkpoints}: average.ema, but the training kept no moving average")
        return moving
    paths = (path for path in checkpoints.glob("*.safetensors") if path.stem.isdecimal())
    files = {int(path.stem): path for path in paths}
    updates, kind = sorted(files), "checkpoints"
    if settings.last is not None:
        setting, chosen = f"last is {settings.last}", updates[-settings.last :]
    else:
        assert settings.best is not None
        ranked = ranking(training.validations, training.validation_metric)
        updates, kind = [update for update in ranked if update in files], "validated checkpoints"
        setting, chosen = f"best is {settings.best}", updates[: settings.best]
    if len(chosen) < (settings.last or settings.best or 1):
        available = ", ".join(map(str, sorted(updates))) or "none"
        raise UserError(
            f"{checkpoints}: average.{setting}, but the {kind} are: {available}; lower "
            f"average.{setting.partition(' ')[0]}: nothing is trained again"
        )
    return [files[update] for update in sorted(chosen)]
