"""Writes the resolved settings that the recipes of 1.0.0 have, by the code of 1.0.0.

    python -m tools.settings_of_1_0

tests/config/test_settings_of_1_0.py compares today's recipes with them, value by value. The
settings and the code come from the commit by `git archive`, never from the working folder.
"""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

COMMIT = "d97fdb56"
ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "config" / "settings_of_1_0.json.gz"
# Prints the resolved settings of all recipes; runs in a process that imports the old package.
_SCRIPT = """
import json
from pathlib import Path
from bleuprint.config.experiment import load
recipes = sorted(Path("recipes").glob("*.yaml"))
print(json.dumps({path.stem: load(path).resolved() for path in recipes}))
"""


def main() -> None:
    """Store the resolved settings of all recipes of 1.0.0 for the test."""
    settings = settings_by_old_code()
    text = json.dumps(settings, indent=1)
    # gzip would store the time; without it, the same settings always give the same file.
    STORED.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{STORED.relative_to(ROOT)}: {len(settings)} recipes of {COMMIT}")


def settings_by_old_code() -> dict[str, Any]:
    """Return the resolved settings of each recipe, computed by the code of version 1.0.0 itself.

    The old code and recipes are unpacked to a temporary folder, and a new Python process runs them.
    """
    command = ["git", "archive", COMMIT, "src", "recipes", "corpora"]
    archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        environment = os.environ | {"PYTHONPATH": str(Path(folder, "src"))}
        printed = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        ).stdout
    settings: dict[str, Any] = json.loads(printed)
    return settings


def stored_settings() -> dict[str, Any]:
    """Return the resolved settings by recipe that `main` has stored."""
    settings: dict[str, Any] = json.loads(gzip.decompress(STORED.read_bytes()))
    return settings


if __name__ == "__main__":
    main()
