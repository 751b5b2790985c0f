"""How the cores and the GPUs of a machine are divided among the stages that run side by side.

A stage that computes on GPUs takes GPUs, and with each of them its part of the cores. Any other
stage takes cores only. Both runners, `make reproduce` and Snakemake, divide a machine by these
functions. The stage itself then locks its GPUs (runtime/gpu_locks.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bleuprint.pipeline.graph import Stage
from bleuprint.runtime import environment, processor
from bleuprint.runtime.visible_gpus import are_parts_of_gpus, visible_gpus


@dataclass(frozen=True)
class MachineShare:
    """A part of a machine: what a stage uses, or what is free.

    Attributes:
        cores: The number of cores.
        gpus: The number of GPUs.
    """

    cores: int
    gpus: int


def whole_machine() -> MachineShare:
    """Return all cores and GPUs that this process may use."""
    return MachineShare(cores=processor.THIS.cores, gpus=len(visible_gpus()))


def uses_gpu(stage: Stage, machine: MachineShare) -> bool:
    """Return whether a stage computes on GPUs of a machine."""
    return stage.gpu > 0 and machine.gpus > 0


def gpus_for(stage: Stage, available_gpus: int, waiting_trainings: int, waiting_stages: int) -> int:
    """Return how many GPUs a stage gets on a machine that has some.

    Trainings share the GPUs equally. If no training waits, a stage that can divide its text, such
    as back_translate, gets the same share as every other waiting stage. A stage that may not use
    all of its share gets less, so that other stages can use the rest. Any other stage, such as
    translate, computes on one GPU.

    Args:
        stage: A stage that computes on GPUs.
        available_gpus: The number of GPUs to divide.
        waiting_trainings: The number of trainings that divide them, this one included.
        waiting_stages: The number of all stages that wait for a GPU, this one included.

    Raises:
        UserError: The environment variable BLEUPRINT_GPUS or BLEUPRINT_PROCESSES is not a number.
    """
    limits = [environment.gpu_limit()]
    if stage.kind == "train":
        limits.append(available_gpus // max(1, waiting_trainings))
        limits.append(environment.process_count())
    elif stage.is_sharded and waiting_trainings == 0:
        limits.append(available_gpus // waiting_stages)
    else:
        limits.append(1)
    if are_parts_of_gpus():
        limits.append(1)
    return max(1, min(limit for limit in limits if limit is not None))


def cores_beside_gpus(gpus: int, machine: MachineShare) -> int:
    """Return the number of cores that a stage on some GPUs uses, at least one.

    A process that computes on a GPU needs few cores: for loading data, and for starting kernels. So
    the cores are divided into equal parts, one for each GPU. One more part is left for the stages
    without a GPU, which would otherwise wait until all trainings have ended.

    Args:
        gpus: The number of GPUs of the stage.
        machine: The whole machine.
    """
    return max(1, machine.cores * gpus // (machine.gpus + 1))


def share_on_gpus(
    stage: Stage, stages_of_run: Iterable[Stage], machine: MachineShare
) -> MachineShare:
    """Return the GPUs that a stage gets if all GPUs are divided once, and its part of the cores.

    This is for Snakemake, which asks only once for each job. So the GPUs are divided among all
    stages of the run, whether they are waiting, running or finished.

    Args:
        stage: A stage that computes on GPUs.
        stages_of_run: The other stages of the run, among which the GPUs are divided; with or
            without `stage` itself.
        machine: The whole machine.
    """
    sharing_stages = list(stages_of_run)
    if stage not in sharing_stages:
        # Snakemake also runs stages that DVC finds unchanged, because an output is missing.
        sharing_stages.append(stage)
    trainings = 0
    gpu_stages = 0
    for sharing_stage in sharing_stages:
        if not uses_gpu(sharing_stage, machine):
            continue
        gpu_stages += 1
        if sharing_stage.kind == "train":
            trainings += 1
    # On two cores, as with `snakemake -c2`, no more than two stages run at a time.
    simultaneous_trainings = min(trainings, machine.cores)
    simultaneous_stages = min(gpu_stages, machine.cores)
    gpus = gpus_for(stage, machine.gpus, simultaneous_trainings, simultaneous_stages)
    return MachineShare(cores=cores_beside_gpus(gpus, machine), gpus=gpus)


def cores_for(stage: Stage, free_cores: int, waiting_stages: int, machine: MachineShare) -> int:
    """Return how many cores a stage gets that computes on no GPU.

    A training with several threads gets all cores, so that it runs alone. So does any other stage
    for which dvc.yaml reserves a GPU that this machine does not have. A stage with one thread gets
    one core. The remaining stages get an equal share of the free cores, and at least one.

    Args:
        stage: The stage that starts next.
        free_cores: The number of cores that no running stage uses.
        waiting_stages: The number of stages that could start now, this one included.
        machine: The whole machine.
    """
    if stage.gpu:
        return machine.cores
    if stage.threads == 1:
        return 1
    return max(1, free_cores // waiting_stages)
