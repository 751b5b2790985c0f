"""Checkpoints of a training: folders that are written atomically and verified; nothing is pickled.

A checkpoint is a folder checkpoint-UPDATE with model.safetensors (weights by name, the training's
fingerprint in the header), optimizer.safetensors (the optimizer's state, with the moving average of
the weights if there is one), state.json (everything else) and sha256.json (the hashes of these
three). It contains no random state, because none is needed: every batch seeds the generator from
the run's seed, the update and the batch's index.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from bleuprint.config.system import Train
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import (
    atomic_folder,
    name_in_errors,
    read_json_object,
    sha256_of,
    write_json,
)
from bleuprint.runtime.schema import read_record

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
FILES, HASHES = (MODEL, OPTIMIZER, STATE), "sha256.json"

_Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read; `state` is the content of state.json."""

    update: int
    model: _Tensors
    optimizer: _Tensors
    state: dict[str, Any]


def save(
    folder: Path, update: int, model: _Tensors, optimizer: _Tensors, state: dict[str, Any]
) -> Path:
    """Write checkpoint-UPDATE into `folder` atomically; `state` contains the fingerprint."""
    path = checkpoint_path(folder, update)
    # a single key: safetensors writes several in random order
    metadata = {"fingerprint": state["fingerprint"]}
    with atomic_folder(path) as partial:
        save_tensors(model, partial / MODEL, metadata)
        save_tensors(optimizer, partial / OPTIMIZER)
        write_json(partial / STATE, {**state, "update": update})
        write_json(partial / HASHES, {name: sha256_of(partial / name) for name in FILES})
    return path


def paths(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    found = (path for path in folder.glob("checkpoint-*") if path.name[11:].isdecimal())
    return sorted(found, key=update_of)


def checkpoint_path(folder: Path, update: int) -> Path:
    return folder / f"checkpoint-{update:07d}"


def update_of(path: Path) -> int:
    return int(path.name.removeprefix("checkpoint-"))


def read_state(path: Path) -> dict[str, Any]:
    """Verify a checkpoint and read its state.json; raises DamagedCheckpoint."""
    try:
        hashes = read_record(dict[str, str], path / HASHES)
        sums = {name: sha256_of(path / name) for name in FILES}
        state = read_json_object(path / STATE, ("fingerprint", "update"))
    except (FileNotFoundError, UserError) as error:
        raise DamagedCheckpoint(f"{path} is damaged ({HASHES}: {error})") from None
    for name in FILES:
        if sums[name] != hashes.get(name):
            raise DamagedCheckpoint(f"{path} is damaged ({name} does not match {HASHES})")
    return state


def load(path: Path) -> Checkpoint:
    """Verify and load a checkpoint; raises DamagedCheckpoint."""
    with name_in_errors(path):
        state = read_state(path)
        model, optimizer = load_file(path / MODEL), load_file(path / OPTIMIZER)
    return Checkpoint(state["update"], model, optimizer, state)


def load_latest(folder: Path) -> Checkpoint | None:
    """Load the newest intact checkpoint; damaged ones after it are renamed to damaged-*."""
    for unfinished in folder.glob(".checkpoint-*"):
        with name_in_errors(unfinished):
            shutil.rmtree(unfinished)
    for path in reversed(paths(folder)):
        try:
            return load(path)
        except DamagedCheckpoint as error:
            print(f"{error}: not used", file=sys.stderr)
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
    return None


def prune(folder: Path, settings: Train, ranking: Sequence[int], finished: bool) -> None:
    """Remove the checkpoints that the settings do not keep.

    `ranking`: the validated updates, best first. The newest checkpoint is always kept, to resume
    from. If it is irregular (saved on SIGTERM), the next call removes it; the last one of a
    `finished` training counts as regular.

    The best are chosen among the existing checkpoints, and are nevertheless the best of all: for
    each removed checkpoint, `keep_best` better ones existed.
    """
    existing = {update_of(path): path for path in paths(folder)}
    newest = max(existing, default=0)
    ends = {newest} if finished else set()
    regular = [
        update for update in existing if update % settings.save_interval == 0 or update in ends
    ]
    best = [update for update in ranking if update in existing]
    interval = settings.keep_interval
    milestones = [update for update in existing if interval and update % interval == 0]
    kept = {*regular[-settings.keep_last :], *best[: settings.keep_best], *milestones, newest}
    for update in existing.keys() - kept:
        # renamed first: a partly removed folder must not look like a checkpoint
        gone = existing[update].rename(folder / f".{existing[update].name}.gone")
        with name_in_errors(gone):
            shutil.rmtree(gone)


class DamagedCheckpoint(UserError):
    """A checkpoint is incomplete or has changed."""


def save_tensors(tensors: _Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name as safetensors."""
    copies = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    with name_in_errors(path):
        save_file(copies, path, metadata)
