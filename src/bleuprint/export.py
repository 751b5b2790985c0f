"""What a finished training leaves for the stages after it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bleuprint import checkpoint, tracking
from bleuprint.files import read_json, whole_folder, write_json
from bleuprint.model import Transformer, count_parameters
from bleuprint.modelfile import describe, write_description
from bleuprint.processes import Group
from bleuprint.train import Fingerprints, Job, State


def export_checkpoints(job: Job, folder: Path, marks: Fingerprints, output: Path) -> None:
    """Copy the weights of the kept checkpoints to UPDATE.safetensors, and describe the model."""
    every = job.system.train.checkpoint_every
    paths = [p for p in sorted(folder.glob("checkpoint-*")) if checkpoint.update_of(p) % every == 0]
    with whole_folder(output) as partial:
        for path in paths[-job.system.train.keep_last :]:
            name = f"{checkpoint.update_of(path):07d}.safetensors"
            (partial / name).write_bytes((path / checkpoint.MODEL).read_bytes())
        vocabulary = job.corpus / "vocabulary.txt"
        write_description(partial, describe(job.system.model, vocabulary, marks.all))


def export_facts(job: Job, state: State, marks: Fingerprints, results: Path) -> None:
    """Write what repeats exactly: training.json (counts, fingerprints) and curves.json."""
    vocabulary = read_json(job.corpus / "corpus.json")["vocabulary"]
    with torch.device("meta"):
        parameters = count_parameters(Transformer(job.system.model, vocabulary))
    content: dict[str, Any] = {
        "parameters": parameters,
        "updates": state.update,
        "source_tokens": state.source_tokens,
        "target_tokens": state.position.tokens,
        "flops": state.flops,
        "valid_loss": state.validations[-1]["loss"],
        "fingerprint": marks.all,
        **asdict(marks),
    }
    write_json(results / "training.json", content)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})


def export_timing(state: State, group: Group, timing: Path) -> None:
    """Write what the clock and the machine say, for the table alone."""
    gpu = group.device.type == "cuda"
    content = {
        "seconds": round(state.seconds, 3),
        "device": torch.cuda.get_device_name(group.device) if gpu else processor(),
        "processes": group.size,
        "threads": torch.get_num_threads(),
        "commit": tracking.commit(),
        "tokens_per_second": round(state.position.tokens / max(state.seconds, 1e-9), 1),
    }
    write_json(timing, content)


def processor() -> str:
    """The processor's name as Linux tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "CPU"
