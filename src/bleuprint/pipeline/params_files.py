"""Params files that stages write: what DVC is to compare by corpus or cell, and params.yaml lacks.

reports/overrides.json has the settings that systems have on single corpora. reports/inputs.json has
the MD5 of each corpus's files in inputs/: as a dependency, the folder would make the text of every
corpus out of date with each new file.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import INPUTS, OVERRIDES
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.runtime import environment
from bleuprint.runtime.files import write_json


def input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str | None]]:
    """The MD5 of each file in inputs/ by corpus and path; None for a file that is not here.

    DVC computes it once for each state of a file. In DVC's copy of the project for an experiment,
    which has no files that git ignores, it is that of the project's file.
    """
    from dvc.fs import localfs
    from dvc_data.hashfile.hash import hash_file

    paths = {
        name: sorted({file.path for file in corpus.files.sides().values() if file.path})
        for name, corpus in settings.corpora.items()
    }
    if not any(paths.values()):
        return {name: {} for name in paths}
    with open_repo(root) as repo:

        def md5(path: str) -> str | None:
            for file in (root / path, environment.root() / path):
                if file.is_file():
                    _, found = hash_file(str(file.resolve()), localfs, "md5", state=repo.state)
                    return str(found.value)
            return None

        return {name: {path: md5(path) for path in of} for name, of in paths.items()}


def contents(settings: Settings, root: Path = Path()) -> dict[Path, Mapping[str, Any]]:
    """What the files contain if their stages run now."""
    return {OVERRIDES: settings.overrides(), INPUTS: input_files(settings, root)}


@contextmanager
def current_params(root: Path) -> Iterator[None]:
    """Write the files as they are to be for the duration of the block, for DVC to read.

    Afterwards they and their modification times are restored: otherwise Snakemake would take the
    stages that write them for up to date.
    """
    with ExitStack() as stack:
        for path, content in contents(load(root / "params.yaml"), root).items():
            stack.enter_context(_written(root / path, content))
        yield


@contextmanager
def _written(path: Path, content: Mapping[str, Any]) -> Iterator[None]:
    before = (path.read_bytes(), path.stat().st_mtime_ns) if path.exists() else None
    write_json(path, content)
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before[0])
            os.utime(path, ns=(before[1], before[1]))
