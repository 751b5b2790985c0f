"""The stage resolve: writes reports/resolved.json, which DVC compares instead of params.yaml.

The file contains:

- the settings of every corpus and run, after inheritance and defaults;
- the MD5 of each of the user's own files, by corpus. If stages depended on the folder inputs/, each
  new file in it would make every corpus out of date;
- the fingerprint of each stage's code, in which comments do not count.
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

# Stages write their outputs below these folders.
_OUTPUT_FOLDERS = ("data", "models", "results")


def write_resolved(root: Path = Path()) -> None:
    """Write reports/resolved.json, unless it would stay the same.

    Snakemake compares modification times, so an unchanged file keeps its own.

    Args:
        root: The project's folder.

    Raises:
        UserError: There is a mistake in params.yaml.
    """
    content = resolved_content(load_settings(root / "params.yaml"), root)
    path = root / RESOLVED
    is_unchanged = path.is_file() and read_bytes(path) == format_json(content).encode()
    if not is_unchanged:
        write_json(path, content)


def check_no_links(root: Path = Path()) -> None:
    """Raise UserError if a folder of outputs is a link: DVC would fail after a stage has run."""
    for folder_name in _OUTPUT_FOLDERS:
        folder = root / folder_name
        for path in (folder, *sorted(folder.glob("*"))):
            if path.is_symlink():
                name = path.relative_to(root)
                raise UserError(
                    f"{name} is a link to {path.readlink()}, and DVC keeps outputs only in folders "
                    f"of the project. Replace the link by a folder: rm {name}. To use another "
                    "disk, move DVC's cache there: dvc cache dir --local DISK/cache; dvc config "
                    "--local cache.type symlink. work/ may be a link"
                )


def resolved_content(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the content of reports/resolved.json for the present settings, code and files.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.

    Raises:
        UserError: A folder of outputs is a link.
    """
    code = code_fingerprints(root)
    content = resolved_settings(settings, root)
    content["inputs"] = input_files(settings, root)
    content["code"] = code
    return content


def resolved_settings(settings: Settings, root: Path = Path()) -> dict[str, Any]:
    """Return the settings for reports/resolved.json, with the hashes of weights to start from.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.

    Raises:
        UserError: A folder of outputs is a link.
    """
    check_no_links(root)
    content = settings.resolved()
    add_weight_hashes(content["runs"], root)
    return content


def input_files(settings: Settings, root: Path = Path()) -> dict[str, dict[str, str]]:
    """Return the MD5 of each of the user's own files, by corpus and path; missing ones excluded.

    DVC keeps the MD5 of a file until the file changes. `dvc exp run` may work in a copy of the
    project, without the files that Git ignores: then the file of the original project counts.

    Args:
        settings: The settings in params.yaml.
        root: The folder of the project, or of its copy.
    """
    md5_by_corpus: dict[str, dict[str, str]] = {name: {} for name in settings.corpora}
    files = []
    for corpus_name, corpus in settings.corpora.items():
        paths = {file.path for file in corpus.files.files_by_name().values() if file.path}
        for path in sorted(paths):
            # A file in the copy replaces the one of the original project, which is hashed first.
            for folder in (environment.project_root(), root):
                file = path_on_disk(folder / path)
                if file.is_file():
                    files.append((corpus_name, path, file))
    if files:
        from dvc.fs import localfs
        from dvc_data.hashfile.hash import hash_file

        with open_repo(root) as repo:
            for corpus_name, path, file in files:
                _, md5 = hash_file(str(file.resolve()), localfs, "md5", state=repo.state)
                md5_by_corpus[corpus_name][path] = str(md5.value)
    return md5_by_corpus
