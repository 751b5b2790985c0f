"""What a finished training leaves for the stages after it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint import checkpoint
from bleuprint.binary import BinaryCorpus
from bleuprint.errors import UserError
from bleuprint.files import whole_folder, write_json
from bleuprint.job import Fingerprints, Job
from bleuprint.machine import (
    flops_by_time,
    hardware_of,
    measured_flops,
    paper_flops,
    peak_flops,
    utilization,
)
from bleuprint.modelfile import describe, write_description
from bleuprint.processes import Group
from bleuprint.state import State


def export_checkpoints(job: Job, folder: Path, marks: Fingerprints, output: Path) -> None:
    """Copy the weights of the kept checkpoints to UPDATE.safetensors, and describe the model.

    checkpoints.json says how the training's validations went.
    """
    kept = checkpoint.paths(folder)
    try:
        with whole_folder(output) as partial:
            for path in kept:
                update = checkpoint.update_of(path)
                checkpoint.copy_model(path, partial / f"{update:07d}.safetensors")
            record = {
                "fingerprint": marks.all,
                "measure": job.system.train.measure,
                "validations": checkpoint.state_of(kept[-1])["validations"],
            }
            write_json(partial / "checkpoints.json", record)
            corpus = BinaryCorpus(job.corpus)
            write_description(partial, describe(job.system.model, corpus, marks.all))
    except checkpoint.Damaged as error:
        raise UserError(f"{error}: remove it to do without, or {folder} to train again") from None


def export_facts(state: State, marks: Fingerprints, results: Path) -> None:
    """Write what repeats exactly: training.json (counts, fingerprints) and curves.json."""
    content: dict[str, Any] = {
        "parameters": state.parameters,
        "updates": state.update,
        "source_tokens": state.source_tokens,
        "target_tokens": state.target_tokens,
        "flops": state.flops,
        "skipped": state.skipped,
        "valid_loss": state.validations[-1]["loss"],
        "fingerprint": marks.all,
        **asdict(marks),
    }
    write_json(results / "training.json", content)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})


def export_timing(state: State, timing: Path, precision: str, group: Group) -> None:
    """Write what the clock and the machine say, for the table alone.

    A training that was interrupted and resumed elsewhere names all its machines.
    """

    def joined(name: str) -> Any:
        values = list(dict.fromkeys(machine[name] for machine in state.machines))
        return values[0] if len(values) == 1 else " + ".join(map(str, values))

    content = {
        "seconds": round(state.seconds, 3),
        **{name: joined(name) for name in ("device", "processes", "threads", "commit", "versions")},
        "tokens_per_second": round(state.target_tokens / max(state.seconds, 1e-9), 1),
        "rates": [round(rate, 1) for rate in state.rates],
        **_cost_by_time(state, precision, group),
    }
    write_json(timing, content)


def _cost_by_time(state: State, precision: str, group: Group) -> dict[str, Any]:
    """What the training cost as the paper reckons, and the share it got of the devices' peak.

    Nothing where it ran on unlike machines: how long on each is not known. None for what would
    have to be measured but cannot be: here are other devices, or they are slower now, with other
    work, than the training was.
    """
    here = hardware_of(group)
    ran = [{name: machine[name] for name in here} for machine in state.machines]
    if any(hardware != ran[0] for hardware in ran):
        return {}
    device, devices, seconds = ran[0]["device"], ran[0]["processes"], max(state.seconds, 1e-9)
    measured = measured_flops(group.device, precision) if ran[0] == here else None
    if measured and utilization(state.flops, seconds, devices, measured) > 1:
        measured = None
    paper, known = paper_flops(device), peak_flops(device, precision)
    sustained, peak = paper or measured, known or measured
    return {
        "devices": devices,
        "sustained_flops": sustained,
        "sustained_from": "paper" if paper else measured and "measured",
        "flops_by_time": sustained and flops_by_time(seconds, devices, sustained),
        "peak_flops": peak,
        "peak_from": "known" if known else measured and "measured",
        "mfu": peak and round(utilization(state.flops, seconds, devices, peak), 4),
    }
