"""Git commands of the maintainers' tools."""

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
