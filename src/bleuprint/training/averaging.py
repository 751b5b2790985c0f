"""Averaging the weights of checkpoints, and collecting checkpoints into an ensemble.

An average is the arithmetic mean of each weight, computed in float64. This module uses NumPy, whose
import takes a tenth of the time of torch's.
"""

from dataclasses import dataclass
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
# The file that describes a model.
MODEL = "model.json"
_WEIGHTS = "model.safetensors"


def average_checkpoints(checkpoints: Path, settings: Average, output: Path) -> None:
    """Average the checkpoints of a training, or collect them into an ensemble.

    Writes the weights, and model.json: the description of the training's model and, as `averaged`,
    the settings and the updates of the checkpoints; also the SHA-256 of the weights. An ensemble is
    a folder with one such folder for each of its checkpoints, named by the update.

    Args:
        checkpoints: The folder of exported checkpoints. It contains UPDATE.safetensors, model.json,
            checkpoints.json, and UPDATE.ema.safetensors if the training kept a moving average.
        settings: Which checkpoints to average, and whether they become an ensemble.
        output: The folder to write.

    Raises:
        UserError: There are too few checkpoints, or one belongs to another training.
    """
    training = CheckpointsRecord.read(checkpoints)
    paths = checkpoints_to_average(checkpoints, settings, training)
    for path in paths:
        check_origin(path, training.fingerprint, CHECKPOINTS)
    writer = _AverageWriter(
        description=read_json_object(checkpoints / MODEL),
        settings=settings,
        fingerprint=training.fingerprint,
    )
    with atomic_folder(output) as folder:
        if settings.ensemble:
            for path in paths:
                member_folder = folder / str(_update_number(path))
                member_folder.mkdir(exist_ok=True)
                writer.write_average([path], member_folder)
            writer.write_ensemble_description(paths, folder)
        else:
            writer.write_average(paths, folder)


@dataclass(frozen=True)
class _AverageWriter:
    """Writes averaged weights and their descriptions.

    Attributes:
        description: The description of the training's model.
        settings: The settings of the average.
        fingerprint: The fingerprint of the training, which the header of the weights records.
    """

    description: dict[str, Any]
    settings: Average
    fingerprint: str

    def write_average(self, paths: list[Path], folder: Path) -> None:
        """Write the mean of some checkpoints, and its description, into a folder."""
        weights = folder / _WEIGHTS
        with name_in_errors(weights):
            save_file(mean_tensors(paths), weights, {"fingerprint": self.fingerprint})
        description = self._describe(paths)
        description["weights_sha256"] = sha256_of(weights)
        write_json(folder / MODEL, description)

    def write_ensemble_description(self, paths: list[Path], folder: Path) -> None:
        """Write the description of an ensemble, which has no weights of its own."""
        write_json(folder / MODEL, self._describe(paths))

    def _describe(self, paths: list[Path]) -> dict[str, Any]:
        """Return the description of a model that comes from some checkpoints."""
        averaged = {
            "settings": self.settings.chosen,
            "updates": [_update_number(path) for path in paths],
        }
        return {**self.description, "averaged": averaged}


def _update_number(path: Path) -> int:
    """Return the update of an exported checkpoint, UPDATE.safetensors or UPDATE.ema.safetensors."""
    return int(path.name.partition(".")[0])


def mean_tensors(paths: list[Path]) -> Tensors:
    """Return the mean of the tensors of each name in some files, as float32.

    This needs the memory of all sums and of one tensor.
    """
    sums: Tensors = {}
    for path in paths:
        check_regular_file(path)
        with name_in_errors(path), safe_open(path, "np") as file:
            # In the order of the file, which is read faster.
            for name in file.offset_keys():
                tensor = file.get_tensor(name).astype(np.float64)
                sums[name] = sums[name] + tensor if name in sums else tensor
    means: Tensors = {}
    for name in list(sums):
        # `pop` frees the memory of each sum as soon as its mean is known.
        means[name] = (sums.pop(name) / len(paths)).astype(np.float32)
    return means


def checkpoints_to_average(
    checkpoints: Path, settings: Average, training: CheckpointsRecord
) -> list[Path]:
    """Return the files to average, oldest first.

    Args:
        checkpoints: The folder of exported checkpoints.
        settings: Which of them to average: the last ones, the best ones, or the moving average of
            the weights.
        training: The record of the training's validations.

    Raises:
        UserError: There are too few, because `patience` ended the training early or other settings
            were valid when it was run.
    """
    if settings.ema:
        return _moving_average_files(checkpoints)
    file_by_update: dict[int, Path] = {}
    for path in checkpoints.glob("*.safetensors"):
        # The stem of the moving average, UPDATE.ema, is not a number.
        if path.stem.isdecimal():
            file_by_update[int(path.stem)] = path
    if settings.last is not None:
        updates = sorted(file_by_update)
        if len(updates) < settings.last:
            raise _too_few(checkpoints, f"last is {settings.last}", "checkpoints", updates)
        updates = updates[-settings.last :]
    else:
        assert settings.best is not None
        best_first = ranking(training.validations, training.validation_metric)
        updates = [update for update in best_first if update in file_by_update]
        if len(updates) < settings.best:
            raise _too_few(
                checkpoints, f"best is {settings.best}", "validated checkpoints", updates
            )
        updates = updates[: settings.best]
    return [file_by_update[update] for update in sorted(updates)]


def _moving_average_files(checkpoints: Path) -> list[Path]:
    """Return the file of the weights' moving average, which a training exports at its end."""
    files = list(checkpoints.glob("*.ema.safetensors"))
    if not files:
        raise UserError(
            f"{checkpoints}: average.ema is true, but the training kept no moving average. "
            "Set train.ema"
        )
    return files


def _too_few(checkpoints: Path, setting: str, kind: str, updates: list[int]) -> UserError:
    """Return the error for a setting of `average` that asks for more checkpoints than there are.

    Args:
        checkpoints: The folder of the checkpoints.
        setting: The setting and its value, such as `last is 5`.
        kind: What the setting counts: checkpoints, or validated checkpoints.
        updates: The updates of those that there are.
    """
    available = ", ".join(map(str, sorted(updates))) or "none"
    key = setting.partition(" ")[0]
    return UserError(
        f"{checkpoints}: average.{setting}, but the {kind} are: {available}. "
        f"Lower average.{key}; nothing is trained again"
    )
