"""Read and write what was measured of training runs and stages: durations, hardware, cost.

These figures differ each time, so no output of a stage contains them and DVC does not track them.
They are in timings/. A file is named by the fingerprint of the training that it was measured for,
so that a result from DVC's cache is shown with its own figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.runtime.files import read_json_object, write_json
from bleuprint.runtime.schema import check_record, read_record

# What to do with a damaged file, in messages.
_REMEDY = "remove it: the time that it records is then unknown"


@dataclass(frozen=True)
class TrainingCost:
    """The duration, the hardware and the cost of a training.

    None means unknown. If several machines trained one after the other, their values are joined as
    text, such as `1 + 2` processes.

    Attributes:
        seconds: The duration.
        device: The name of the GPU or CPU.
        processes: The number of processes.
        threads: The number of threads per process.
        commit: The Git commit of the code.
        tokens_per_second: The mean number of target tokens per second.
        peak_memory: The peak memory of the process of rank 0, in bytes.
        devices: The number of devices.
        sustained_flops: The sustained FLOP/s of one device, as the paper of 2017 assumes them.
        flops_by_time: The training cost: seconds x devices x sustained_flops.
        peak_flops: The peak FLOP/s of one device.
        mfu: The counted operations as a share of those that the devices could do at their peak.
        versions: The versions of the software.
    """

    seconds: float
    device: str
    processes: int | str
    threads: int | str
    commit: str | None
    tokens_per_second: float
    peak_memory: int | None = None
    devices: int | None = None
    sustained_flops: float | None = None
    flops_by_time: float | None = None
    peak_flops: float | None = None
    mfu: float | None = None
    versions: str | None = None


def read_training_cost(run: Run, training_sha256: str, root: Path = Path()) -> TrainingCost | None:
    """Read what was measured of a training.

    Args:
        run: The run.
        training_sha256: The fingerprint of the training.
        root: The folder of the experiment.

    Returns:
        None if the training was not measured on this machine.
    """
    path = root / training_cost_file(run, training_sha256)
    if not path.exists():
        return None
    return read_record(TrainingCost, path, _REMEDY)


def write_seconds(path: Path, seconds: float) -> None:
    """Write the duration of a translation or a stage to a file."""
    write_json(path, {"seconds": round(seconds, 3)})


def read_seconds(path: Path) -> float | None:
    """Read the duration that was last written to a file; None if the file does not exist."""
    if not path.exists():
        return None
    seconds = read_json_object(path, ("seconds",), _REMEDY)["seconds"]
    return check_record(float, seconds, path, _REMEDY, ["seconds"])


def training_cost_file(run: Run, training_sha256: str) -> Path:
    """Return the file for what is measured of a training.

    Args:
        run: The run.
        training_sha256: The fingerprint of the training.
    """
    return run.timings_folder / f"train-{training_sha256[:16]}.json"


def stage_seconds_file(command: Sequence[str]) -> Path:
    """Return the file for the duration of a stage, which is named like the stage in DVC.

    Args:
        command: The script of the stage and its arguments.
    """
    script, *arguments = command
    stage_name = "@".join([Path(script).stem, *arguments])
    return Path("timings", "stages", f"{stage_name}.json")


def last_training_seconds(run: Run) -> float | None:
    """Return the duration of the last training of a run on this machine; None without any."""
    return _newest_seconds(run.timings_folder.glob("train-*.json"))


def last_training_seconds_with_any_seed(run: Run) -> float | None:
    """Return the duration of the last training of a run's system on its corpus, with any seed."""
    folder_of_all_seeds = run.timings_folder.parent
    return _newest_seconds(folder_of_all_seeds.glob("*/train-*.json"))


def last_stage_seconds_with_any_seed(command: Sequence[str]) -> float | None:
    """Return the last duration of a stage of a run, with any seed; None without any.

    Args:
        command: The script of the stage, then the system, the corpus and the seed.
    """
    script, system, corpus, _ = command
    file_pattern = stage_seconds_file((script, system, corpus, "*"))
    return _newest_seconds(file_pattern.parent.glob(file_pattern.name))


def _newest_seconds(files: Iterable[Path]) -> float | None:
    """Return the duration in the file that was written last; None without files."""
    oldest_first = sorted(files, key=lambda path: path.stat().st_mtime)
    if not oldest_first:
        return None
    return read_seconds(oldest_first[-1])
