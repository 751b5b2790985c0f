"""What a finished training leaves for the stages after it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.weights import model_description, write_description
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder, write_json
from bleuprint.training import checkpoint
from bleuprint.training.job import Fingerprints, Job
from bleuprint.training.train_state import State


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
                "validation_metric": job.system.train.validation_metric,
                "validations": checkpoint.state_of(kept[-1])["validations"],
            }
            write_json(partial / "checkpoints.json", record)
            corpus = BinaryCorpus(job.corpus)
            write_description(partial, model_description(job.system.model, corpus, marks.all))
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
