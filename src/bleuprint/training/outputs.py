"""The outputs of a finished training."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.weights import model_description, write_description
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder, write_json
from bleuprint.training import checkpoint
from bleuprint.training.job import Fingerprints, Job
from bleuprint.training.train_state import TrainState


def export_checkpoints(job: Job, folder: Path, fingerprints: Fingerprints, output: Path) -> None:
    """Export the kept checkpoints: UPDATE.safetensors, model.json, and checkpoints.json.

    checkpoints.json contains the validations, by which the best checkpoints are chosen.
    """
    kept = checkpoint.paths(folder)
    try:
        with whole_folder(output) as partial:
            for path in kept:
                update = checkpoint.update_of(path)
                checkpoint.copy_model(path, partial / f"{update:07d}.safetensors")
            record = {
                "fingerprint": fingerprints.all,
                "validation_metric": job.system.train.validation_metric,
                "validations": checkpoint.read_state(kept[-1])["validations"],
            }
            write_json(partial / "checkpoints.json", record)
            corpus = BinaryCorpus(job.corpus)
            write_description(
                partial, model_description(job.system.model, corpus, fingerprints.all)
            )
    except checkpoint.DamagedCheckpoint as error:
        raise UserError(f"{error}: remove it, or remove {folder} to train again") from None


def export_results(state: TrainState, fingerprints: Fingerprints, results: Path) -> None:
    """Write the reproducible results: training.json (counts, fingerprints) and curves.json."""
    content: dict[str, Any] = {
        "parameters": state.parameters,
        "updates": state.update,
        "source_tokens": state.source_tokens,
        "target_tokens": state.target_tokens,
        "flops": state.flops,
        "skipped": state.skipped,
        "valid_loss": state.validations[-1]["loss"],
        "fingerprint": fingerprints.all,
        **asdict(fingerprints),
    }
    write_json(results / "training.json", content)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})
