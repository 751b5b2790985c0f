"""Measures every stage that reads a corpus, at a large size: CPU time, memory and disk.

    python benchmarks/scaling.py measure /scratch/scaling --pairs 10000000
    python benchmarks/scaling.py measure /scratch/scaling --again split plan
    python benchmarks/scaling.py table benchmarks/measured/scaling-1m.json

The text is made up (made_up_text.py). `measure` writes it, runs the stages as `dvc repro` does, one
process after the other, and saves what each took in FOLDER/scaling.json. The same command continues
after an interruption with the stage that was interrupted; `--again` measures stages once more, and
nothing else. `table` prints the table of docs/scaling.md. Beyond the stages of a corpus there are:

- draw: split on the same text without published sets, which are then drawn from it
- train: 20 updates of a small system by two processes on CPUs
- plan: the plan of an epoch in 1, 2 and 4 processes, in bytes a pair (planned_epochs.py)

The machine may do other work: CPU seconds are then the measure of time, and seconds on the clock
are not. Memory and disk do not depend on it.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.json_files import write_json
from made_up_text import FAULTS, MadeUpText
from prepare import STAGES
from stage_cost import StageCost, measure

ROOT = Path(__file__).resolve().parent.parent
STATE = "scaling.json"
HELD_OUT_PAIRS = 3000
WORKERS = 2
SEED = 1
# The corpus whose sets are published, and the one whose sets are drawn.
CORPUS = "published"
DRAWN = "drawn"
DRAW = "draw"
TRAIN = "train"
PLAN = "plan"
SYSTEM = "tiny"
# The folders in data/ that scripts write, if they are not called after the script.
OUTPUT_FOLDERS = {
    "download": "raw",
    "tokenize_text": "tokens",
    "learn_vocabulary": "bpe",
    "binarize": "binary",
}


@dataclass(frozen=True)
class Step:
    """One step of the measurement: a stage, or `draw` or `train`.

    Attributes:
        name: The name of the step in the table.
        command: The command with its arguments.
        outputs: The folders that it writes, which are removed before it runs.
        processes: The number of processes that train.
    """

    name: str
    command: list[str]
    outputs: tuple[str, ...] = ()
    processes: int = 1


def main() -> None:
    """Measure the stages, or print the table of what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="measure all stages")
    measuring.add_argument("folder", type=Path, help="a folder with room for 12 texts")
    measuring.add_argument("--pairs", type=int, default=10_000_000)
    measuring.add_argument(
        "--again",
        nargs="+",
        default=[],
        choices=[*(step.name for step in steps()), PLAN],
        metavar="STAGE",
        help="stages to measure once more",
    )
    printing = commands.add_parser("table", help="print the table of measured stages")
    printing.add_argument("state", type=Path, help="the scaling.json of a measurement")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure_stages(arguments.folder, arguments.pairs, set(arguments.again))
    else:
        print_table(json.loads(arguments.state.read_text()))


def measure_stages(folder: Path, pairs: int, again: set[str]) -> None:
    """Measure the stages that have not been measured yet, and save the cost of each.

    Args:
        folder: The folder of the text, the outputs and the measured costs.
        pairs: The number of sentence pairs.
        again: The names of the stages to measure once more, and no others. If it is empty, the
            stages are measured that have not been measured yet.
    """
    state = read_state(folder, pairs)
    for step in steps():
        is_measured = step.name in state["steps"]
        is_wanted = step.name in again if again else not is_measured
        if not is_wanted:
            continue
        print(f"measuring {step.name}", flush=True)
        remove_outputs(step, folder)
        prepare_inputs(step, folder)
        cost = measure(step.command, folder, environment(step.processes), data=folder)
        recorded_cost = asdict(cost)
        recorded_cost["commit"] = commit()
        state["steps"][step.name] = recorded_cost
        write_json(folder / STATE, state)
    if PLAN in again or (not again and PLAN not in state):
        state[PLAN] = measure_plans(pairs)
        write_json(folder / STATE, state)
    print_table(state)


def remove_outputs(step: Step, folder: Path) -> None:
    """Remove the outputs of a step, also unfinished ones of a measurement that was interrupted.

    The step itself would remove unfinished ones while it is measured. Their size would then be
    missing in the size of its files.

    Args:
        step: The step that is measured next.
        folder: The folder of the measurement.
    """
    for output in step.outputs:
        path = folder / output
        for outdated_path in (path, *path.parent.glob(f".{path.name}.partial-*")):
            shutil.rmtree(outdated_path, ignore_errors=True)


def measure_plans(pairs: int) -> list[dict[str, Any]]:
    """Measure the memory of the plan of an epoch in several processes, by planned_epochs.py.

    Args:
        pairs: The number of sentence pairs.

    Returns:
        What it prints for each number of processes.
    """
    script = Path(__file__).with_name("planned_epochs.py")
    command = [sys.executable, str(script), "--pairs", str(pairs)]
    output = subprocess.check_output(command, env=environment(1), text=True)
    return [json.loads(line) for line in output.splitlines()]


