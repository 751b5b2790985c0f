"""Whether a release is whole: its files by their sums, and by what its dvc.lock says of them.

Both protect against damage and careless edits, not against someone who renews both.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bleuprint.pipeline.dvc_lock import md5_of_folder
from bleuprint.pipeline.ro_crate import METADATA, changed_files
from bleuprint.runtime.schema import load_yaml

_PARAMS = "params.yaml"


def is_release(folder: Path) -> bool:
    """Whether a folder was written by `bleuprint release`: a project, too, may be cited."""
    return (folder / METADATA).exists() or (
        (folder / "CITATION.cff").exists() and not (folder / "src").exists()
    )


def problems_of(folder: Path) -> Iterator[str]:
    """A line for each file that is missing or was changed; UserError if metadata is damaged."""
    if not (folder / METADATA).exists():
        yield f"{folder / METADATA}: missing: whether files were changed is not known"
        return
    changed = list(changed_files(folder))
    yield from changed
    if not changed and (folder / "dvc.lock").exists():
        yield from _unlike_lock(folder)


def _unlike_lock(folder: Path) -> Iterator[str]:
    """The outputs of stages, and settings, that are not those of dvc.lock."""
    params = _plain(path) if (path := folder / _PARAMS).exists() else None
    for name, stage in _plain(folder / "dvc.lock")["stages"].items():
        for out in stage.get("outs", ()):
            path = folder / out["path"]
            if path.exists() and _md5(path) != out["md5"]:
                yield f"{path}: not as {name} made it, by dvc.lock"
        for key, value in stage.get("params", {}).get(_PARAMS, {}).items():
            if params is not None and _value(params, key) != value:
                yield f"{folder / _PARAMS}: {key} is not as {name} ran with it, by dvc.lock"


def _plain(path: Path) -> Any:
    """The content of a YAML file, with merged keys in their place."""
    load_yaml(path)  # which names a mistake
    return YAML(typ="safe").load(path)


def _value(params: Any, key: str) -> Any:
    """The value of a dotted key; None if there is none."""
    parts = key.split(".")
    return reduce(lambda at, part: at.get(part) if isinstance(at, Mapping) else None, parts, params)


def _md5(path: Path) -> str:
    """The hash that DVC gives a file or a folder."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "md5").hexdigest()
    files = {each.relative_to(path).as_posix(): each for each in path.rglob("*") if each.is_file()}
    return md5_of_folder({name: _md5(file) for name, file in files.items()})
