"""Checkpoints of a training: folders that are written atomically and verified when they are read.

A checkpoint is a folder checkpoint-UPDATE with these files:

- model.safetensors: the weights by name; its header contains the fingerprint of the training
- optimizer.safetensors: the state of the optimizer, and the moving average of the weights, if any
- state.json: everything else
- sha256.json: the SHA-256 of the three other files

Nothing is pickled. No random state is saved, because none is needed: every batch seeds the
generator from the run's seed, the update and the index of the batch.
"""

import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from bleuprint.config.system import Train
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import name_in_errors
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.schema import read_record

MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
# The files of a checkpoint, and the file with their SHA-256.
FILES = (MODEL, OPTIMIZER, STATE)
HASHES = "sha256.json"

_PREFIX = "checkpoint-"

_Tensors = dict[str, Tensor]


class DamagedCheckpoint(UserError):
    """A checkpoint is incomplete, or one of its files has changed."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has been read.

    Attributes:
        update: The number of updates before it.
        model: The weights, by name.
        optimizer: The state of the optimizer, by name.
        state: The content of state.json.
    """

    update: int
    model: _Tensors
    optimizer: _Tensors
    state: dict[str, Any]


def save(
    folder: Path, update: int, model: _Tensors, optimizer: _Tensors, state: dict[str, Any]
) -> Path:
    """Write a checkpoint, from which an interrupted training can continue.

    The folder is written under another name and then renamed, so that a process that is killed
    meanwhile leaves no incomplete checkpoint.

    Args:
        folder: The folder of the training's checkpoints.
        update: The number of updates so far.
        model: The weights, by name.
        optimizer: The state of the optimizer, by name.
        state: Everything else that the training continues from, such as its token counts, and the
            `fingerprint` that identifies the training.

    Returns:
        The folder of the checkpoint.
    """
    path = checkpoint_path(folder, update)
    # One key only: safetensors writes several keys in random order, so that equal checkpoints would
    # have different bytes.
    metadata = {"fingerprint": state["fingerprint"]}
    with atomic_folder(path) as unfinished_path:
        save_tensors(model, unfinished_path / MODEL, metadata)
        save_tensors(optimizer, unfinished_path / OPTIMIZER)
        write_json(unfinished_path / STATE, {**state, "update": update})
        write_json(unfinished_path / HASHES, _hash_files(unfinished_path))
    return path


def paths(folder: Path) -> list[Path]:
    """Return the folders of the checkpoints in a folder, oldest first."""
    checkpoints = []
    for path in folder.glob(f"{_PREFIX}*"):
        # A folder such as checkpoint-copy does not come from this program.
        if path.name.removeprefix(_PREFIX).isdecimal():
            checkpoints.append(path)
    return sorted(checkpoints, key=update_of)


def checkpoint_path(folder: Path, update: int) -> Path:
    """Return the folder of the checkpoint after an update.

    Args:
        folder: The folder of the training's checkpoints.
        update: The number of the update, from 1.
    """
    return folder / f"{_PREFIX}{update:07d}"


def update_of(path: Path) -> int:
    """Return the number of updates before a checkpoint."""
    return int(path.name.removeprefix(_PREFIX))


def read_state(path: Path) -> dict[str, Any]:
    """Check that the files of a checkpoint are intact, and read its state.json.

    Args:
        path: The folder of the checkpoint. Its file sha256.json records the SHA-256 of each other
            file.

    Returns:
        The content of state.json: everything except the tensors.

    Raises:
        DamagedCheckpoint: A file is missing, or its SHA-256 differs from the recorded one.
    """
    try:
        expected_hashes = read_record(dict[str, str], path / HASHES)
        hashes = _hash_files(path)
        state = read_json_object(path / STATE, ("fingerprint", "update"))
    except (FileNotFoundError, UserError) as error:
        raise DamagedCheckpoint(f"{path} is damaged ({HASHES}: {error})") from None
    for name in FILES:
        if hashes[name] != expected_hashes.get(name):
            raise DamagedCheckpoint(f"{path} is damaged ({name} does not match {HASHES})")
    return state


