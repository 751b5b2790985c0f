"""Results of systems, corpora and seeds that params.yaml no longer names.

DVC leaves the outputs of removed rows and columns on disk. Those below folders that the report
depends on would change its hash: `set_aside` moves them away, so that dvc.lock is the same as if
they had never been there.
"""

import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.outside import OUTSIDE
from bleuprint.runtime.errors import say

_REMOVED = Path("work", "removed")
# The folders that the stage report depends on.
OF_REPORT = ("results", "data/ledgers", "data/split", "data/statistics", "data/tests")


def set_aside(settings: Settings, root: Path = Path()) -> None:
    """Move what stages depend on and params.yaml does not name to work/removed."""
    moved = []
    for path in _outputs(settings, root):
        target = root / _REMOVED / path
        shutil.rmtree(target, ignore_errors=True)
        if any(each.is_file() for each in (root / path).rglob("*")):
            target.parent.mkdir(parents=True, exist_ok=True)
            (root / path).rename(target)
            moved.append(path)
        else:  # dvc checkout leaves such a folder
            shutil.rmtree(root / path)
        _remove_empty_parents(path, root)
    if moved:
        say(f"not in params.yaml, moved to {_REMOVED}: {', '.join(map(str, moved))}", "note")


def _outputs(settings: Settings, root: Path) -> Iterator[Path]:
    """The outputs of stages that are no longer in the graph, below folders that others read."""
    # those of cells that are left out are outputs, too (stage_args)
    named = set(product(settings.systems, settings.corpora, map(str, settings.seeds)))
    rows = set() if OUTSIDE in settings.systems else set(_below(root, f"results/{OUTSIDE}/*"))
    for path in _below(root, "results/*/*/*"):
        if path.parent not in rows and path.parts[1:] not in named and path.name.isdecimal():
            yield path
    corpora = settings.outside or {}
    scored = {paths.outside_comet(corpus) for corpus in corpora if settings.comet}
    yield from sorted(rows - scored - {paths.outside(corpus) for corpus in corpora})
    for folder in OF_REPORT[1:]:
        for path in _below(root, f"{folder}/*"):
            if path.name not in settings.corpora:
                yield path
    texts = settings.made_texts or {}
    made = {paths.made_text(text.part_of, name) for name, text in texts.items()}
    for path in _below(root, "data/raw/*/made.*"):
        if path not in made:
            yield path


def _below(root: Path, pattern: str) -> list[Path]:
    """Paths that match a pattern, relative to `root`."""
    return sorted(path.relative_to(root) for path in root.glob(pattern))


def _remove_empty_parents(path: Path, root: Path) -> None:
    for folder in list(path.parents)[:-1]:
        if any((root / folder).iterdir()):
            return
        (root / folder).rmdir()
