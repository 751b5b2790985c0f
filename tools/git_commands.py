"""Git commands of the maintainers' tools."""

import shutil
import subprocess
from pathlib import Path

from bleuprint.runtime.errors import UserError


def git(folder: Path, *arguments: str) -> str:
    """Run a Git command and return what it prints, without space at the ends.

    Args:
        folder: The folder in which the command runs.
        arguments: The words after `git`.

    Raises:
        UserError: Git failed; the message contains the command and what Git said.
    """
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    if done.returncode != 0:
        command = " ".join(["git", *arguments])
        output = " ".join(done.stderr.decode(errors="replace").split())
        raise UserError(f"{folder}: `{command}` failed: {output}")
    return done.stdout.decode().strip()


def clone_commit(root: Path, clone: Path, commit: str) -> None:
    """Clone a commit of this project, with its compiled library, unless the clone exists already.

    Args:
        root: The folder of the project.
        clone: The folder of the clone.
        commit: The full hash of the commit.

    Raises:
        UserError: The clone exists and is of another commit.
    """
    if not clone.exists():
        # The clone gets its name at the end, so that an interrupted one is not taken for complete.
        partial = clone.with_name(f"{clone.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        git(root, "clone", "--quiet", "--no-checkout", str(root), str(partial))
        git(partial, "checkout", "--quiet", "--detach", commit)
        # The compiled library and its checksum are not committed.
        for path in root.glob("src/_bleuprint_native*"):
            shutil.copy(path, partial / "src")
        partial.rename(clone)
    cloned_commit = git(clone, "rev-parse", "HEAD")
    if cloned_commit != commit:
        raise UserError(
            f"{clone} is a clone of commit {cloned_commit[:10]}, not {commit[:10]}. Remove it"
        )
