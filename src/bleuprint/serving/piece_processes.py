"""Divides the pieces of a long text among processes, each of which translates one at a time.

On a machine with several GPUs, each process has one of them. With portable arithmetic, which uses
one thread and no GPU, there is a process for each core. Otherwise, this process uses all cores.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import TypeAlias

import torch

from bleuprint.model.arithmetic import is_portable
from bleuprint.runtime.distributed.gpus import hold_gpus_for_torch
from bleuprint.runtime.environment import worker_count
from bleuprint.runtime.process_pool import map_parts
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.visible_gpus import VISIBLE_GPUS
from bleuprint.serving.translated_pieces import PieceFolder, TextPiece

# A function that is told how many lines have been translated since it was called before.
Advance: TypeAlias = Callable[[int], object]
# Translates the lines of a piece, and calls an `Advance` from time to time.
TranslatePiece: TypeAlias = Callable[[TextPiece, Advance], list[str]]


def translate_pieces(
    load: Callable[[], TranslatePiece],
    pieces: Sequence[TextPiece],
    folder: PieceFolder,
    progress: Progress,
    max_processes: int | None = None,
) -> None:
    """Translate pieces of a text, and write each into a folder as soon as it is complete.

    The translations do not depend on the number of processes.

    Args:
        load: Loads the model, and returns the function that translates a piece. It is called once
            in each process, and is pickled if there are several.
        pieces: The pieces to translate, at least one.
        folder: The folder to write to.
        progress: Counts the translated lines.
        max_processes: The highest number of processes; None for one per GPU or core.
    """
    limit = len(pieces)
    if max_processes is not None:
        limit = min(limit, max_processes)
    # This process locks the GPUs for all processes that it starts, which end before it does.
    with hold_gpus_for_torch(max_gpus=limit) as gpus:
        process_count = _process_count(len(gpus), limit)
        if process_count > 1:
            _translate_in_processes(load, pieces, folder, progress, process_count, gpus)
            return
        translate_piece = load()
        for piece in pieces:
            folder.write(piece, translate_piece(piece, progress.advance))


def _translate_in_processes(
    load: Callable[[], TranslatePiece],
    pieces: Sequence[TextPiece],
    folder: PieceFolder,
    progress: Progress,
    process_count: int,
    gpus: Sequence[str],
) -> None:
    """Translate pieces of a text in several processes, and write each into a folder.

    Args:
        load: Loads the model, and returns the function that translates a piece.
        pieces: The pieces to translate.
        folder: The folder to write to.
        progress: Counts the lines of finished pieces.
        process_count: The number of processes.
        gpus: The names of the GPUs, one for each process; empty to translate on CPUs.
    """
    free_gpus: SimpleQueue[str] | None = None
    limit_variable = "BLEUPRINT_WORKERS"
    if gpus:
        # `map_parts` starts its processes by the same method, since torch is loaded.
        free_gpus = get_context("forkserver").SimpleQueue()
        for gpu in gpus:
            free_gpus.put(gpu)
        limit_variable = "BLEUPRINT_GPUS"
    threads = worker_count() // process_count
    line_counts = map_parts(
        partial(_prepare_process, load, folder, free_gpus, threads),
        pieces,
        process_count,
        min_parts=2,
        limit_variable=limit_variable,
    )
    for line_count in line_counts:
        progress.advance(line_count)


def _process_count(gpu_count: int, limit: int) -> int:
    """Return how many processes translate at the same time.

    On a CPU, native arithmetic may round differently with another number of threads. So the
    translation stays in one process, whose threads are those of every other stage.

    Args:
        gpu_count: The number of GPUs that this process holds.
        limit: The highest number of processes, at least 1.
    """
    if gpu_count > 0:
        return gpu_count
    if is_portable():
        return min(limit, worker_count())
    return 1


def _prepare_process(
    load: Callable[[], TranslatePiece],
    folder: PieceFolder,
    free_gpus: "SimpleQueue[str] | None",
    threads: int,
) -> Callable[[TextPiece], int]:
    """Load the model in a process that translates some of the pieces.

    Args:
        load: Loads the model, and returns the function that translates a piece.
        folder: The folder to write to.
        free_gpus: The GPUs that no process has taken yet; None to translate on a CPU.
        threads: The number of threads of a process with a GPU; 0 counts as 1. On a CPU, portable
            arithmetic has set the number.

    Returns:
        A function that translates a piece, writes it into the folder, and returns the number of its
        lines.
    """
    if free_gpus is None:
        translate_piece = load()
    else:
        torch.set_num_threads(max(1, threads))
        translate_piece = _load_on_free_gpu(load, free_gpus)

    def translate_and_write(piece: TextPiece) -> int:
        """Translate a piece, and return the number of its lines."""
        folder.write(piece, translate_piece(piece, _ignore_progress))
        return piece.line_count

    return translate_and_write


def _load_on_free_gpu(
    load: Callable[[], TranslatePiece], free_gpus: "SimpleQueue[str]"
) -> TranslatePiece:
    """Take a GPU that no process has taken yet, and load the model on it.

    If the model cannot be loaded, the GPU is given back: for its next piece, the process calls this
    function again, and would wait for ever for a GPU.

    Args:
        load: Loads the model, and returns the function that translates a piece.
        free_gpus: The names of the GPUs that no process has taken yet.
    """
    gpu = free_gpus.get()
    # CUDA reads the variable when a GPU is used for the first time.
    os.environ[VISIBLE_GPUS] = gpu
    try:
        return load()
    except BaseException:
        free_gpus.put(gpu)
        raise


def _ignore_progress(line_count: int) -> None:
    """Show no progress within a piece, since several processes translate."""
