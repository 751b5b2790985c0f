"""An experiment in the working tree, at a revision of git or in an experiment of DVC."""

from collections.abc import Iterator
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


@dataclass(frozen=True)
class Revision:
    """Its settings, and the root of its outputs; `name` is empty for the working tree.

    `files`: DVC's of another revision.
    """

    name: str
    settings: Settings
    root: Path
    files: Any = None
    opened: dict[Cell, Results] = field(default_factory=dict, compare=False)

    def results(self, cell: Cell) -> Results:
        """The results of a cell, checked, with the texts and ledgers of its corpus.

        Raises UserError naming a file that does not exist, or is not in DVC's cache.
        """
        if cell not in self.opened:
            results = results_folder(self.settings, cell)
            names = "scores.json", "hypotheses", "training.json", "translation.json"
            for name in names if results == cell.results else names[:2]:
                self._get(results / name)
            if self.settings.comet:
                self._get(comet_file(self.settings, cell))
            for stage in STAGES:
                self._get(ledger(cell.corpus, stage))
            run = Results.open(self.settings, cell, self.root)
            for path in (path for test in run.scores for path in run.texts.files(f"test.{test}")):
                self._get(folder(cell.corpus, "split") / path.name)
            self.opened[cell] = run.check()
        return self.opened[cell]

    def _get(self, path: Path) -> None:
        """Copy a file or folder of another revision to the root."""
        target = self.root / path
        if target.exists():
            return
        if self.files is None:
            raise UserError(f"{path}: no such file; run: dvc repro, or dvc pull")
        from dvc.exceptions import DvcException
        from dvc_data.index import DataIndexDirError

        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.files.get(f"/{path}", str(target), recursive=self.files.isdir(f"/{path}"))
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
