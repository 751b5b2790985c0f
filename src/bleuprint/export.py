"""What a finished training leaves for the stages after it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint import checkpoint
from bleuprint.binary import BinaryCorpus
from bleuprint.files import whole_folder, write_json
from bleuprint.modelfile import describe, write_description
from bleuprint.train import Fingerprints, Job, State


def export_checkpoints(job: Job, folder: Path, marks: Fingerprints, output: Path) -> None:
    """Copy the weights of the kept checkpoints to UPDATE.safetensors, and describe the model."""
    every = job.system.train.checkpoint_every
    paths = [p for p in sorted(folder.glob("checkpoint-*")) if checkpoint.update_of(p) % every == 0]
    with whole_folder(output) as partial:
        for path in paths[-job.system.train.keep_last :]:
            name = f"{checkpoint.update_of(path):07d}.safetensors"
            (partial / name).write_bytes((path / checkpoint.MODEL).read_bytes())
        write_description(partial, describe(job.system.model, BinaryCorpus(job.corpus), marks.all))


def export_facts(state: State, marks: Fingerprints, results: Path) -> None:
    """Write what repeats exactly: training.json (counts, fingerprints) and curves.json."""
    content: dict[str, Any] = {
        "parameters": state.parameters,
        "updates": state.update,
        "source_tokens": state.source_tokens,
        "target_tokens": state.target_tokens,
        "flops": state.flops,
        "valid_loss": state.validations[-1]["loss"],
        "fingerprint": marks.all,
        **asdict(marks),
    }
    write_json(results / "training.json", content)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})


def export_timing(state: State, timing: Path) -> None:
    """Write what the clock and the machine say, for the table alone.

    A training that was interrupted and resumed elsewhere names all its machines.
    """

    def joined(name: str) -> Any:
        values = list(dict.fromkeys(machine[name] for machine in state.machines))
        return values[0] if len(values) == 1 else " + ".join(map(str, values))

    content = {
        "seconds": round(state.seconds, 3),
        **{name: joined(name) for name in ("device", "processes", "threads", "commit")},
        "tokens_per_second": round(state.target_tokens / max(state.seconds, 1e-9), 1),
    }
    write_json(timing, content)
