"""The commit that the code is at."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit the code is at, with a + if the code differs from it; None outside git."""
    try:
        git = ["git", "-C", str(Path(__file__).parents[3])]
        code = ("src", "stages", "dvc.yaml")  # results are in git too, and change as they come
        head = subprocess.run(
            [*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        compare = [*git, "diff", "--quiet", "HEAD", "--", *code]
        dirty = subprocess.run(compare, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if dirty else "")
