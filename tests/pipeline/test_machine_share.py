"""How stages that run side by side divide the cores and GPUs of a machine."""

from dataclasses import replace

import pytest

from bleuprint.pipeline.graph import load_stages
from bleuprint.pipeline.machine_share import (
    MachineShare,
    cores_beside_gpus,
    cores_for,
    gpus_for,
    share_on_gpus,
)


@pytest.fixture(scope="module")
def clean(stand_in):
    """Return the stage clean@own, which can use eight threads and no GPU."""
    (stage,) = (stage for stage in load_stages(stand_in.root) if stage.name == "clean@own")
    assert stage.threads == 8
    return stage


@pytest.mark.parametrize(
    ("threads", "gpu", "free_cores", "waiting_stages", "expected_cores"),
    [
        pytest.param(8, 0, 8, 1, 8, id="alone: all free cores"),
        pytest.param(8, 0, 5, 2, 2, id="two stages wait: half of five cores, rounded down"),
        pytest.param(8, 0, 0, 1, 1, id="no free core: asks for one and waits"),
        pytest.param(1, 0, 8, 1, 1, id="one thread: one core"),
        pytest.param(8, 1, 3, 1, 8, id="for a GPU that the machine lacks: all cores"),
    ],
)
def test_a_stage_gets_its_share_of_eight_cores(
    clean, threads, gpu, free_cores, waiting_stages, expected_cores
):
    """The machine has eight cores. The runner starts the next stage when enough cores are free.

    dvc.yaml says for each stage how many threads and GPUs it can use.
    """
    stage = replace(clean, threads=threads, gpu=gpu)

    cores = cores_for(stage, free_cores, waiting_stages, MachineShare(cores=8, gpus=0))

    assert cores == expected_cores


@pytest.mark.parametrize(
    ("waiting_trainings", "expected_gpus"),
    [
        pytest.param(1, 8, id="alone: all"),
        pytest.param(2, 4, id="half"),
        pytest.param(3, 2, id="a third, rounded down"),
        pytest.param(50, 1, id="more trainings than GPUs: one"),
    ],
)
def test_trainings_divide_eight_gpus(clean, waiting_trainings, expected_gpus):
    training = replace(clean, name="train@tiny-own-1", gpu=1)

    gpus = gpus_for(training, 8, waiting_trainings, waiting_stages=60)

    assert gpus == expected_gpus


@pytest.mark.parametrize(
    ("variables", "expected_gpus"),
    [
        pytest.param({"BLEUPRINT_GPUS": "1"}, 1, id="the user's limit"),
        pytest.param({"BLEUPRINT_PROCESSES": "2"}, 2, id="two processes"),
        pytest.param({"BLEUPRINT_GPUS": "3", "BLEUPRINT_PROCESSES": "8"}, 3, id="both"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b,MIG-c"}, 1, id="parts of GPUs"),
    ],
)
def test_a_training_that_may_not_use_its_share_leaves_the_rest(
    clean, monkeypatch, variables, expected_gpus
):
    """Two trainings divide eight GPUs. What they leave is for translations, for example."""
    training = replace(clean, name="train@tiny-own-1", gpu=1)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert gpus_for(training, 8, waiting_trainings=2, waiting_stages=2) == expected_gpus


@pytest.mark.parametrize("kind", ["translate", "comet"])
def test_stages_that_cannot_divide_their_text_compute_on_one_gpu(clean, kind):
    stage = replace(clean, name=f"{kind}@tiny-own-1", gpu=1, is_sharded=False)

    assert gpus_for(stage, 8, waiting_trainings=0, waiting_stages=1) == 1


@pytest.mark.parametrize(
    ("waiting_trainings", "waiting_stages", "expected_gpus"),
    [
        pytest.param(0, 1, 8, id="alone: all"),
        pytest.param(0, 2, 4, id="two texts: half"),
        pytest.param(0, 20, 1, id="more stages than GPUs: one"),
        pytest.param(1, 2, 1, id="beside a training: one"),
    ],
)
def test_the_translation_of_a_synthetic_text_uses_the_gpus_that_no_training_needs(
    clean, waiting_trainings, waiting_stages, expected_gpus
):
    stage = replace(clean, name="back_translate@german", gpu=1, is_sharded=True)

    assert gpus_for(stage, 8, waiting_trainings, waiting_stages) == expected_gpus


@pytest.mark.parametrize("kind", ["train", "back_translate"])
def test_a_stage_that_runs_only_for_a_missing_output_counts_itself(clean, kind):
    """Snakemake runs it although DVC finds it unchanged, so it is not among the stages of the run.

    Here no other stage runs: it gets both GPUs, and two of three parts of the nine cores.
    """
    stage = replace(clean, name=f"{kind}@german", gpu=1, is_sharded=True)

    share = share_on_gpus(stage, stages_of_run=[], machine=MachineShare(cores=9, gpus=2))

    assert share == MachineShare(cores=6, gpus=2)


@pytest.mark.parametrize(("gpus", "expected_cores"), [(8, 56), (3, 21), (1, 7)])
def test_eight_gpus_get_eight_of_nine_equal_parts_of_the_cores(gpus, expected_cores):
    """The ninth part is left for the stages without a GPU."""
    assert cores_beside_gpus(gpus, MachineShare(cores=63, gpus=8)) == expected_cores


def test_a_stage_on_a_gpu_has_at_least_one_core():
    """A machine may have fewer cores than GPUs."""
    assert cores_beside_gpus(1, MachineShare(cores=2, gpus=8)) == 1