def read_state(folder: Path, pairs: int) -> dict[str, Any]:
    """Return what was measured so far. At the first call for a folder, write the text first.

    Args:
        folder: The folder of the text and of the measured costs.
        pairs: The number of sentence pairs.
    """
    state_file = folder / STATE
    if state_file.exists():
        state: dict[str, Any] = json.loads(state_file.read_text())
        if state["pairs"] != pairs:
            sys.exit(
                f"{state_file} contains a measurement of {state['pairs']} pairs, not of {pairs}. "
                "Choose another folder, or the same --pairs"
            )
        return state
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    text = MadeUpText(SEED)
    text.write(inputs, "valid", HELD_OUT_PAIRS, has_faults=False)
    text.write(inputs, "test", HELD_OUT_PAIRS, has_faults=False)
    text.write(inputs, "train", pairs, has_faults=True)
    shutil.copyfile(Path(__file__).with_suffix(".yaml"), folder / "params.yaml")
    write_json(folder / RESOLVED, load_settings(folder / "params.yaml").resolved())
    state = {
        "pairs": pairs,
        "faults": FAULTS,
        "text_bytes": sum(path.stat().st_size for path in inputs.glob("train.*")),
        "machine": f"{processor_name()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "workers": WORKERS,
        "steps": {},
    }
    write_json(state_file, state)
    return state


def steps() -> list[Step]:
    """Return all steps, in the order in which they run."""
    split_script = str(ROOT / "stages" / "split.py")
    draw = Step(
        name=DRAW,
        command=[sys.executable, split_script, DRAWN],
        outputs=(f"data/split/{DRAWN}",),
    )
    train_script = str(ROOT / "stages" / "train.py")
    train = Step(
        name=TRAIN,
        command=[sys.executable, train_script, SYSTEM, CORPUS, str(SEED)],
        outputs=("models", "results", "work/trainings"),
        processes=WORKERS,
    )
    stages = [stage_step(stage) for stage in STAGES]
    return [*stages, draw, train]


def stage_step(stage: str) -> Step:
    """Return the step that runs a stage of the published corpus.

    Args:
        stage: The name of the stage's script.
    """
    command = [sys.executable, str(ROOT / "stages" / f"{stage}.py"), CORPUS]
    folder = OUTPUT_FOLDERS.get(stage, stage)
    return Step(stage.removesuffix("_text"), command, (f"data/{folder}/{CORPUS}",))


def prepare_inputs(step: Step, folder: Path) -> None:
    """Prepare what a step reads apart from the outputs of the steps before it.

    `draw` reads the filtered text of the published corpus. `train` reads the file that the stage
    fresh writes, and the code of this project.

    Args:
        step: The step that runs next.
        folder: The folder of the measurement.
    """
    if step.name == DRAW:
        link_filtered_text(folder / "data" / "filter")
    if step.name == TRAIN:
        script = str(ROOT / "stages" / "fresh.py")
        command = [sys.executable, script, SYSTEM, str(SEED)]
        subprocess.run(command, cwd=folder, env=environment(1), check=True)
        # A training records the fingerprint of its code, which it looks for in the project.
        for name in ("src", "stages"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(ROOT / name)


def link_filtered_text(filter_folder: Path) -> None:
    """Give the corpus whose sets are drawn the filtered training text of the published corpus.

    Args:
        filter_folder: The folder data/filter of the measurement.
    """
    drawn = filter_folder / DRAWN
    drawn.mkdir(parents=True, exist_ok=True)
    for path in (filter_folder / CORPUS).glob("train.*"):
        link = drawn / path.name
        link.unlink(missing_ok=True)
        link.hardlink_to(path)


def environment(processes: int) -> dict[str, str]:
    """Return the environment variables of a step.

    Args:
        processes: The number of processes that train.
    """
    variables = dict(os.environ)
    variables["BLEUPRINT_WORKERS"] = str(WORKERS)
    variables["BLEUPRINT_PROCESSES"] = str(processes)
    variables["PYTHONPATH"] = str(ROOT / "src")
    variables.pop("DVC_ROOT", None)  # It is set if this runs inside a DVC stage.
    return variables


def commit() -> str:
    """Return the git commit of the measured code, with "+" if files differ from it."""
    git = ["git", "-C", str(ROOT)]
    revision = subprocess.check_output([*git, "rev-parse", "--short=8", "HEAD"], text=True)
    changes = subprocess.check_output([*git, "status", "--porcelain", "-uno", "src"], text=True)
    return revision.strip() + ("+" if changes else "")


def processor_name() -> str:
    """Return the name of the processor, as Linux lists it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor()


def print_table(state: dict[str, Any]) -> None:
    """Print the measured cost of each stage as a table in Markdown, then those of the plans.

    Args:
        state: The content of scaling.json.
    """
    print("| stage | CPU, s | of these in workers | memory, MB | files, MB | files at most, MB |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, recorded in state["steps"].items():
        fields = dict(recorded)
        fields.pop("commit", None)
        cost = StageCost(**fields)
        # What is not CPU time of the first process is that of its workers.
        worker_share = 1 - cost.main_cpu_seconds / cost.cpu_seconds
        columns = (
            name,
            f"{cost.cpu_seconds:,.0f}",
            f"{max(worker_share, 0):.0%}",
            f"{cost.memory_bytes / 1e6:,.0f}",
            f"{cost.disk_bytes / 1e6:,.0f}",
            f"{cost.peak_disk_bytes / 1e6:,.0f}",
        )
        print(f"| {' | '.join(columns)} |")
    for plan in state.get(PLAN, []):
        print(f"{plan['processes']} processes, bytes a pair: {plan['bytes_per_pair']}")


if __name__ == "__main__":
    main()
