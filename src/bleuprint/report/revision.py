"""Files of a revision of git, or of an experiment of DVC."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError


@contextmanager
def revision_files(name: str, files: Sequence[Path]) -> Iterator[Path]:
    """A folder with those of these files that git has of a revision, within the block.

    Raises UserError if there is no such revision; other errors name it instead of the folder.
    """
    root, commit = _commit(name)
    with TemporaryDirectory(prefix="bleuprint-") as temporary:
        for file in files:
            if content := git_output(Path(root), "show", f"{commit}:./{file.as_posix()}"):
                copy = Path(temporary, file)
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(content)
        try:
            yield Path(temporary)
        except UserError as error:
            # the temporary folder means nothing to the user
            raise UserError(str(error).replace(f"{temporary}/", f"{name}: ")) from None


def _commit(name: str) -> tuple[str, str]:
    """The root of DVC's repository, and the commit of a revision of git or experiment of DVC."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.scm import SCMError, resolve_rev

    try:
        with Repo() as repo:
            commit, root = resolve_rev(repo.scm, name), str(repo.root_dir)
    except (SCMError, DvcException) as error:
        raise UserError(
            f"{name}: no Git revision, DVC experiment, file or folder: {error}; "
            "list them by: git log, or dvc exp show"
        ) from None
    return root, commit
