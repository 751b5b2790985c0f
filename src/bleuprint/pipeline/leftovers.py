"""Moves away the results of systems, corpora and seeds that params.yaml no longer names.

DVC leaves the outputs of removed runs on disk. Where they lie in a folder that another stage
depends on, they would change the hash of that folder. `move_leftovers` moves them to work/removed,
so that dvc.lock is the same as if they had never existed.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.references import shared_folders
from bleuprint.runtime.errors import print_message

_REMOVED = Path("work", "removed")
# Folders of bleuprint 1.0 that have another name now. The first one contained the results of
# external systems.
_FOLDERS_OF_1_0 = (
    Path("results/outside"),
    Path("data/ledgers"),
    Path("data/statistics"),
    Path("data/tests"),
)
# The folders that the stage report depends on. All but the first have a file for each corpus.
REPORT_FOLDERS = (
    "results",
    "data/filter_stats",
    "data/split",
    "data/corpus_stats",
    "data/test_stats",
)


def move_leftovers(settings: Settings, root: Path = Path()) -> None:
    """Move the outputs that params.yaml does not name and that other stages would read.

    Prints a note that names them.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.
    """
    moved = []
    for path in _leftovers(settings, root):
        target = root / _REMOVED / path
        shutil.rmtree(target, ignore_errors=True)
        if _has_files(root / path):
            target.parent.mkdir(parents=True, exist_ok=True)
            # Not `rename`, since work may be on another disk.
            shutil.move(root / path, target)
            moved.append(path)
        else:
            # `dvc checkout` leaves an empty folder, which is not worth a note.
            shutil.rmtree(root / path)
        _remove_empty_parents(path, root)
    if moved:
        names = ", ".join(str(path) for path in moved)
        print_message(f"not in params.yaml, moved to {_REMOVED}: {names}", "note")


def _has_files(path: Path) -> bool:
    """Whether a path is a file, or a folder with a file in it or below it."""
    return path.is_file() or any(inner.is_file() for inner in path.rglob("*"))


def _remove_empty_parents(path: Path, root: Path) -> None:
    """Remove the folders above a path that are empty now, up to the project's folder.

    Args:
        path: The path, relative to the project's folder.
        root: The project's folder.
    """
    # The last of the parents is the project's folder itself.
    for folder in list(path.parents)[:-1]:
        if not any((root / folder).iterdir()):
            (root / folder).rmdir()


def _leftovers(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the outputs that no stage writes any longer and that another stage would read."""
    yield from _unnamed_runs("results/*/*/*", settings, root)
    yield from _unnamed_models(settings, root)
    yield from _unnamed_shared_outputs(settings, root)
    yield from _folders_of_1_0(settings, root)
    for folder in REPORT_FOLDERS[1:]:
        for path in _matching(root, f"{folder}/*"):
            if path.name not in settings.corpora:
                yield path


def _unnamed_models(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield models of seeds that params.yaml does not name, if stages depend on all seeds.

    That is so for a model with which other systems start or which translates synthetic text.
    """
    needed_entries = {reference.needed for reference in settings.references()}
    for needed in needed_entries:
        if needed.system:
            pattern = f"models/{needed.system}/{needed.corpus}/*"
            yield from _unnamed_runs(pattern, settings, root)


def _unnamed_shared_outputs(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield what lies in folders that several stages write to, and no stage writes any longer."""
    outputs_by_folder = shared_folders(
        settings.corpora,
        list(settings.all_systems),
        settings.seeds,
        settings.references(),
    )
    for folder, outputs in outputs_by_folder.items():
        for path in _matching(root, f"{folder}/*"):
            if path not in outputs:
                yield path


def _folders_of_1_0(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the folders of bleuprint 1.0 that exist.

    A folder of results stays if params.yaml names a system like it, such as `outside`.
    """
    for folder in _FOLDERS_OF_1_0:
        is_of_system = folder.parts[0] == "results" and folder.name in settings.all_systems
        if (root / folder).exists() and not is_of_system:
            yield folder


def _unnamed_runs(pattern: str, settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the folders FOLDER/SYSTEM/CORPUS/SEED of runs that params.yaml does not name.

    The folders of an excluded run stay, since its stages write empty outputs (`stage_args.py`).

    Args:
        pattern: The folders to search, as for `Path.glob`.
        settings: The settings in params.yaml.
        root: The project's folder.
    """
    seeds = {str(seed) for seed in settings.seeds}
    for path in _matching(root, pattern):
        _, system, corpus, seed = path.parts
        is_named = system in settings.all_systems and corpus in settings.corpora and seed in seeds
        if seed.isdecimal() and not is_named:
            yield path


def _matching(root: Path, pattern: str) -> list[Path]:
    """Return the files and folders that match a pattern, relative to the project's folder."""
    return sorted(path.relative_to(root) for path in root.glob(pattern))
