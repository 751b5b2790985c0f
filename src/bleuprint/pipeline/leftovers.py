"""Results of systems, corpora and seeds that params.yaml no longer names.

DVC leaves the outputs of removed rows and columns on disk. Those below folders that other stages
depend on would change the folders' hashes. `move_leftovers` moves them away, so that dvc.lock is
the same as if they had never existed.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.references import shared_folders
from bleuprint.runtime.errors import print_message

_REMOVED = Path("work", "removed")
# Folders of bleuprint 1.0 that have another name now; the first has results of external systems.
_OF_1_0 = (
    Path("results/outside"),
    Path("data/ledgers"),
    Path("data/statistics"),
    Path("data/tests"),
)
# The folders that the stage report depends on.
OF_REPORT = ("results", "data/filter_stats", "data/split", "data/corpus_stats", "data/test_stats")


def move_leftovers(settings: Settings, root: Path = Path()) -> None:
    """Move what stages depend on and params.yaml does not name to work/removed."""
    moved = []
    for path in _outputs(settings, root):
        target = root / _REMOVED / path
        shutil.rmtree(target, ignore_errors=True)
        if any(each.is_file() for each in (root / path, *(root / path).rglob("*"))):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(root / path, target)  # work may be on another disk
            moved.append(path)
        else:  # dvc checkout leaves such a folder
            shutil.rmtree(root / path)
        for folder in list(path.parents)[:-1]:
            if not any((root / folder).iterdir()):
                (root / folder).rmdir()
    if moved:
        print_message(
            f"not in params.yaml, moved to {_REMOVED}: {', '.join(map(str, moved))}", "note"
        )


def _outputs(settings: Settings, root: Path) -> Iterator[Path]:
    """The outputs of stages that are no longer in the graph, below folders that others read."""
    yield from _results(settings, root)
    yield from _models(settings, root)
    systems = list(settings.all_systems)
    references = settings.references()
    folders = shared_folders(settings.corpora, systems, settings.seeds, references)
    for folder, outputs in folders.items():
        for path in _found(root, f"{folder}/*"):
            if path not in outputs:
                yield path
    yield from _of_1_0(settings, root)
    for folder in map(Path, OF_REPORT[1:]):
        for path in _found(root, f"{folder}/*"):
            if path.name not in settings.corpora:
                yield path


def _results(settings: Settings, root: Path) -> Iterator[Path]:
    """The results of runs that params.yaml does not name."""
    for path in _found(root, "results/*/*/*"):
        if _is_unnamed(path, settings):
            yield path


def _of_1_0(settings: Settings, root: Path) -> Iterator[Path]:
    """The folders of bleuprint 1.0 that are here, except those of a system of this name."""
    for folder in _OF_1_0:
        is_of_system = folder.parts[0] == "results" and _is_system(folder.name, settings)
        if (root / folder).exists() and not is_of_system:
            yield folder


def _models(settings: Settings, root: Path) -> Iterator[Path]:
    """Models that are not named of trainings that others need: stages depend on all their seeds."""
    for needed in {reference.needed for reference in settings.references()}:
        if needed.system:
            for path in _found(root, f"models/{needed.system}/{needed.corpus}/*"):
                if _is_unnamed(path, settings):
                    yield path


def _is_unnamed(path: Path, settings: Settings) -> bool:
    """Whether a folder KIND/SYSTEM/CORPUS/SEED is of a run that params.yaml does not name.

    Cells that are left out have outputs, too (stage_args).
    """
    _, system, corpus, seed = path.parts
    if not seed.isdecimal():
        return False
    is_named = corpus in settings.corpora and seed in map(str, settings.seeds)
    return not (is_named and _is_system(system, settings))


def _is_system(name: str, settings: Settings) -> bool:
    """Whether params.yaml names a system."""
    return name in settings.all_systems


def _found(root: Path, pattern: str) -> list[Path]:
    """The files and folders that match a pattern, relative to the project's folder."""
    return sorted(path.relative_to(root) for path in root.glob(pattern))
