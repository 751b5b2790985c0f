"""The outputs of a finished training: exported checkpoints, counts and curves."""

import shutil
from dataclasses import asdict
from pathlib import Path

from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.weights import write_description
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.training import checkpoint
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.history import CHECKPOINTS, CheckpointsRecord, EarlyEnd, TrainingFacts
from bleuprint.training.job import Job
from bleuprint.training.optimizer import ema_weights
from bleuprint.training.train_state import TrainState


def export_checkpoints(
    job: Job, work_folder: Path, fingerprints: Fingerprints, output: Path
) -> None:
    """Export the weights of a finished training's checkpoints, for the stages that average them.

    The checkpoints also contain the state of the optimizer, which is not needed any more. The
    folder `output` gets these files:

    - UPDATE.safetensors, the weights of each checkpoint
    - UPDATE.ema.safetensors, the moving average of the weights at the last checkpoint, if the
      setting `train.ema` is given
    - model.json, which describes the model
    - checkpoints.json, the fingerprint of the training and its validations

    Args:
        job: The training.
        work_folder: The folder of its checkpoints.
        fingerprints: The fingerprints of the training.
        output: The folder to write.

    Raises:
        UserError: A checkpoint is damaged.
    """
    train = job.system.train
    try:
        with atomic_folder(output) as unfinished_output:
            paths = checkpoint.paths(work_folder)
            # Oldest first, so `last_state` is the state at the end of the training.
            for path in paths:
                last_state = checkpoint.read_state(path)
                weights = unfinished_output / f"{checkpoint.update_of(path):07d}.safetensors"
                shutil.copyfile(path / checkpoint.MODEL, weights)
            if train.ema is not None:
                _export_moving_average(paths[-1], train.ema, fingerprints, unfinished_output)
            record = CheckpointsRecord(
                fingerprint=fingerprints.combined,
                validation_metric=train.validation_metric,
                validations=last_state["validations"],
            )
            write_json(unfinished_output / CHECKPOINTS, asdict(record))
            corpus = BinaryCorpus(job.corpus_folder)
            write_description(unfinished_output, job.system.model, corpus, fingerprints.combined)
    except checkpoint.DamagedCheckpoint as error:
        raise UserError(f"{error}. Remove it, or remove {work_folder} to train again") from None


def _export_moving_average(
    path: Path, decay: float, fingerprints: Fingerprints, output: Path
) -> None:
    """Write the moving average of the weights that a checkpoint contains.

    It is part of the optimizer's state. The file is named by the number of updates, such as
    0012000.ema.safetensors, and its header contains the fingerprint that identifies the training.

    Args:
        path: The folder of the checkpoint.
        decay: The setting `train.ema`, such as 0.999.
        fingerprints: The fingerprints of the training.
        output: The folder to write into.
    """
    last_checkpoint = checkpoint.load(path)
    update = last_checkpoint.update
    weights = ema_weights(last_checkpoint.optimizer, decay, update)
    file = output / f"{update:07d}.ema.safetensors"
    checkpoint.save_tensors(weights, file, {"fingerprint": fingerprints.combined})


def export_results(
    state: TrainState,
    fingerprints: Fingerprints,
    results: Path,
    early_end: EarlyEnd | None = None,
) -> None:
    """Write training.json, the counts of a finished training, and curves.json, its learning curves.

    They contain no times, so a training that is repeated writes the same files.

    Args:
        state: The state of the finished training.
        fingerprints: The fingerprints of the training.
        results: The folder to write into.
        early_end: Why early stopping ended the training; None if it did not.
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
    # A fact that is None is not written, so that the file is the same as earlier versions wrote.
    known_facts = {name: fact for name, fact in asdict(facts).items() if fact is not None}
    write_json(results / "training.json", known_facts)
    write_json(results / "curves.json", {"training": state.curve, "validation": state.validations})