def _hash_files(path: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a checkpoint, by name."""
    return {name: sha256_of(path / name) for name in FILES}


def load(path: Path) -> Checkpoint:
    """Read a checkpoint, after checking that its files are intact.

    Args:
        path: The folder of the checkpoint.

    Raises:
        DamagedCheckpoint: It is incomplete, or one of its files has changed.
    """
    with name_in_errors(path):
        state = read_state(path)
        return Checkpoint(
            update=state["update"],
            model=load_file(path / MODEL),
            optimizer=load_file(path / OPTIMIZER),
            state=state,
        )


def load_latest(folder: Path) -> Checkpoint | None:
    """Read the newest intact checkpoint in a folder, and clean up what a crash has left there.

    Each newer checkpoint, which is damaged, is renamed to damaged-*, with a message on stderr. What
    is left of checkpoints that a killed process was writing or removing is deleted.

    Args:
        folder: The folder of the training's checkpoints.

    Returns:
        The checkpoint; None if no checkpoint is intact.
    """
    # While a checkpoint is being written or removed, its name begins with a dot.
    for unfinished_path in folder.glob(f".{_PREFIX}*"):
        with name_in_errors(unfinished_path):
            shutil.rmtree(unfinished_path)
    for path in reversed(paths(folder)):
        try:
            return load(path)
        except DamagedCheckpoint as error:
            print(f"{error}. This checkpoint is skipped", file=sys.stderr)
            damaged_path = path.with_name(f"damaged-{path.name}")
            # A damaged checkpoint of the same update, set aside earlier, would prevent the
            # renaming.
            shutil.rmtree(damaged_path, ignore_errors=True)
            path.rename(damaged_path)
    return None


def load_latest_on_all(folder: Path, group: Group) -> Checkpoint | None:
    """Read the newest intact checkpoint, the same one in all processes of a training.

    Rank 0, the first process, chooses the checkpoint. It must exist, with the same content, on the
    machine of every process.

    Args:
        folder: The folder of the training's checkpoints.
        group: The processes that train together.

    Returns:
        The checkpoint; None if rank 0 finds none.

    Raises:
        UserError: A process does not find the checkpoint, or finds a different one. All processes
            raise an error.
    """
    latest = load_latest(folder) if group.is_main else None
    # Rank 0 sends all processes the update of its checkpoint; -1 means that it has none.
    update = int(group.broadcast(-1 if latest is None else latest.update))
    if update < 0:
        return None
    path = checkpoint_path(folder, update)
    with group.raise_together():
        if not path.exists():
            raise UserError(
                f"{path} is missing on {socket.gethostname()}, but rank 0 continues from it. "
                "Machines that train together must share one folder"
            )
        # Rank 0 has read it already.
        latest = latest or load(path)
    if group.differs((path / HASHES).read_text()):
        raise UserError(
            f"{folder}: checkpoint {update} differs between the {group.size} processes. Train in "
            f"one folder that they share, or copy {path.name} from one machine to all"
        )
    return latest


def prune(folder: Path, settings: Train, ranking: Sequence[int], is_finished: bool) -> None:
    """Remove the checkpoints that the settings do not keep.

    Args:
        folder: The folder of the training's checkpoints.
        settings: How many checkpoints to keep, and which.
        ranking: The updates that have been validated, best first.
        is_finished: Whether the training is finished.
    """
    path_by_update = {update_of(path): path for path in paths(folder)}
    kept_updates = _kept_updates(list(path_by_update), settings, ranking, is_finished)
    for update, path in path_by_update.items():
        if update in kept_updates:
            continue
        # Renamed first: if the process is killed now, the rest does not look like a checkpoint.
        removed_path = path.rename(folder / f".{path.name}.gone")
        with name_in_errors(removed_path):
            shutil.rmtree(removed_path)


def _kept_updates(
    updates: Sequence[int], settings: Train, ranking: Sequence[int], is_finished: bool
) -> set[int]:
    """Return the updates of the checkpoints to keep.

    These are the newest checkpoint, since an interrupted training continues from it; the last
    `keep_last` ones; the best `keep_best` ones; and the one at each `keep_interval` updates.

    Args:
        updates: The updates of the existing checkpoints, oldest first.
        settings: How many checkpoints to keep, and which.
        ranking: The updates that have been validated, best first.
        is_finished: Whether the training is finished.
    """
    if not updates:
        return set()
    newest = updates[-1]
    # The updates at which a checkpoint was due: each `save_interval` updates, and at the end of the
    # training. SIGTERM also causes a checkpoint, at any update; it does not count for `keep_last`,
    # so that interrupted and uninterrupted trainings keep the same checkpoints.
    regular_updates = []
    kept = {newest}
    for update in updates:
        is_last = is_finished and update == newest
        if update % settings.save_interval == 0 or is_last:
            regular_updates.append(update)
        if settings.keep_interval and update % settings.keep_interval == 0:
            kept.add(update)
    kept.update(regular_updates[-settings.keep_last :])
    # Only existing checkpoints can be kept. The best of these are the best of the whole training as
    # well, because a checkpoint is removed only if `keep_best` better ones exist.
    best_first = [update for update in ranking if update in updates]
    kept.update(best_first[: settings.keep_best])
    return kept


def save_tensors(tensors: _Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors with their names to a file in the format safetensors.

    Args:
        tensors: The tensors by name, on any device.
        path: The file to write.
        metadata: The entries of the file's header.
    """
    # safetensors refuses tensors that share memory. The tensors of the optimizer do, because they
    # are parts of one vector. So copies are written.
    copies = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    with name_in_errors(path):
        save_file(copies, path, metadata)
