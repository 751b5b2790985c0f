"""The outputs of a training."""

import shutil
from dataclasses import asdict
from pathlib import Path

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.weights import write_description
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder, write_json
from bleuprint.training import checkpoint
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, EarlyEnd, TrainingFacts
from bleuprint.training.job import Job
from bleuprint.training.optimizer import ema_weights
from bleuprint.training.train_state import TrainState


def export_checkpoints(job: Job, folder: Path, fingerprints: Fingerprints, output: Path) -> None:
    """Export the kept checkpoints: UPDATE.safetensors, model.json, and checkpoints.json.

    With `train.ema`, also UPDATE.ema.safetensors: the moving average at the last one.
    """
    try:
        with atomic_folder(output) as partial:
            for path in checkpoint.paths(folder):
                state = checkpoint.read_state(path)
                weights = partial / f"{checkpoint.update_of(path):07d}.safetensors"
                shutil.copyfile(path / checkpoint.MODEL, weights)
            if (decay := job.system.train.ema) is not None:
                last = checkpoint.load(path)
                mean = ema_weights(last.optimizer, decay, last.update)
                file = partial / f"{last.update:07d}.ema.safetensors"
                checkpoint.save_tensors(mean, file, {"fingerprint": fingerprints.combined})
            metric, validations = job.system.train.validation_metric, state["validations"]
            record = CheckpointsRecord(fingerprints.combined, metric, validations)
            write_json(partial / CHECKPOINTS, asdict(record))
            corpus = BinaryCorpus(job.corpus_folder)
            write_description(partial, job.system.model, corpus, fingerprints.combined)
    except checkpoint.DamagedCheckpoint as error:
        raise UserError(f"{error}: remove it, or remove {folder} to train again") from None


def export_results(
    state: TrainState,
    fingerprints: Fingerprints,
    results: Path,
    early_end: EarlyEnd | None = None,
) -> None:
    """Write the reproducible results: training.json (counts, fingerprints) and curves.json.

    `early_end`: why the training ended early, if it did, which training.json then holds.
    """
    facts = TrainingFacts(
        parameters=state.parameters,
        updates=state.update,
        source_tokens=state.source_tokens,
        target_tokens=state.target_tokens,
        flops=state.flops,
        skipped=state.skipped,
        valid_loss=state.validations[-1]["loss"],
        fingerprint=fingerprints.combined,
        early_end=early_end,
        **fingerprints.by_name(),
    )
    given = {name: fact for name, fact in asdict(facts).items() if fact is not None}
    write_json(results / "training.json", given)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})
