"""The stage resolve: reports/resolved.json, what DVC and Snakemake compare instead of params.yaml.

It has the settings of every corpus and run after inheritance and defaults; the MD5 of each
corpus's files in inputs/, since the folder as a dependency would make every corpus out of date with
each new file; and the fingerprint of each stage's code, in which comments do not count.
"""

from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.runtime import environment
from bleuprint.runtime.closure import code_fingerprints
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import format_json, path_on_disk, read_bytes, write_json
from bleuprint.training.init_weights import add_weight_hashes

# The folders below which stages have outputs in DVC's cache.
_OF_OUTPUTS = ("data", "models", "results")


def write_resolved(root: Path = Path()) -> None:
    """Write reports/resolved.json, unless it would stay the same.

    Raises UserError at a mistake in params.yaml.
    """
    content = resolved_content(load_settings(root / "params.yaml"), root)
    path = root / RESOLVED
    # an unchanged file keeps its modification time, which Snakemake compares
    is_unchanged = path.is_file() and read_bytes(path) == format_json(content).encode()
    if not is_unchanged:
        write_json(path, content)


def check_no_links(root: Path = Path()) -> None:
    """Raise UserError if a folder of outputs is a link: DVC would fail after a stage has run."""
    folders = (root / name for name in _OF_OUTPUTS)
    places = (place for folder in folders for place in (folder, *sorted(folder.glob("*"))))
    for place in places:
        if place.is_symlink():
            name, target = place.relative_to(root), place.readlink()
            raise UserError(
                f"{name} is a link to {target}, and DVC keeps outputs only in folders of the "
                f"project. Replace the link by a folder: rm {name}. To use another disk, move "
                "DVC's cache there: dvc cache dir --local DISK/cache; dvc config --local "
                "cache.type symlink. work/ may be a link"
            )


def resolved_content(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the content of reports/resolved.json by the present settings, code and files.

    Raises UserError where DVC could not keep the outputs of the stages.
    """
    code = code_fingerprints(root)
    content = resolved_settings(settings, root)
    return {**content, "inputs": input_files(settings, root), "code": code}


def resolved_settings(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the settings of reports/resolved.json, with the hashes of weights to start from.

    Raises UserError where DVC could not keep the outputs of the stages.
    """
    check_no_links(root)
    content = settings.resolved()
    add_weight_hashes(content["runs"], root)
    return content


def input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str]]:
    """The MD5 of each file in inputs/ by corpus and path, without files that are not there.

    DVC computes it once for each state of a file. In DVC's copy of the project for an experiment,
    which has no files that git ignores, it is that of the project's file.
    """
    sums: dict[str, dict[str, str]] = {name: {} for name in settings.corpora}
    found = []
    for name, corpus in settings.corpora.items():
        paths = {file.path for file in corpus.files.files_by_name().values() if file.path}
        for path in sorted(paths):
            for place in (environment.project_root(), root):  # the last one counts
                file = path_on_disk(place / path)
                if file.is_file():
                    found.append((name, path, file))
    if found:
        from dvc.fs import localfs
        from dvc_data.hashfile.hash import hash_file

        with open_repo(root) as repo:
            for name, path, file in found:
                _, md5 = hash_file(str(file.resolve()), localfs, "md5", state=repo.state)
                sums[name][path] = str(md5.value)
    return sums
