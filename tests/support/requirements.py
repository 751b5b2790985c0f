"""What some tests need beyond the packages of `make setup`, and what happens where it is missing.

A test that needs what this machine lacks is skipped, so that `make test` is of use anywhere. With
BLEUPRINT_REQUIRE=all, as in CI, such a test fails, unless its reason is one of ALLOWED: what cannot
be installed by `make debian`.
"""

import os
import shutil
from pathlib import Path

import pytest

VARIABLE = "BLEUPRINT_REQUIRE"

GPU = "needs a GPU, and a torch with Triton that can use it"
TWO_GPUS = "needs two GPUs"
MIRROR = "needs copies of the corpora: BLEUPRINT_MIRROR=FOLDER, laid out as HOST/PATH"
COMET = "needs unbabel-comet: BLEUPRINT_COMET_PYTHON=PYTHON of its environment"
HISTORY = "needs git's whole history: git fetch --unshallow"
PRIVILEGES = "needs root and a privileged container, for users and network namespaces"
SECCOMP = "needs seccomp notifications: Linux 5.6 or newer on x86-64"
ONEDNN = "needs a build of torch with oneDNN"

ALLOWED = {GPU, TWO_GPUS, MIRROR, COMET, HISTORY, PRIVILEGES, SECCOMP, ONEDNN}


def needs(reason, is_met):
    """Return the mark of tests that are skipped for a reason of ALLOWED unless `is_met`."""
    assert reason in ALLOWED
    return pytest.mark.skipif(not is_met, reason=reason)


def needs_programs(*programs):
    """Return the mark of tests that are skipped where one of these programs is missing."""
    missing = _missing(programs)
    return pytest.mark.skipif(bool(missing), reason=_install(missing))


def skip_without(*programs, path=None):
    """Skip the test that runs if one of these programs is missing from `path` (PATH if None)."""
    missing = _missing(programs, path)
    if missing:
        pytest.skip(_install(missing))


def mirror_path(path):
    """Return where BLEUPRINT_MIRROR has the copy of an address, which is given as HOST/PATH."""
    return Path(os.environ.get("BLEUPRINT_MIRROR", ""), path)


def mirror_has(path):
    """Return whether BLEUPRINT_MIRROR names a folder that has this path (HOST/PATH)."""
    copy = mirror_path(path)
    return copy.is_absolute() and copy.exists()


def check_variable():
    """Refuse an unknown value of BLEUPRINT_REQUIRE."""
    value = os.environ.get(VARIABLE, "all")
    if value != "all":
        raise pytest.UsageError(f"{VARIABLE} is {value!r}: it must be all, or not set")


def fail_if_required(report):
    """Turn the report of a skipped test into a failure if BLEUPRINT_REQUIRE requires the test."""
    is_expected_failure = hasattr(report, "wasxfail")
    if not report.skipped or is_expected_failure or os.environ.get(VARIABLE) != "all":
        return
    _, _, message = report.longrepr
    reason = message.removeprefix("Skipped: ")
    if reason not in ALLOWED:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped, though {VARIABLE}=all requires it: {reason}"


def _missing(programs, path=None):
    return [program for program in programs if shutil.which(program, path=path) is None]


def _install(programs):
    return f"needs {', '.join(programs)}: make debian"
