"""Checkpoints of a training: folders that appear whole, are checked, and pickle nothing.

A checkpoint is checkpoint-UPDATE/ with model.safetensors (named weights), optimizer.safetensors
(Adam's moments, flat) and state.json (everything else, with the SHA-256 of the other two). No
random state is in it because there is none to keep: every batch seeds the generator from the
run's seed, the update and the batch's place in it.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bleuprint.errors import UserError
from bleuprint.files import read_json, sha256_of, whole_folder, write_json

FORMAT = 1

MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint as read: `state` is what was saved beside the tensors."""

    update: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The named weights, shared ones once (under their first name)."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `tensors` into the model; raises ValueError if names or shapes differ."""
    own = weights(model)
    if own.keys() != tensors.keys():
        odd = sorted(own.keys() ^ tensors.keys())
        raise ValueError(f"weights do not belong to this model: {', '.join(odd[:3])}")
    for name, tensor in tensors.items():
        if own[name].shape != tensor.shape:
            shapes = f"{tuple(tensor.shape)} instead of {tuple(own[name].shape)}"
            raise ValueError(f"weights do not belong to this model: {name} is {shapes}")
        own[name].copy_(tensor)


def save(
    folder: Path,
    update: int,
    model: dict[str, Tensor],
    optimizer: dict[str, Tensor],
    state: dict[str, Any],
) -> Path:
    """Write checkpoint-UPDATE into `folder`, whole or not at all."""
    path = folder / f"checkpoint-{update:07d}"
    with whole_folder(path) as partial:
        _save_tensors(model, partial / MODEL)
        _save_tensors(optimizer, partial / OPTIMIZER)
        sums = {name: sha256_of(partial / name) for name in (MODEL, OPTIMIZER)}
        content = {"format": FORMAT, "update": update, "sha256": sums, **state}
        write_json(partial / STATE, content)
    return path


def latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint in `folder`; None if there is none."""
    paths = sorted(folder.glob("checkpoint-*"))
    return _load(paths[-1]) if paths else None


def drop_damaged(folder: Path) -> None:
    """Put aside checkpoints that were cut short or altered, newest first, until one is whole."""
    for unfinished in folder.glob(".checkpoint-*"):
        shutil.rmtree(unfinished)
    for path in sorted(folder.glob("checkpoint-*"), reverse=True):
        try:
            _load(path)
            return
        except _Damaged as error:
            print(f"{path} is damaged ({error}): going back to the one before", file=sys.stderr)
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)


def prune(folder: Path, keep: int, every: int) -> None:
    """Remove checkpoints beyond the newest `keep` of those made every `every` updates.

    One that was saved in between, when training was told to stop, goes once a newer one is there.
    """
    paths = sorted(folder.glob("checkpoint-*"))
    regular = [path for path in paths if update_of(path) % every == 0]
    kept = {*regular[-keep:], *paths[-1:]}
    for path in paths:
        if path not in kept:
            shutil.rmtree(path)


def update_of(path: Path) -> int:
    return int(path.name.removeprefix("checkpoint-"))


class _Damaged(Exception):
    pass


def _load(path: Path) -> Checkpoint:
    try:
        state = read_json(path / STATE)
        if state["format"] > FORMAT:
            raise UserError(
                f"{path}: checkpoint of format {state['format']}; this version reads {FORMAT}"
            )
        for name, expected in state["sha256"].items():
            if sha256_of(path / name) != expected:
                raise _Damaged(f"{name} is not what was saved")
        return Checkpoint(
            state["update"], load_file(path / MODEL), load_file(path / OPTIMIZER), state
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise _Damaged(str(error)) from None


def _save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file({name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # a full disk, which safetensors does not call an OSError
        raise UserError(f"{path}: cannot be written: {error}") from None
