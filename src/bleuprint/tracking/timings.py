"""Read and write what was measured of training runs and stages: durations, hardware, cost.

These figures differ each time, so no output of a stage contains them and DVC does not track them.
They are in timings/. A file is named by the fingerprint of the training that it was measured for,
so that a result from DVC's cache is shown with its own figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.schema import check_record, read_record

# What to do with a damaged file, in messages.
_REMEDY = "Remove it. The time that it records is then unknown"
# A fingerprint has 64 hexadecimal digits; these many of them tell the trainings of a run apart.
_FINGERPRINT_DIGITS = 16


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
    """Read the duration, the hardware and the cost of a training from its JSON file.

    Args:
        run: The system, the corpus and the seed that were trained.
        training_sha256: The fingerprint of the training: a SHA-256 of everything that decides its
            result, such as its settings and its data.
        root: The folder of the experiment.

    Returns:
        The content of the file; None if there is no file, because the training was not measured on
        this machine.
    """
    path = root / training_cost_file(run, training_sha256)
    if not path.exists():
        return None
    return read_record(TrainingCost, path, _REMEDY)


def write_seconds(path: Path, seconds: float) -> None:
    """Write a duration to a JSON file, rounded to milliseconds.

    Args:
        path: The file to write.
        seconds: The duration in seconds.
    """
    write_json(path, {"seconds": round(seconds, 3)})


def read_seconds(path: Path) -> float | None:
    """Read a duration from a JSON file such as `{"seconds": 12.5}`.

    Returns:
        The duration in seconds; None if the file does not exist.

    Raises:
        UserError: The file is damaged. The message names it and says what to do.
    """
    if not path.exists():
        return None
    content = read_json_object(path, ("seconds",), _REMEDY)
    return check_record(float, content["seconds"], path, _REMEDY, ["seconds"])


def training_cost_file(run: Run, training_sha256: str) -> Path:
    """Return the path of the file that records the duration and the cost of a training.

    The name contains the fingerprint of the training. If its settings change, the training gets
    another file, and the file of the earlier training stays.

    Args:
        run: The system, the corpus and the seed that are trained.
        training_sha256: The fingerprint of the training: a SHA-256 of everything that decides its
            result, such as its settings and its data.
    """
    short_fingerprint = training_sha256[:_FINGERPRINT_DIGITS]
    return run.timings_folder / f"train-{short_fingerprint}.json"


def stage_seconds_file(command: Sequence[str]) -> Path:
    """Return the path of the file that records the duration of a stage.

    The file is named after the stage, such as `timings/stages/average@small@news@1.json`.

    Args:
        command: The script of the stage and its arguments, such as `["stages/average.py", "small",
            "news", "1"]`.
    """
    script, *arguments = command
    stage_name = "@".join([Path(script).stem, *arguments])
    return Path("timings", "stages", f"{stage_name}.json")


def last_training_seconds(run: Run) -> float | None:
    """Return how long the last training of a system on a corpus with a seed took on this machine.

    Args:
        run: The system, the corpus and the seed.

    Returns:
        The duration in seconds; None if the run was never trained here.
    """
    return _newest_seconds(run.timings_folder.glob("train-*.json"))


def last_training_seconds_with_any_seed(run: Run) -> float | None:
    """Return the duration of the last training of a system on a corpus, whatever its seed was.

    It is an estimate for a seed that has not been trained yet.

    Args:
        run: The system and the corpus; the seed of this run does not matter.

    Returns:
        The duration in seconds; None if the system was never trained on the corpus here.
    """
    folder_of_all_seeds = run.timings_folder.parent
    return _newest_seconds(folder_of_all_seeds.glob("*/train-*.json"))


def last_stage_seconds_with_any_seed(command: Sequence[str]) -> float | None:
    """Return how long a stage took when it last ran for a system and a corpus, with any seed.

    It is an estimate for a seed with which the stage has not run yet.

    Args:
        command: The script of the stage, then the system, the corpus and the seed. The seed does
            not matter.

    Returns:
        The duration in seconds; None if the stage never ran for the system and the corpus here.
    """
    script, system, corpus, _seed = command
    pattern_for_any_seed = stage_seconds_file((script, system, corpus, "*"))
    files = pattern_for_any_seed.parent.glob(pattern_for_any_seed.name)
    return _newest_seconds(files)


def _newest_seconds(files: Iterable[Path]) -> float | None:
    """Return the duration that the most recently written file records; None without files.

    Args:
        files: Paths of JSON files, each with a duration in seconds.
    """
    oldest_first = sorted(files, key=lambda path: path.stat().st_mtime)
    if not oldest_first:
        return None
    newest_file = oldest_first[-1]
    return read_seconds(newest_file)
