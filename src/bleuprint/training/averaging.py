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
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import name_in_errors
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.regular_files import check_regular_file, sha256_of
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, ranking

Tensors = dict[str, NDArray[Any]]
# The file that describes a model.
MODEL = "model.json"
_WEIGHTS = "model.safetensors"


def average_checkpoints(checkpoints: Path, settings: Average, output: Path) -> None:
    """Average the weights of a training's checkpoints, or collect the checkpoints into an ensemble.

    An average is a folder with model.safetensors, the weights, and model.json, which describes the
    model and names the checkpoints and the SHA-256 of the weights. An ensemble is a folder with its
    own model.json and such a folder for each of its checkpoints, named by the update.

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
    """Writes averaged weights and model.json, the file that describes them.

    Attributes:
        description: The content of the model.json that the training wrote.
        settings: The settings of the average.
        fingerprint: The fingerprint of the training, which identifies it. It is written into the
            header of the weights.
    """

    description: dict[str, Any]
    settings: Average
    fingerprint: str

    def write_average(self, paths: list[Path], folder: Path) -> None:
        """Write the mean of checkpoints, and model.json, into a folder.

        Args:
            paths: The checkpoints, oldest first.
            folder: The folder to write into.
        """
        weights = folder / _WEIGHTS
        with name_in_errors(weights):
            save_file(mean_tensors(paths), weights, {"fingerprint": self.fingerprint})
        description = self._describe(paths)
        description["weights_sha256"] = sha256_of(weights)
        write_json(folder / MODEL, description)

    def write_ensemble_description(self, paths: list[Path], folder: Path) -> None:
        """Write the model.json of an ensemble, whose weights are in the folders of its models.

        Args:
            paths: The checkpoints that translate together, oldest first.
            folder: The folder of the ensemble.
        """
        write_json(folder / MODEL, self._describe(paths))

    def _describe(self, paths: list[Path]) -> dict[str, Any]:
        """Return model.json of an average: that of the training, and how it was averaged.

        Args:
            paths: The averaged checkpoints.
        """
        averaged = {
            "settings": self.settings.chosen,
            "updates": [_update_number(path) for path in paths],
        }
        return {**self.description, "averaged": averaged}


def _update_number(path: Path) -> int:
    """Return the update of an exported checkpoint, UPDATE.safetensors or UPDATE.ema.safetensors."""
    return int(path.name.partition(".")[0])


def mean_tensors(paths: list[Path]) -> Tensors:
    """Return the mean of the tensors with the same name in several files, for each name.

    Means are computed in float64 and returned in float32. This takes the memory of one model in
    float64 and one more tensor, however many files there are.

    Args:
        paths: Files in the format safetensors.
    """
    sums: Tensors = {}
    for path in paths:
        check_regular_file(path)
        with name_in_errors(path), safe_open(path, "np") as file:
            # In the order of the file, since reading it from start to end is faster.
            for name in file.offset_keys():
                tensor = file.get_tensor(name).astype(np.float64)
                if name in sums:
                    tensor = sums[name] + tensor
                sums[name] = tensor
    means: Tensors = {}
    for name in list(sums):
        # `pop` frees the memory of each sum as soon as its mean is known.
        means[name] = (sums.pop(name) / len(paths)).astype(np.float32)
    return means


def checkpoints_to_average(
    checkpoints: Path, settings: Average, training: CheckpointsRecord
) -> list[Path]:
    """Choose the checkpoints to average.

    Args:
        checkpoints: The folder of the exported checkpoints, which are named by their update, such
            as 0012000.safetensors.
        settings: Which of them to average: the last ones, the best ones, or the moving average of
            the weights.
        training: The record of the training's validations.

    Returns:
        The files to average, oldest first.

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
        chosen_updates = updates[-settings.last :]
    else:
        assert settings.best is not None
        best_first = ranking(training.validations, training.validation_metric)
        validated = [update for update in best_first if update in file_by_update]
        if len(validated) < settings.best:
            raise _too_few(
                checkpoints, f"best is {settings.best}", "validated checkpoints", validated
            )
        chosen_updates = validated[: settings.best]
    return [file_by_update[update] for update in sorted(chosen_updates)]


def _moving_average_files(checkpoints: Path) -> list[Path]:
    """Return the file of the weights' moving average, as a list of one.

    A training with the setting `train.ema` exports it at its end.

    Raises:
        UserError: There is no such file.
    """
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
        kind: What the setting counts: `checkpoints`, or `validated checkpoints`.
        updates: The updates of the existing checkpoints of this kind.
    """
    available = ", ".join(map(str, sorted(updates))) or "none"
    key = setting.partition(" ")[0]
    return UserError(
        f"{checkpoints}: average.{setting}, but the {kind} are: {available}. "
        f"Lower average.{key}; nothing is trained again"
    )
