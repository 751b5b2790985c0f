"""Environment variables: properties of the machine, on which no result depends.

| variable              | meaning                                                                |
| --------------------- | ---------------------------------------------------------------------- |
| BLEUPRINT_MIRROR      | folder or URL prefix holding the corpora's files as <host>/<path>      |
| BLEUPRINT_WORKERS     | processes that prepare or translate a training text (default: one for  |
|                       | each core that this process may use)                                   |
| BLEUPRINT_GPUS        | GPUs that a stage takes at most (default: its share of all)            |
| BLEUPRINT_PROCESSES   | processes that train (default: one a GPU; one on a CPU)                |
| BLEUPRINT_TIMEOUT     | seconds a training process waits for the others (default: 300)         |
| BLEUPRINT_EMULATE     | 1: number formats that the machine lacks, slower, as for tests         |
| NETRC                 | file of user names and passwords of hosts (default: ~/.netrc)          |
| MLFLOW_TRACKING_URI   | MLflow's server or database (default: mlflow.db at the project's root) |

A variable that is empty counts as one that is not set.
"""

import os
import pwd
import sys
from pathlib import Path

from bleuprint.runtime import processor
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.secrets import has_secret

# A variable that is set for the stages of a runner that itself logs the results to MLflow at its
# end.
RUNNER_LOGS = "BLEUPRINT_RUNNER_LOGS"
NETRC_ADVICE = (
    "The file dvc.lock and the reports would show it. Put the line `machine HOST login USER "
    "password PASSWORD` in ~/.netrc, or in the file that NETRC names. Or download the file "
    "yourself and name its path"
)
_DEFAULT_TIMEOUT_SECONDS = 300


def nonempty_variable(name: str) -> str | None:
    """Return the value of an environment variable; None if it is not set, is empty, or is blank."""
    text = os.environ.get(name, "")
    return text if text.strip() else None


def mirror() -> str | None:
    """Return the folder or URL prefix that holds copies of the corpora (BLEUPRINT_MIRROR).

    Returns:
        The folder or the beginning of the URLs; None if corpora are downloaded from their hosts.

    Raises:
        UserError: The URL contains a secret, which would be copied into records and reports.
    """
    folder_or_url = nonempty_variable("BLEUPRINT_MIRROR")
    if folder_or_url is not None and has_secret(folder_or_url):
        raise UserError(f"BLEUPRINT_MIRROR contains a user name, password or key. {NETRC_ADVICE}")
    return folder_or_url


def netrc_file() -> Path:
    """Return the file of user names and passwords of hosts, as curl and requests know it."""
    return Path(nonempty_variable("NETRC") or "~/.netrc").expanduser()


def worker_count() -> int:
    """Return the number of processes that prepare or translate a training text."""
    return _positive_number("BLEUPRINT_WORKERS") or processor.THIS.cores


def gpu_limit() -> int | None:
    """Return how many GPUs a stage may take at most; None means all that are free."""
    return _positive_number("BLEUPRINT_GPUS")


def process_count() -> int | None:
    """Return the number of training processes; None means one a GPU, or one on a CPU."""
    return _positive_number("BLEUPRINT_PROCESSES")


def timeout_seconds() -> int:
    """Return how long a training process waits for the others, at the start and at each step."""
    return _positive_number("BLEUPRINT_TIMEOUT") or _DEFAULT_TIMEOUT_SECONDS


def is_emulating() -> bool:
    """Return whether to compute in number formats that the machine lacks."""
    return os.environ.get("BLEUPRINT_EMULATE") == "1"


def _positive_number(name: str) -> int | None:
    """Return the number, at least 1, to which a user has set an environment variable.

    Returns:
        The number; None if the variable is not set or is empty.

    Raises:
        UserError: The value is not a whole number from 1.
    """
    text = nonempty_variable(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{name} is {text!r}. It must be a whole number from 1")
    return int(text)


def launcher_number(
    name: str, lowest: int, highest: int | None = None, default: int | None = None
) -> int:
    """Return the whole number to which a launcher has set an environment variable.

    Args:
        name: The variable, such as `WORLD_SIZE`.
        lowest: The smallest value that is allowed.
        highest: The largest value that is allowed; None allows any.
        default: The value of a variable that is not set; with None, it must be set.

    Raises:
        UserError: The value is not a whole number within these limits.
    """
    text = os.environ.get(name)
    if text is None and default is not None:
        return default
    # int() would also accept spaces, underscores and digits of other scripts, such as ٣.
    if text is not None and text.isascii() and text.isdecimal():
        number = int(text)
        if number >= lowest and (highest is None or number <= highest):
            return number
    limits = f"from {lowest}" if highest is None else f"from {lowest} to {highest}"
    raise UserError(f"{name} is {text!r}. It must be a whole number {limits}")


def has_gpu() -> bool:
    """Return whether this machine has a GPU of NVIDIA or AMD.

    Importing torch to ask it would take seconds, so GPUs are recognized by the device files of
    their drivers.
    """
    devices = Path("/dev")
    has_nvidia_gpu = any(devices.glob("nvidia[0-9]*"))
    has_amd_gpu = any(devices.glob("kfd"))  # The Kernel Fusion Driver of AMD's ROCm.
    return has_nvidia_gpu or has_amd_gpu


def set_missing_user_variables() -> None:
    """Set the environment variables USER, HOME and XDG_CACHE_HOME if the user lacks them.

    In a container, the process may run as a user without a name and a home folder, as with
    `docker run -u 1234`. DVC, Snakemake and MLflow would then fail with a traceback. The variables
    are set to folders in the project's folder `work`.
    """
    user_id = os.getuid()
    try:
        home = pwd.getpwuid(user_id).pw_dir
    except KeyError:
        os.environ.setdefault("USER", str(user_id))
        home = str(work_folder() / "home")
    if not os.environ.get("HOME"):
        os.environ["HOME"] = home
    if not os.access(os.environ["HOME"], os.W_OK):
        os.environ.setdefault("XDG_CACHE_HOME", str(work_folder() / "cache"))


def stage_path() -> str:
    """Return the value of PATH for the stages, with the folder of this Python first.

    Stages are started by the command `python`. With this PATH, it is the Python that runs this
    program, even if the user has not activated the virtual environment.
    """
    python_folder = str(Path(sys.executable).parent)
    return os.pathsep.join((python_folder, os.environ.get("PATH", os.defpath)))


def project_root() -> Path:
    """Return the project's root: the folder that DVC_ROOT names, or the working folder.

    `dvc exp run --queue` runs in a copy of the project, and sets DVC_ROOT to the project itself.
    """
    return Path(nonempty_variable("DVC_ROOT") or Path.cwd()).resolve()


def is_experiment_copy() -> bool:
    """Return whether DVC runs an experiment in a copy of the project (`--temp`, `--queue`)."""
    return Path.cwd().resolve() != project_root()


def work_folder() -> Path:
    """Return the folder of unfinished downloads and trainings, which DVC does not manage."""
    return project_root() / "work"
