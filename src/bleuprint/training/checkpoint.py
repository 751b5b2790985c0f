"""Checkpoints of a training: folders that appear whole, are checked, and pickle nothing.

A checkpoint is checkpoint-UPDATE/ with model.safetensors (named weights, the fingerprint of their
training in the header), optimizer.safetensors (Adam's moments, flat) and state.json (everything
else, with the SHA-256 of all three). No random state is in it because there is none to keep: every
batch seeds the generator from the run's seed, the update and the batch's place in it.
"""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bleuprint.config.system import Keep
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of, whole_folder, write_json

FORMAT = 3
_NAME = re.compile(r"checkpoint-\d{7,}")

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint as read: `state` is what was saved beside the tensors."""

    update: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


def save(
    folder: Path,
    update: int,
    model: dict[str, Tensor],
    optimizer: dict[str, Tensor],
    state: dict[str, Any],
) -> Path:
    """Write checkpoint-UPDATE into `folder`, whole or not at all; `state` has the fingerprint."""
    path = path_of(folder, update)
    # one key: safetensors writes several in an order that differs from run to run
    mark = {"fingerprint": state["fingerprint"]}
    with whole_folder(path) as partial:
        _save_tensors(model, partial / MODEL, mark)
        _save_tensors(optimizer, partial / OPTIMIZER)
        sums = {name: sha256_of(partial / name) for name in (MODEL, OPTIMIZER)}
        content = {"format": FORMAT, "update": update, "sha256": sums, **state}
        sums[STATE] = _sum_of(content)
        write_json(partial / STATE, content)
    return path


def paths(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first."""
    found = (path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name))
    return sorted(found, key=update_of)


def path_of(folder: Path, update: int) -> Path:
    return folder / f"checkpoint-{update:07d}"


def update_of(path: Path) -> int:
    return int(path.name.removeprefix("checkpoint-"))


def state_of(path: Path) -> dict[str, Any]:
    """What was saved in a checkpoint beside the tensors; raises Damaged if it is not that."""
    try:
        state: dict[str, Any] = read_json(path / STATE)
        if state["format"] != FORMAT:
            raise UserError(
                f"{path}: checkpoint of format {state['format']}; this version reads {FORMAT}"
            )
        if state["sha256"].pop(STATE) != _sum_of(state):
            raise Damaged(path, f"{STATE} is not what was saved")
        if state["update"] != update_of(path):
            raise Damaged(path, f"it is that of update {state['update']}")
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise Damaged(path, f"{STATE}: {error}") from None
    return state


def copy_model(path: Path, target: Path) -> None:
    """Copy a checkpoint's weights to a file; raises Damaged if they are not what was saved."""
    state = state_of(path)
    try:
        shutil.copyfile(path / MODEL, target)
    except FileNotFoundError as error:
        raise Damaged(path, str(error)) from None
    _check(path, MODEL, target, state)


def latest(folder: Path) -> Checkpoint | None:
    """The newest whole checkpoint; those after it, cut short or altered, are put aside."""
    for unfinished in folder.glob(".checkpoint-*"):
        shutil.rmtree(unfinished)
    there = paths(folder)
    for path in reversed(there):
        try:
            return load(path)
        except Damaged as error:
            left = "going back to the one before" if path != there[0] else "starting afresh"
            print(f"{error}: {left}", file=sys.stderr)
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
    return None


def prune(folder: Path, keep: Keep, every: int, ranking: Sequence[int], finished: bool) -> None:
    """Remove the checkpoints that need not stay; regular ones are made every `every` updates.

    `ranking`: the validated updates, best first. The newest one always stays, to resume from. If it
    is irregular, saved when training was told to stop, it goes once a newer one is there; what a
    `finished` training ends with counts as regular.

    The best at each call are found among those still there, and are nevertheless the best of all:
    one that was removed had as many better ones before it, and always will.
    """
    there = {update_of(path): path for path in paths(folder)}
    newest = max(there, default=0)
    ends = {newest} if finished else set()
    regular = [update for update in there if update % every == 0 or update in ends]
    best = [update for update in ranking if update in there]
    milestones = [update for update in there if keep.every and update % keep.every == 0]
    kept = {*regular[-keep.last :], *best[: keep.best], *milestones, newest}
    for update in there.keys() - kept:
        # out of sight in one step: what is left of one when killed looks like no checkpoint
        gone = there[update].rename(folder / f".{there[update].name}.gone")
        shutil.rmtree(gone)


class Damaged(UserError):
    """A checkpoint is not what was saved."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")


def load(path: Path) -> Checkpoint:
    """The checkpoint in a folder; raises Damaged if it is not what was saved."""
    state = state_of(path)
    try:
        for name in (MODEL, OPTIMIZER):
            _check(path, name, path / name, state)
        return Checkpoint(
            state["update"], load_file(path / MODEL), load_file(path / OPTIMIZER), state
        )
    except FileNotFoundError as error:
        raise Damaged(path, str(error)) from None


def _check(path: Path, name: str, file: Path, state: dict[str, Any]) -> None:
    """Raise Damaged unless `file` is the checkpoint's file of that name, or a copy of it."""
    if sha256_of(file) != state["sha256"][name]:
        raise Damaged(path, f"{name} is not what was saved")


def _sum_of(state: dict[str, Any]) -> str:
    """The SHA-256 of what is in state.json, but for this sum itself."""
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def _save_tensors(
    tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    copies = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
    try:
        save_file(copies, path, metadata)
    except SafetensorError as error:  # a full disk, which safetensors does not call an OSError
        raise UserError(f"{path}: cannot be written: {error}") from None
