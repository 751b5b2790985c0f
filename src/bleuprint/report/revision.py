"""An experiment in the working tree, at a revision of git or in an experiment of DVC."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bleuprint.cells.results import Results, comet_file, results_folder
from bleuprint.config.experiment import Settings, load, load_resolved
from bleuprint.config.paths import RESOLVED, Cell, folder, ledger
from bleuprint.corpus.steps.ledger import STAGES
from bleuprint.runtime.code import git
from bleuprint.runtime.errors import UserError

_SCORED = ("scores.json", "hypotheses")
_RESULTS = ("training.json", "curves.json", "translation.json", *_SCORED)


@dataclass(frozen=True)
class Revision:
    """Its settings, and the root of its outputs; `name` is empty for the working tree."""

    name: str
    settings: Settings
    root: Path
    files: Any = None
    opened: dict[Cell, Results] = field(default_factory=dict, compare=False)

    def results(self, cell: Cell) -> Results:
        """The results of a cell, checked once."""
        if cell not in self.opened:
            self.opened[cell] = Results.open(self.settings, cell, self.root).check()
        return self.opened[cell]

    def fetch(self, cells: Iterable[Cell]) -> None:
        """Get the results of these cells, and the texts and ledgers of their corpora.

        Raises UserError naming a file that does not exist, or is not in DVC's cache. The results
        are checked: see its `check`.
        """
        cells = list(cells)
        for path in dict.fromkeys(path for cell in cells for path in self._needed(cell)):
            if self.files is not None:
                self._get(path)
            elif not path.exists():
                raise UserError(f"{path}: no such file; run: dvc repro, or dvc pull")
        for cell in cells:
            self.results(cell)

    def _needed(self, cell: Cell) -> Iterator[Path]:
        results = results_folder(self.settings, cell)
        yield from (results / name for name in (_RESULTS if results == cell.results else _SCORED))
        if self.settings.comet:
            yield comet_file(self.settings, cell)
        yield from (ledger(cell.corpus, stage) for stage in STAGES)
        if self.files is not None:
            split = folder(cell.corpus, "split")
            with self._missing(split):
                names = [Path(path).name for path in self.files.ls(f"/{split}", detail=False)]
            yield from (split / name for name in names if name.startswith("test."))

    def _get(self, path: Path) -> None:
        """Copy a file or folder of the revision to the root."""
        target = self.root / path
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._missing(path):
            self.files.get(f"/{path}", str(target), recursive=self.files.isdir(f"/{path}"))

    @contextmanager
    def _missing(self, path: Path) -> Iterator[None]:
        """Raise UserError for the errors of DVC for a file that its cache lacks."""
        from dvc.exceptions import DvcException
        from dvc_data.index import DataIndexDirError

        try:
            yield
        except (OSError, DvcException, DataIndexDirError):
            raise UserError(
                f"{path} of {self.name}: not in DVC's cache; dvc pull gets it if a remote has it, "
                f"or else: git checkout {self.name} && dvc repro"
            ) from None


def commit_of(name: str) -> tuple[str, str]:
    """The root of DVC's repository, and the commit of a revision of git or experiment of DVC.

    Raises UserError if there is none of this name.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.scm import SCMError, resolve_rev

    try:
        with Repo() as repo:
            commit, root = resolve_rev(repo.scm, name), str(repo.root_dir)
    except (SCMError, DvcException) as error:
        raise UserError(f"{name}: neither a Git revision nor a DVC experiment: {error}") from None
    if git(Path(root), "cat-file", "-t", commit).strip() in (b"blob", b"tree"):
        raise UserError(f"{name}: a file or folder in git, not a revision")
    return root, commit


@contextmanager
def at(name: str) -> Iterator[Revision]:
    """The revision of this name, within the block; raises UserError if there is none."""
    if not name:
        yield Revision(name, load(), Path())
        return
    from dvc.api import DVCFileSystem
    from dvc.repo import Repo
    from dvc.repo.brancher import switch

    root, commit = commit_of(name)
    # switched: by its argument rev, DVCFileSystem would open the root of a larger git repository
    temporary_folder = TemporaryDirectory(prefix="bleuprint-")
    with temporary_folder as temporary, Repo(root) as repo, switch(repo, commit):
        revision, copy = DVCFileSystem(repo), Path(temporary, RESOLVED)
        copy.parent.mkdir()
        try:  # by which its results were made; params.yaml would need its corpora/, too
            copy.write_bytes(revision.read_bytes(f"/{RESOLVED.as_posix()}"))
        except FileNotFoundError:
            raise UserError(f"{name}: has no {RESOLVED}") from None
        try:
            yield Revision(name, load_resolved(Path(temporary)), Path(temporary), revision)
        except UserError as error:
            # the temporary folder means nothing to the user
            raise UserError(str(error).replace(f"{temporary}/", f"{name}: ")) from None
