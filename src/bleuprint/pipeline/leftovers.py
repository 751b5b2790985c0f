"""Moves away the results of systems, corpora and seeds that params.yaml no longer names.

DVC leaves the outputs of removed runs on disk. Where they lie in a folder that another stage
depends on, they would change the hash of that folder. `move_leftovers` moves them to work/removed,
so that dvc.lock is the same as if they had never existed.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.references import shared_folders
from bleuprint.runtime.errors import print_message

_REMOVED = Path("work", "removed")
# Folders that bleuprint 1.0 wrote and that have another name now. The first one contained the
# results of external systems.
_FOLDERS_OF_VERSION_1_0 = (
    Path("results/outside"),
    Path("data/ledgers"),
    Path("data/statistics"),
    Path("data/tests"),
)
# The folders that the stage report reads in addition to results. Each contains one folder or file
# per corpus, with the name of the corpus.
REPORT_FOLDERS_BY_CORPUS = (
    "data/filter_stats",
    "data/split",
    "data/corpus_stats",
    "data/test_stats",
)


def move_leftovers(settings: Settings, root: Path = Path()) -> None:
    """Move outputs of earlier experiments out of the folders that stages still read.

    When the user removes a system, corpus or seed from params.yaml, DVC leaves its outputs on disk.
    In a folder that a stage depends on, they would change the hash of that folder, and the stage
    would read them. So this function moves them to work/removed and prints a note that names them.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder.
    """
    moved = []
    for path in _outermost(_find_leftovers(settings, root)):
        target = root / _REMOVED / path
        # Outputs of the same name may have been moved before; only the newest ones are kept.
        _remove(target)
        if _has_files(root / path):
            target.parent.mkdir(parents=True, exist_ok=True)
            # `rename` would fail if work is on another disk.
            shutil.move(root / path, target)
            moved.append(path)
        else:
            # `dvc checkout` may leave an empty folder. There is nothing to keep or to report.
            _remove(root / path)
        _remove_empty_parents(path, root)
    if moved:
        names = ", ".join(str(path) for path in moved)
        print_message(
            f"outputs that params.yaml no longer names were moved to {_REMOVED}: {names}", "note"
        )


def _outermost(leftovers: Iterable[Path]) -> list[Path]:
    """Return the leftovers that are not inside another leftover: only these need to be moved.

    For `results/tiny` and `results/tiny/own`, the result is `results/tiny`, which moves together
    with all that is in it. If the inner folder were moved on its own first, the outer one would
    then replace it in work/removed.
    """
    # A dict, since it keeps the order and finds a path fast.
    all_leftovers = dict.fromkeys(leftovers)
    outermost = []
    for path in all_leftovers:
        is_inside_another = any(parent in all_leftovers for parent in path.parents)
        if not is_inside_another:
            outermost.append(path)
    return outermost


def _remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _has_files(path: Path) -> bool:
    """Return whether a path is a file or link, or a folder with a file in it or below it."""
    is_file_or_link = path.is_file() or path.is_symlink()
    return is_file_or_link or any(inner.is_file() for inner in path.rglob("*"))


def _remove_empty_parents(path: Path, root: Path) -> None:
    """Remove the folders that contained a path and are empty now, but not the project's folder.

    Args:
        path: A path that was just removed, relative to the project's folder, such as
            `results/tiny/own/2`.
        root: The project's folder.
    """
    for parent in path.parents:
        is_project_folder = parent == Path()
        if is_project_folder:
            return
        is_empty = not any((root / parent).iterdir())
        if is_empty:
            (root / parent).rmdir()


def _find_leftovers(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield outputs of what the user has removed from params.yaml, in folders that stages read.

    Each of these functions looks in other folders; a path may be inside another one.

    Args:
        settings: The settings in params.yaml.
        root: The project's folder; the paths are relative to it.
    """
    yield from _results_of_removed_runs(settings, root)
    yield from _models_of_removed_seeds(settings, root)
    yield from _leftovers_in_shared_folders(settings, root)
    yield from _existing_folders_of_version_1_0(settings, root)
    yield from _data_of_removed_corpora(settings, root)


def _results_of_removed_runs(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the folders results/SYSTEM/CORPUS/SEED of runs that params.yaml no longer names.

    The stage report reads all folders in results.
    """
    for folder in _matching(root, "results/*/*/*"):
        if _belongs_to_removed_run(folder, settings):
            yield folder


def _models_of_removed_seeds(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the models of seeds that params.yaml no longer names, if a stage would read them.

    A stage reads the folder models/SYSTEM/CORPUS with the models of all seeds in two cases: if
    another system is fine-tuned from these models, and if they translate text into synthetic
    training text. Then a model of a removed seed would change the hash of the folder. In all other
    cases, a stage reads the folder of one seed only, and the models of other seeds may stay.
    """
    # The systems and corpora that params.yaml refers to in these two cases.
    needed_entries = {reference.needed for reference in settings.references()}
    for needed in needed_entries:
        # A reference may also name only a corpus, and then it needs no model.
        if not needed.system:
            continue
        for folder in _matching(root, f"models/{needed.system}/{needed.corpus}/*"):
            if _belongs_to_removed_run(folder, settings):
                yield folder


def _belongs_to_removed_run(folder: Path, settings: Settings) -> bool:
    """Return whether a folder belongs to a run that params.yaml no longer names.

    A run is one system on one corpus with one seed. It is named if params.yaml lists the system,
    the corpus and the seed. That includes a combination that params.yaml excludes, since its stages
    still write empty outputs.

    Args:
        folder: A folder such as `results/tiny/own/2`, for system tiny, corpus own and seed 2.
        settings: The settings in params.yaml.
    """
    _, system, corpus, seed = folder.parts
    if not seed.isdecimal():
        return False  # A folder or file of the user, such as results/notes/of/mine.txt.
    is_named = (
        system in settings.all_systems
        and corpus in settings.corpora
        and seed in {str(named_seed) for named_seed in settings.seeds}
    )
    return not is_named


def _leftovers_in_shared_folders(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield what no stage writes any more, in folders to which several stages contribute.

    An example is data/raw/CORPUS: the stage download writes the folder `given` into it, and each
    synthetic text in params.yaml has a stage that adds another folder. If the user removes a
    synthetic text from params.yaml, its folder is a leftover.
    """
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


def _existing_folders_of_version_1_0(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the folders that bleuprint 1.0 wrote under names that are no longer used.

    One of them is results/outside. A system of the user may be called `outside`, too: then the
    folder contains its results and is not a leftover.
    """
    for folder in _FOLDERS_OF_VERSION_1_0:
        is_in_results = folder.parts[0] == "results"
        is_results_of_system = is_in_results and folder.name in settings.all_systems
        if (root / folder).exists() and not is_results_of_system:
            yield folder


def _data_of_removed_corpora(settings: Settings, root: Path) -> Iterator[Path]:
    """Yield the data of corpora that params.yaml no longer names, in folders that the report reads.

    Each of these folders contains one item per corpus, such as data/filter_stats/CORPUS.
    """
    for folder in REPORT_FOLDERS_BY_CORPUS:
        for path in _matching(root, f"{folder}/*"):
            corpus = path.name
            if corpus not in settings.corpora:
                yield path


def _matching(root: Path, pattern: str) -> list[Path]:
    """Return the files and folders that match a pattern, relative to the project's folder.

    Args:
        root: The project's folder.
        pattern: A pattern as for `Path.glob`, such as `results/*/*/*`.
    """
    return sorted(path.relative_to(root) for path in root.glob(pattern))
