"""Reads files of a Git revision or a DVC experiment."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError


@contextmanager
def revision_files(revision: str, files: Sequence[Path]) -> Iterator[Path]:
    """Copy files of a Git revision into a temporary folder, to read them there.

    The folder exists during the `with` block.

    Args:
        revision: A Git revision or the name of a DVC experiment.
        files: The paths of the files in the project. Those that the revision does not contain are
            skipped.

    Yields:
        The temporary folder, with the files at their paths.

    Raises:
        UserError: There is no such revision. A UserError that the block raises is raised again
            with the name of the revision in place of the temporary folder.
    """
    root, commit = _resolve_revision(revision)
    with TemporaryDirectory(prefix="bleuprint-") as folder:
        for file in files:
            # The project may be a subfolder of the Git repository. With ./, Git reads the path as
            # relative to the project.
            content = git_output(Path(root), "show", f"{commit}:./{file.as_posix()}")
            if content:
                copy = Path(folder, file)
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(content)
        try:
            yield Path(folder)
        except UserError as error:
            # The path of the temporary folder would tell the user nothing.
            message = str(error).replace(f"{folder}/", f"{revision}: ")
            raise UserError(message) from None


def _resolve_revision(revision: str) -> tuple[str, str]:
    """Find the project's root folder, and the Git commit that a revision stands for.

    Args:
        revision: A Git revision, such as `v1.0` or `HEAD~1`, or the name of a DVC experiment.

    Raises:
        UserError: There is no such revision.
    """
    # Importing DVC is slow, and most commands do not need it.
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.scm import SCMError, resolve_rev

    try:
        with Repo() as repo:
            commit = resolve_rev(repo.scm, revision)
            root = str(repo.root_dir)
    except (SCMError, DvcException) as error:
        raise UserError(
            f"{revision} is not a Git revision, DVC experiment, file or folder: {error}. To list "
            "them: git log, or dvc exp show"
        ) from None
    return root, commit
