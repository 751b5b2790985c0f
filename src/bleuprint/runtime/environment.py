"""What the machine decides and the result does not depend on, from environment variables.

| variable              | meaning                                                              |
| --------------------- | -------------------------------------------------------------------- |
| BLEUPRINT_MIRROR      | folder or URL prefix holding the corpora's files as <host>/<path>      |
| BLEUPRINT_WORKERS     | processes that prepare text (default: the cores this process may use)  |
| BLEUPRINT_PROCESSES   | processes that train (default: one a GPU; one on a CPU)                |
| MLFLOW_TRACKING_URI   | MLflow's server or database (default: mlflow.db at the project's root) |
"""

import os
from pathlib import Path

from bleuprint.runtime.errors import UserError


def mirror() -> str | None:
    return os.environ.get("BLEUPRINT_MIRROR") or None


def workers() -> int:
    return _count("BLEUPRINT_WORKERS") or len(os.sched_getaffinity(0))


def processes() -> int | None:
    """The number of training processes asked for; None leaves it to the machine."""
    return _count("BLEUPRINT_PROCESSES")


def root() -> Path:
    """The project's root: DVC names it to its stages, also in `dvc exp run --queue`."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve()


def work() -> Path:
    """Unfinished downloads and trainings: outside DVC's outputs, kept between runs."""
    return root() / "work"


def _count(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{name} is {text!r}: a whole number from 1")
    return int(text)
