"""Results of systems, corpora and seeds that params.yaml no longer names.

DVC leaves the outputs of removed rows and columns on disk. Those below folders that other stages
depend on would change the folders' hashes: `set_aside` moves them away, so that dvc.lock is the
same as if they had never been there.
"""

import shutil
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.runtime.errors import say

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


def set_aside(settings: Settings, root: Path = Path()) -> None:
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
        say(f"not in params.yaml, moved to {_REMOVED}: {', '.join(map(str, moved))}", "note")


def _outputs(settings: Settings, root: Path) -> Iterator[Path]:
    """The outputs of stages that are no longer in the graph, below folders that others read."""

    def below(pattern: str) -> list[Path]:
        return sorted(path.relative_to(root) for path in root.glob(pattern))

    # those of runs that are left out are outputs, too (stage_args)
    systems = (*settings.runs, *settings.external)
    named = set(product(systems, settings.corpora, map(str, settings.seeds)))
    for path in below("results/*/*/*"):
        if path.parts[1:] not in named and path.name.isdecimal():
            yield path
    rows_of = (cell for row in settings.runs.values() for cell in row.values() if cell)
    starts = {cell.train.init_from.cell for cell in rows_of if cell.train.init_from}
    for path in below("models/*/*/*"):  # init_weights depends on the folder of all seeds
        if path.parts[1:3] in starts and path.parts[1:] not in named and path.name.isdecimal():
            yield path
    texts = settings.synthetic or {}
    kept = {paths.synthetic_text(text.part_of, name) for name, text in texts.items()}
    kept |= {paths.fresh(name) for name in systems}
    kept |= {paths.init_weights(name) for name in _started_here(settings)}
    found = below("data/raw/*/synthetic.*") + below("data/raw/*/made.*")  # the name in 1.0
    for name in systems:
        found += below(f"data/starts/{name}/*")
    for name, corpus in settings.corpora.items():
        kept |= {paths.vocabulary(name, of) for of in (None, corpus.vocabulary.of)}
        found += below(f"data/bpe/{name}/*")
    yield from (path for path in found if path not in kept)
    yield from _of_1_0(systems, root)
    for folder in OF_REPORT[1:]:
        yield from (path for path in below(f"{folder}/*") if path.name not in settings.corpora)


def _of_1_0(systems: Collection[str], root: Path) -> Iterator[Path]:
    """The folders of bleuprint 1.0 that are here, but for those of a system of this name."""
    for folder in _OF_1_0:
        if (root / folder).exists() and not (
            folder.parts[0] == "results" and folder.name in systems
        ):
            yield folder


def _started_here(settings: Settings) -> set[str]:
    """The systems that start from a training of the same experiment."""
    found = set()
    for name in settings.systems:
        init_from = settings.system(name).train.init_from
        if init_from is not None and init_from.cell is not None:
            found.add(name)
    return found
