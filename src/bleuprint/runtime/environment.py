"""Environment variables: properties of the machine, on which no result depends.

| variable              | meaning                                                              |
| --------------------- | -------------------------------------------------------------------- |
| BLEUPRINT_MIRROR      | folder or URL prefix holding the corpora's files as <host>/<path>      |
| BLEUPRINT_WORKERS     | processes that prepare text (default: the cores this process may use)  |
| BLEUPRINT_PROCESSES   | processes that train (default: one a GPU; one on a CPU)                |
| BLEUPRINT_TIMEOUT     | seconds a training process waits for the others (default: 300)         |
| BLEUPRINT_EMULATE     | 1: number formats that the machine lacks, slower, as for tests         |
| NETRC                 | file of user names and passwords of hosts (default: ~/.netrc)          |
| MLFLOW_TRACKING_URI   | MLflow's server or database (default: mlflow.db at the project's root) |
"""

import os
import pwd
import sys
from pathlib import Path

from bleuprint.runtime import processor
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.secrets import has_secret

# Set for the stages of a runner that logs the results to MLflow at its end.
RUNNER_LOGS = "BLEUPRINT_RUNNER_LOGS"
NETRC_ADVICE = (
    "it would be in dvc.lock and reports; put the line `machine HOST login USER password PASSWORD` "
    "in ~/.netrc, or in the file that NETRC names, or download the file yourself and name its path"
)


def mirror() -> str | None:
    """The folder or URL prefix; raises UserError if it holds a secret."""
    place = value("BLEUPRINT_MIRROR")
    if place and has_secret(place):
        raise UserError(f"BLEUPRINT_MIRROR holds a user name, password or key: {NETRC_ADVICE}")
    return place


def value(name: str) -> str | None:
    """The value of a variable; None if it is not set, is empty, or has spaces alone."""
    text = os.environ.get(name, "")
    return text if text.strip() else None


def set_missing_user_variables() -> None:
    """Set what DVC, Snakemake and MLflow need of a user without a name or a folder to write to.

    That is USER, HOME and XDG_CACHE_HOME, for a user id that no password database knows, as in
    `docker run -u 1234` or OpenShift; without them these tools end in a traceback.
    """
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        os.environ.setdefault("USER", str(os.getuid()))
        home = str(work_folder() / "home")
    if not os.environ.get("HOME"):
        os.environ["HOME"] = home
    if not os.access(os.environ["HOME"], os.W_OK):
        os.environ.setdefault("XDG_CACHE_HOME", str(work_folder() / "cache"))


def stage_path() -> str:
    """PATH with this Python first, also where .venv/bin/bleuprint is run without activation."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def netrc_file() -> Path:
    """The file of user names and passwords of hosts, as curl and requests know it."""
    return Path(value("NETRC") or "~/.netrc").expanduser()


def worker_count() -> int:
    return _count("BLEUPRINT_WORKERS") or processor.THIS.cores


def process_count() -> int | None:
    """The number of training processes; None: one a GPU, or one on a CPU."""
    return _count("BLEUPRINT_PROCESSES")


def timeout_seconds() -> int:
    """Seconds that a training process waits for the others, at the start and at each step."""
    return _count("BLEUPRINT_TIMEOUT") or 300


def is_emulating() -> bool:
    """Whether to compute in number formats that the machine lacks."""
    return os.environ.get("BLEUPRINT_EMULATE") == "1"


def has_gpu() -> bool:
    """Whether there is a GPU of NVIDIA or AMD, by its device file: loading torch takes seconds."""
    return any(next(Path("/dev").glob(name), None) for name in ("nvidia[0-9]*", "kfd"))


def project_root() -> Path:
    """The project's root, by DVC_ROOT, which DVC also sets in `dvc exp run --queue`."""
    return Path(value("DVC_ROOT") or Path.cwd()).resolve()


def is_experiment_copy() -> bool:
    """Whether DVC runs an experiment in a copy of the project (`dvc exp run --temp`, `--queue`)."""
    return Path.cwd().resolve() != project_root()


def work_folder() -> Path:
    """The folder of unfinished downloads and trainings, outside DVC's outputs."""
    return project_root() / "work"


def whole_number(
    name: str, lowest: int, highest: int | None = None, default: int | None = None
) -> int:
    """The value of a variable that a launcher sets; raises UserError if it is not such a number.

    Args:
        name: The variable.
        lowest: The smallest value that is allowed.
        highest: The largest one; None allows any.
        default: The value of a variable that is not set; None: it must be set.
    """
    given = os.environ.get(name)
    if given is None and default is not None:
        return default
    if given is not None and given.isascii() and given.isdecimal():
        number = int(given)
        if number >= lowest and (highest is None or number <= highest):
            return number
    limits = f"from {lowest}" if highest is None else f"from {lowest} to {highest}"
    raise UserError(f"{name} is {given!r}: it must be a whole number {limits}")


def _count(name: str) -> int | None:
    given = value(name)
    if given is None:
        return None
    if not given.isdecimal() or int(given) < 1:
        raise UserError(f"{name} is {given!r}: it must be a whole number from 1")
    return int(given)
