"""Files of systems, corpora and seeds that params.yaml no longer names: `bleuprint clean`.

DVC leaves the outputs of removed rows and columns on disk. Those below folders that the report
depends on would change its hash: `set_aside` moves them away, so that dvc.lock is the same as if
they had never been there.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from filelock import Timeout

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.outside import OUTSIDE
from bleuprint.runtime.errors import say
from bleuprint.runtime.locks import FileLock
from bleuprint.tracking.cell_results import cells_of

_WORK = Path("work")
_REMOVED = _WORK / "removed"
# The folders that the stage report depends on.
OF_REPORT = ("results", "data/ledgers", "data/split", "data/statistics", "data/tests")


def set_aside(settings: Settings, root: Path = Path()) -> None:
    """Move what stages depend on and params.yaml does not name to work/removed."""
    moved = []
    for path in _outputs(settings, root):
        made = path.name.startswith("made.")  # below a folder that clean depends on
        if not (made or str(path).startswith(OF_REPORT)):
            continue
        if not any(each.is_file() for each in (root / path).rglob("*")):  # dvc checkout leaves it
            remove([path], root)
            continue
        target = root / _REMOVED / path
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        (root / path).rename(target)
        moved.append(path)
        _remove_empty_parents(path, root)
    if moved:
        names = ", ".join(map(str, moved))
        say(f"not in params.yaml, moved to {_REMOVED} (bleuprint clean): {names}", "note")


def leftovers(settings: Settings, root: Path = Path()) -> list[tuple[Path, int]]:
    """What is not in params.yaml, with its size in bytes: outputs, trainings, downloads, shards."""
    found = [*_outputs(settings, root), *_trainings(settings, root), *_downloads(settings, root)]
    for path in ("shards/*/*", "removed"):
        found += [each for each in below(root, f"work/{path}") if each.name not in settings.corpora]
    return [(path, size_of(root / path)) for path in found]


def remove(places: Iterable[Path], root: Path = Path()) -> None:
    """Remove files and folders; their parents too, once they are empty."""
    for path in places:
        place = root / path
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        _remove_empty_parents(path, root)


def training_lock(folder: Path) -> Path:
    """The file that is locked while a process trains; one for all cells with the same training."""
    return folder.with_name(f"{folder.suffix}.lock")


def is_locked(lock: Path) -> bool:
    """Whether a process holds a lock, if there is one."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


def _outputs(settings: Settings, root: Path) -> Iterator[Path]:
    """The outputs of stages that are no longer in the graph."""
    # those of cells that are left out are outputs, too (stage_args)
    every = product(settings.systems, settings.corpora, map(str, settings.seeds))
    named = set(every)
    rows = set() if OUTSIDE in settings.systems else set(below(root, f"results/{OUTSIDE}/*"))
    for folder in ("models", "results", "timings"):
        for path in below(root, f"{folder}/*/*/*"):
            if path.parent not in rows and path.parts[1:] not in named and path.name.isdecimal():
                yield path
    corpora = settings.outside or {}
    scored = {paths.outside_comet(corpus) for corpus in corpora if settings.comet}
    yield from sorted(rows - scored - {paths.outside(corpus) for corpus in corpora})
    for path in below(root, "data/*/*"):
        if path.name not in settings.corpora:
            yield path
    texts = settings.made_texts or {}
    made = {paths.made_text(text.part_of, name) for name, text in texts.items()}
    for path in below(root, "data/raw/*/made.*"):
        if path.parts[2] in settings.corpora and path not in made:
            yield path


def _trainings(settings: Settings, root: Path) -> Iterator[Path]:
    """Checkpoints that no process is writing, but for the latest training of each cell."""
    named = {".".join(map(str, cell)) for cell in cells_of(settings)}
    trainings = below(root, "work/trainings/[!.]*")
    latest = {path.stem: path for path in sorted(trainings, key=lambda path: _saved(root / path))}
    for path in trainings:
        is_latest = path.stem in named and path == latest[path.stem]
        if not is_latest and not is_locked(training_lock(root / path)):
            yield path


def _saved(folder: Path) -> float:
    """When the newest checkpoint in a folder was written."""
    return max((file.stat().st_mtime for file in folder.glob("[!.]*")), default=0.0)


def _downloads(settings: Settings, root: Path) -> Iterator[Path]:
    """Downloads, by the hash of their URL."""
    urls = {
        file.url
        for corpus in settings.corpora.values()
        for file in corpus.files.sides().values()
        if file.url is not None
    }
    named = {hashlib.sha256(url.encode()).hexdigest() for url in urls}
    for path in below(root, "work/downloads/*"):
        name = path.name.partition(".")[0]
        if len(name) == 64 and name not in named:
            yield path


def below(root: Path, pattern: str) -> list[Path]:
    """Paths that match a pattern, relative to `root`."""
    return sorted(path.relative_to(root) for path in root.glob(pattern))


def size_of(path: Path) -> int:
    """The size in bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def _remove_empty_parents(path: Path, root: Path) -> None:
    for folder in list(path.parents)[:-1]:
        if any((root / folder).iterdir()):
            return
        (root / folder).rmdir()
