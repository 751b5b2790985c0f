"""The stage resolve: reports/resolved.json, what DVC and Snakemake compare instead of params.yaml.

It has the settings of every corpus and cell after inheritance and defaults; the MD5 of each
corpus's files in inputs/, since the folder as a dependency would make every corpus out of date with
each new file; and the fingerprint of each stage's code, in which comments do not count.

DVC takes the names of systems from params.yaml, and those that an `over` makes from .dvc/rows.json,
before any stage runs.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import RESOLVED, ROWS
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.runtime import environment
from bleuprint.runtime.closure import code_fingerprints
from bleuprint.runtime.files import json_text, write_json
from bleuprint.training.start_files import add_sums


def resolve(root: Path = Path()) -> bool:
    """Write reports/resolved.json and .dvc/rows.json; returns whether the latter has changed.

    Raises UserError at a mistake in params.yaml.
    """
    settings = load(root / "params.yaml")
    _write_changed(root / RESOLVED, resolved(settings, root))
    return write_rows(settings, root)


def write_rows(settings: Settings, root: Path = Path()) -> bool:
    """Write .dvc/rows.json; returns whether it has changed."""
    found: dict[str, dict[str, Any]] = {"systems": {}, "tuned": {}}
    for name in chain.from_iterable((settings.sweeps or {}).values()):
        start = settings.system(name).train.from_
        if start and start.cell:
            system, corpus = start.cell
            found["tuned"][name] = {"train": {"from": {"system": system, "corpus": corpus}}}
        else:
            found["systems"][name] = {}
    return _write_changed(root / ROWS, found)


def _write_changed(path: Path, content: Mapping[str, Any]) -> bool:
    """Write a file unless it says the same, and so keeps its modification time."""
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") == json_text(content):
        return False
    write_json(path, content)
    return True


def resolved(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """The content of reports/resolved.json by the present settings, code and files."""
    code = code_fingerprints(root)
    content = settings.resolved()
    add_sums(content["cells"], root)
    return {**content, "inputs": input_files(settings, root), "code": code}


def input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str]]:
    """The MD5 of each file in inputs/ by corpus and path, without files that are not there.

    DVC computes it once for each state of a file. In DVC's copy of the project for an experiment,
    which has no files that git ignores, it is that of the project's file.
    """
    sums: dict[str, dict[str, str]] = {name: {} for name in settings.corpora}
    found = [
        (name, path, place / path)
        for name, corpus in settings.corpora.items()
        for path in sorted({file.path for file in corpus.files.sides().values() if file.path})
        for place in (environment.root(), root)  # the last one counts
        if (place / path).is_file()
    ]
    if found:
        from dvc.fs import localfs
        from dvc_data.hashfile.hash import hash_file

        with open_repo(root) as repo:
            for name, path, file in found:
                _, md5 = hash_file(str(file.resolve()), localfs, "md5", state=repo.state)
                sums[name][path] = str(md5.value)
    return sums
