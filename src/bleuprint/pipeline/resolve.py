"""The stage resolve: reports/resolved.json, what DVC and Snakemake compare instead of params.yaml.

It has the settings of every corpus and cell after inheritance and defaults; the MD5 of each
corpus's files in inputs/, since the folder as a dependency would make every corpus out of date with
each new file; and the fingerprint of each stage's code, in which comments do not count.
"""

from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load
from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.runtime import environment
from bleuprint.runtime.closure import code_fingerprints
from bleuprint.runtime.files import json_text, write_json


def resolve(root: Path = Path()) -> None:
    """Write reports/resolved.json, and set aside the results of what params.yaml no longer names.

    An unchanged file is left as it is, with its modification time. Raises UserError at a mistake in
    params.yaml.
    """
    settings = load(root / "params.yaml")
    content, path = resolved(settings, root), root / RESOLVED
    set_aside(settings, root)
    text = json_text(content)
    if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
        write_json(path, content)


def resolved(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """The content of reports/resolved.json by the present settings, code and files."""
    code = code_fingerprints(root)
    return {**settings.resolved(), "inputs": input_files(settings, root), "code": code}


def input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str]]:
    """The MD5 of each file in inputs/ by corpus and path, without files that are not there.

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

        sums = {name: {path: md5(path) for path in of} for name, of in paths.items()}
    return {name: {path: md5 for path, md5 in of.items() if md5} for name, of in sums.items()}
