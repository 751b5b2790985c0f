"""Checks before a training starts: an intact corpus, fitting lengths, identical processes."""

from dataclasses import asdict

import psutil
import torch

from bleuprint.config.notes import lost_anchors, memory
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.linear import check_bfloat16
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError, say
from bleuprint.training.job import Fingerprints, Job


def check_training(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Raise UserError if the training cannot start; a damaged corpus: on rank 0, which reads it."""
    corpus = BinaryCorpus(job.corpus)
    if job.system.train.precision == "bfloat16":
        check_bfloat16(group.device, f"systems.{job.cell.system}.train.precision bfloat16")
    if group.is_main:
        corpus.verify()  # reads it whole
    for what, mark in asdict(fingerprints).items():
        if group.differs(mark):
            raise UserError(
                f"the {group.size} processes do not have the same {what}: they train together from "
                "one folder, or from copies that are alike"
            )
    _check_lengths(job, corpus)
    if group.is_main:
        for note in (*lost_anchors(), *memory(job.cell.system, job.system, *_memory_of(group))):
            say(note, "note")


def _memory_of(group: Group) -> tuple[int, str]:
    """The memory of a training process, in bytes, and what it is."""
    if group.device.type == "cuda":
        return torch.cuda.get_device_properties(group.device).total_memory, "GPU memory"
    return psutil.virtual_memory().total, "memory"


def _check_lengths(job: Job, corpus: BinaryCorpus) -> None:
    """Raise UserError if a sentence is too long for the model, or an update lacks tokens."""
    most, (setting, update) = job.system.model.max_positions, job.system.train.update_size
    for name in corpus.sets:
        # references of test sets are not read by the model
        for language in (corpus.source, corpus.target)[: 1 if name.startswith("test.") else 2]:
            lengths = corpus.side(name, language).lengths
            if not len(lengths) and not name.startswith("test."):
                raise UserError(f"corpus {job.cell.corpus}: {name}.{language} has no sentences")
            if (longest := int(lengths.max(initial=0))) > most:
                raise UserError(
                    f"corpus {job.cell.corpus}: line {int(lengths.argmax()) + 1} of {name}."
                    f"{language} has {longest} tokens with EOS, and model.max_positions of "
                    f"{job.cell.system} is {most}: raise it, or lower filter.length.max"
                )
    lengths = corpus.side("train", corpus.target).lengths
    by_tokens = job.system.train.tokens_per_update is not None
    size, what = (int(lengths.sum()), "target tokens") if by_tokens else (len(lengths), "pairs")
    if size < update:
        raise UserError(
            f"corpus {job.cell.corpus}: train has {size} {what}, less than one update of "
            f"{job.cell.system}: lower train.{setting} ({update})"
        )
