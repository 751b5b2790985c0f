"""On a file system without locks a command names its folder; flock is made to fail."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from root import ROOT

_SHIM = """
#include <errno.h>
#include <stdlib.h>
int flock(int fd, int operation) { errno = atoi(getenv("FLOCK_ERRNO")); return -1; }
"""
_RUN = "from bleuprint.runtime.errors import run; run(main)"
_STORE = "from bleuprint.tracking import store; store.client()"
_LOCK = "from bleuprint.runtime.locks import FileLock; FileLock('work/mlflow.lock').acquire(0)"


@pytest.fixture(scope="module")
def no_locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose flock fails, to be loaded before libc."""
    if not (compiler := shutil.which("cc") or shutil.which("gcc")):
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(_SHIM)
    library = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "shim.c"], check=True)
    return library


@pytest.mark.parametrize(
    ("number", "program"),
    [(errno.ENOLCK, _LOCK), (errno.EOPNOTSUPP, _LOCK), (errno.ENOSYS, _STORE)],
)
def test_one_line_names_the_folder(
    no_locks: Path, tmp_path: Path, number: int, program: str
) -> None:
    """Also where a killed process left the file of a lock: nothing waits for it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/mlflow.lock").write_text("4194304\nelsewhere\n")
    kept = {name: text for name, text in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    done = subprocess.run(
        [sys.executable, "-c", f"def main():\n    {program}\n{_RUN}"],
        cwd=tmp_path,
        env={**kept, "LD_PRELOAD": str(no_locks), "FLOCK_ERRNO": str(number)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    said = f"bleuprint: error: {tmp_path}/work: its file system has no locks (flock: "
    assert done.stderr.startswith(f"{said}{os.strerror(number)})"), done.stderr
    assert done.returncode == 1 and done.stderr.count("\n") == 1


def test_every_lock_is_one_of_these() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert "from filelock import FileLock" not in path.read_text(encoding="utf-8"), path
