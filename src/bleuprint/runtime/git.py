"""The git commit of the code."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit of the code, with a + if the code differs from it; None outside git."""
    try:
        git = ["git", "-C", str(Path(__file__).parents[3])]
        code = ("src", "stages", "dvc.yaml")  # not results, which are in git too
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        compare = [*git, "diff", "--quiet", "HEAD", "--", *code]
        dirty = subprocess.run(compare, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if dirty else "")
