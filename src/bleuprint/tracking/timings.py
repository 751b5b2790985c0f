"""What was measured of trainings and translations: durations, hardware, cost by time.

These figures differ in each run, so no stage's output contains them and DVC does not track them. A
file in timings/ is named by the fingerprint of the result that it was measured for, so that a
result from DVC's cache is shown with its own figures.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.paths import Cell
from bleuprint.runtime.files import read_object, reading, write_json


@dataclass(frozen=True)
class Training:
    """The duration, hardware and cost by time of a training.

    `flops_by_time` = seconds x `devices` x `sustained_flops`; `mfu`: counted operations as a share
    of `peak_flops`. `peak_memory`: of rank 0, in bytes. `rates`: target tokens per second at the
    points of the curve. `forecast_seconds`: by `bleuprint plan`, before it. None: unknown.
    """

    seconds: float
    device: str
    processes: int
    threads: int
    commit: str | None
    tokens_per_second: float
    peak_memory: int | None = None
    devices: int | None = None
    sustained_flops: float | None = None
    flops_by_time: float | None = None
    peak_flops: float | None = None
    mfu: float | None = None
    versions: str | None = None
    forecast_seconds: float | None = None
    rates: Sequence[float] | None = None


def write_training(cell: Cell, training_sha256: str, training: Training) -> None:
    write_json(train_file(cell, training_sha256), dataclasses.asdict(training))


def read_training(cell: Cell, training_sha256: str, root: Path = Path()) -> Training | None:
    """What was measured of the training with this fingerprint, if it was measured here."""
    path = root / train_file(cell, training_sha256)
    if not path.exists():
        return None
    fields = dataclasses.fields(Training)
    required = (field.name for field in fields if field.default is dataclasses.MISSING)
    measured = read_object(path, required)
    with reading(path):
        _ = [float(measured[name]) for name in ("seconds", "tokens_per_second")]
    return Training(**{f.name: measured[f.name] for f in fields if f.name in measured})


def write_translation(
    cell: Cell, training_sha256: str, settings_sha256: str, seconds: float
) -> None:
    path = translate_file(cell, training_sha256, settings_sha256)
    write_json(path, {"seconds": round(seconds, 3)})


def read_translation(
    cell: Cell, training_sha256: str, settings_sha256: str, root: Path = Path()
) -> float | None:
    """The seconds that translating all test sets with these settings took, if measured here."""
    path = root / translate_file(cell, training_sha256, settings_sha256)
    return _seconds(path)


def write_stage(command: Sequence[str], seconds: float) -> None:
    """Record how long a stage took; `command`: its script and arguments."""
    write_json(_stage_file(command), {"seconds": round(seconds, 1)})


def read_stage(command: Sequence[str], root: Path = Path()) -> float | None:
    """The seconds that a stage took when it last ran here."""
    path = root / _stage_file(command)
    return _seconds(path)


def write_forecast(cell: Cell, settings_sha256: str, seconds: float) -> None:
    """Record the forecast for a training with these settings of model and training, and seed."""
    write_json(_forecast_file(cell, settings_sha256), {"seconds": round(seconds, 1)})


def read_forecast(cell: Cell, settings_sha256: str) -> float | None:
    """The seconds of the last forecast, if there was one."""
    return _seconds(_forecast_file(cell, settings_sha256))


def train_file(cell: Cell, training_sha256: str) -> Path:
    """The file of what was measured of a training."""
    return cell.timings / f"train-{training_sha256[:16]}.json"


def translate_file(cell: Cell, training_sha256: str, settings_sha256: str) -> Path:
    """The file of what was measured of a translation."""
    return cell.timings / f"translate-{training_sha256[:16]}-{settings_sha256[:16]}.json"


def _seconds(path: Path) -> float | None:
    if not path.exists():
        return None
    with reading(path):
        return float(read_object(path, ("seconds",))["seconds"])


def _stage_file(command: Sequence[str]) -> Path:
    script, *arguments = command
    return Path("timings", "stages", f"{'@'.join((Path(script).stem, *arguments))}.json")


def _forecast_file(cell: Cell, settings_sha256: str) -> Path:
    return cell.timings / f"forecast-{settings_sha256[:16]}.json"
