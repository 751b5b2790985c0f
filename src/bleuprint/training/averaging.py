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

from bleuprint.config.average import Average
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
    """Average the weights of several checkpoints, or collect the checkpoints into an ensemble.

    An average usually translates better than any single checkpoint, at the same cost. In an
    ensemble, all checkpoints translate together: their predicted probabilities are averaged.

    An average is a folder with model.safetensors, the weights, and model.json, which describes the
    model and names the checkpoints and the SHA-256 of the weights. An ensemble is a folder with a
    model.json of its own and one such folder for each checkpoint, named after its update.

    Args:
        checkpoints: The folder of exported checkpoints. It contains UPDATE.safetensors, model.json,
            checkpoints.json, and UPDATE.ema.safetensors if the training kept a moving average.
        settings: Which checkpoints to average, and whether they become an ensemble.
        output: The folder to write.

    Raises:
        UserError: There are too few checkpoints, or one belongs to another training run.
    """
    training = CheckpointsRecord.read(checkpoints)
    paths = checkpoints_to_average(checkpoints, settings, training)
    for path in paths:
        # A file of another training run in the same folder would spoil the average.
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
        """Write the mean weights of checkpoints (model.safetensors) and their model.json.

        Args:
            paths: The checkpoints, oldest first.
            folder: The folder to write into.
        """
        weights_file = folder / _WEIGHTS
        with name_in_errors(weights_file):
            save_file(mean_tensors(paths), weights_file, {"fingerprint": self.fingerprint})
        description = self._describe(paths)
        description["weights_sha256"] = sha256_of(weights_file)
        write_json(folder / MODEL, description)

    def write_ensemble_description(self, paths: list[Path], folder: Path) -> None:
        """Write the model.json of an ensemble, whose weights are in the folders of its models.

        Args:
            paths: The checkpoints that translate together, oldest first.
            folder: The folder of the ensemble.
        """
        write_json(folder / MODEL, self._describe(paths))

    def _describe(self, paths: list[Path]) -> dict[str, Any]:
        """Return the content of model.json: what describes the model, and how it was averaged.

        The entry `averaged` is added to the model's description. It contains the settings, such as
        `{"last": 5}`, and the updates of the averaged checkpoints.

        Args:
            paths: The checkpoints that are averaged or form an ensemble.
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
    """Return, for each name, the mean of the tensors that have this name in several files.

    Means are computed in float64, so that rounding errors do not add up, and returned in float32.
    The memory for one model in float64 and one more tensor is enough for any number of files.

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
        checkpoints: The folder of the exported checkpoints, which are named after their update,
            such as 0012000.safetensors.
        settings: Which of them to average: the last ones, the best ones, or the moving average of
            the weights.
        training: The record of the training's validations, which decides what is best.

    Returns:
        The files to average, oldest first.

    Raises:
        UserError: There are too few, because `patience` ended the training early, or because the
            training ran with other settings.
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
            raise _too_few(checkpoints, "last", settings.last, "checkpoints", updates)
        chosen_updates = updates[-settings.last :]
    else:
        assert settings.best is not None  # The settings contain `ema`, `last` or `best`.
        best_first = ranking(training.validations, training.validation_metric)
        # The training may have validated more often than it kept a checkpoint.
        validated = [update for update in best_first if update in file_by_update]
        if len(validated) < settings.best:
            raise _too_few(checkpoints, "best", settings.best, "validated checkpoints", validated)
        chosen_updates = validated[: settings.best]
    return [file_by_update[update] for update in sorted(chosen_updates)]


def _moving_average_files(checkpoints: Path) -> list[Path]:
    """Return the file with the moving average of the weights, as a list of one file.

    A training with the setting `train.ema` exports this file at its end.

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


def _too_few(
    checkpoints: Path, setting: str, value: int, kind: str, updates: list[int]
) -> UserError:
    """Return the error for a setting of `average` that asks for more checkpoints than there are.

    Args:
        checkpoints: The folder of the checkpoints.
        setting: The name of the setting, `last` or `best`.
        value: The number of checkpoints that it asks for.
        kind: What the setting counts: `checkpoints`, or `validated checkpoints`.
        updates: The updates of the existing checkpoints of this kind.
    """
    available = ", ".join(map(str, sorted(updates))) or "none"
    return UserError(
        f"{checkpoints}: average.{setting} is {value}, but the {kind} are: {available}. "
        f"Lower average.{setting}. No training is repeated"
    )
