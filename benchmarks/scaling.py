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

ROOT = Path(__file__).parent.parent
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
    """One step of the measurement.

    Attributes:
        name: Its name in the table.
        command: The command.
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
        again: The names of the stages to measure, although they were measured before; empty for
            all that were not.
    """
    state = read_state(folder, pairs)
    for step in steps():
        is_wanted = step.name in again if again else step.name not in state["steps"]
        if not is_wanted:
            continue
        print(f"measuring {step.name}", flush=True)
        for output in step.outputs:
            shutil.rmtree(folder / output, ignore_errors=True)
        prepare_inputs(step, folder)
        cost = measure(step.command, folder, environment(step.processes), data=folder)
        state["steps"][step.name] = {**asdict(cost), "commit": commit()}
        write_json(folder / STATE, state)
    if PLAN in again or (not again and PLAN not in state):
        state[PLAN] = measure_plans(pairs)
        write_json(folder / STATE, state)
    print_table(state)


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
    """Return what was measured so far; write the text first if nothing was.

    Args:
        folder: The folder of the text and of the measured costs.
        pairs: The number of sentence pairs.
    """
    state_file = folder / STATE
    if state_file.exists():
        state: dict[str, Any] = json.loads(state_file.read_text())
        if state["pairs"] != pairs:
            sys.exit(f"{state_file} is of {state['pairs']} pairs. Choose another folder")
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
    all_steps = [stage_step(stage) for stage in STAGES]
    split_script = str(ROOT / "stages" / "split.py")
    all_steps.append(Step(DRAW, [sys.executable, split_script, DRAWN], (f"data/split/{DRAWN}",)))
    train_script = [sys.executable, str(ROOT / "stages" / "train.py")]
    outputs = ("models", "results", "work/trainings")
    all_steps.append(
        Step(TRAIN, [*train_script, SYSTEM, CORPUS, str(SEED)], outputs, processes=WORKERS)
    )
    return all_steps


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

    `draw` reads the filtered text of the published corpus, and `train` the file of the stage fresh.

    Args:
        step: The step that runs next.
        folder: The folder of the measurement.
    """
    if step.name == TRAIN:
        script = str(ROOT / "stages" / "fresh.py")
        command = [sys.executable, script, SYSTEM, str(SEED)]
        subprocess.run(command, cwd=folder, env=environment(1), check=True)
        # A training records the fingerprint of its code, which it looks for in the project.
        for name in ("src", "stages"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(ROOT / name)
    if step.name != DRAW:
        return
    drawn = folder / "data" / "filter" / DRAWN
    drawn.mkdir(parents=True, exist_ok=True)
    for path in (folder / "data" / "filter" / CORPUS).glob("train.*"):
        link = drawn / path.name
        link.unlink(missing_ok=True)
        link.hardlink_to(path)


def environment(processes: int) -> dict[str, str]:
    """Return the environment variables of a step.

    Args:
        processes: The number of processes that train.
    """
    variables = {
        **os.environ,
        "BLEUPRINT_WORKERS": str(WORKERS),
        "BLEUPRINT_PROCESSES": str(processes),
        "PYTHONPATH": str(ROOT / "src"),
    }
    variables.pop("DVC_ROOT", None)  # set if this runs inside a DVC stage
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
    """Print the measured cost of each stage in Markdown.

    Args:
        state: The content of scaling.json.
    """
    print("| stage | CPU, s | of these in workers | memory, MB | files, MB | files at most, MB |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, recorded in state["steps"].items():
        fields = {key: value for key, value in recorded.items() if key != "commit"}
        cost = StageCost(**fields)
        parallel_share = 1 - cost.main_cpu_seconds / cost.cpu_seconds
        columns = (
            name,
            f"{cost.cpu_seconds:,.0f}",
            f"{max(parallel_share, 0):.0%}",
            f"{cost.memory_bytes / 1e6:,.0f}",
            f"{cost.disk_bytes / 1e6:,.0f}",
            f"{cost.peak_disk_bytes / 1e6:,.0f}",
        )
        print(f"| {' | '.join(columns)} |")
    for plan in state.get(PLAN, []):
        print(f"{plan['processes']} processes, bytes a pair: {plan['bytes_per_pair']}")


if __name__ == "__main__":
    main()
