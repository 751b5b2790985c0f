"""What was measured of trainings and translations: durations, hardware, cost by time.

These figures differ in each run, so no stage's output contains them and DVC does not track them. A
file in timings/ is named by the fingerprint of the result that it was measured for, so that a
result from DVC's cache is shown with its own figures.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Run
from bleuprint.runtime.files import read_json_object, write_json
from bleuprint.runtime.schema import check_record, read_record

_REMEDY = "remove it: the time that it records is then unknown"


@dataclass(frozen=True)
class TrainingCost:
    """The duration, hardware and cost by time of a training.

    `flops_by_time` = seconds x `devices` x `sustained_flops`; `mfu`: counted operations as a share
    of `peak_flops`. `peak_memory`: of rank 0, in bytes. None: unknown. Of a training that several
    machines did, one after the other, `processes` and `threads` are text: 1 + 2.
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
    """What was measured of the training with this fingerprint, if it was measured here."""
    path = root / training_cost_file(run, training_sha256)
    return read_record(TrainingCost, path, _REMEDY) if path.exists() else None


def write_seconds(path: Path, seconds: float) -> None:
    """Record a duration in the file of a translation or a stage."""
    write_json(path, {"seconds": round(seconds, 3)})


def read_seconds(path: Path) -> float | None:
    """The duration that was last recorded in a file, if there was one."""
    if not path.exists():
        return None
    seconds = read_json_object(path, ("seconds",), _REMEDY)["seconds"]
    return check_record(float, seconds, path, _REMEDY, ["seconds"])


def training_cost_file(run: Run, training_sha256: str) -> Path:
    """The file of what was measured of a training."""
    return run.timings_folder / f"train-{training_sha256[:16]}.json"


def stage_seconds_file(command: Sequence[str]) -> Path:
    """The file of the duration of a stage when it last ran here; `command`: script, arguments."""
    script, *arguments = command
    return Path("timings", "stages", f"{'@'.join((Path(script).stem, *arguments))}.json")


def last_training_seconds(run: Run) -> float | None:
    """The duration of the training of a run that ended here last; None without any."""
    return _last_seconds(run.timings_folder.glob("train-*.json"))


def last_training_seconds_with_any_seed(run: Run) -> float | None:
    """The duration of a system's training on a corpus that ended here last, with any seed."""
    return _last_seconds(run.timings_folder.parent.glob("*/train-*.json"))


def last_stage_seconds_with_any_seed(command: Sequence[str]) -> float | None:
    """The duration of a stage of a training that ended here last, with any seed.

    `command`: script, system, corpus, seed.
    """
    script, system, corpus, _ = command
    file = stage_seconds_file((script, system, corpus, "*"))
    return _last_seconds(file.parent.glob(file.name))


def _last_seconds(files: Iterable[Path]) -> float | None:
    """The duration in the newest of some files; None if there are none."""
    in_order = sorted(files, key=lambda path: path.stat().st_mtime)
    return read_seconds(in_order[-1]) if in_order else None
