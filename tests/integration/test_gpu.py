"""Training and search on a GPU agree with the CPU's; BLEUPRINT_TEST_DEVICE=cpu tries the tests."""

import os
from itertools import islice

import pytest
import torch

import systems
import trainings
from bleuprint.config.optimization import Constant, LrSchedule, Optimizer
from bleuprint.config.paths import Run
from bleuprint.dataset.batching import Position
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.decoding.engine import Engine
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_json
from bleuprint.training.data_loader import local_updates
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer
from bleuprint.training.train_step import TrainStep
from bleuprint.training.trainer import Trainer
from prepared import prepare
from requirements import GPU, TWO_GPUS, needs
from trainings import merges, project, toy_pairs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
pytestmark = [
    pytest.mark.gpu,
    needs(GPU, DEVICE.type != "cuda" or torch.cuda.is_available()),
]
CPU = torch.device("cpu")
UPDATES = 20
HEADS = {"d_k": 16, "d_v": 16}  # head sizes for which bleuprint's kernels compute attention
# Largest relative differences from the CPU's float32, of losses and of gradients by parameter.
PRECISIONS = {
    "float32": (1e-3, 2e-3),
    "tf32": (1e-2, 2e-2),
    "bfloat16": (2e-2, 1e-1),
    "float16": (1e-2, 2e-2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    sets = {"train": toy_pairs(300, 1), "valid": toy_pairs(20, 2), "test.x": toy_pairs(40, 3)}
    prepare(folder, sets, units=merges(40))
    return folder


@pytest.fixture
def train(folder, tmp_path):
    """Return a function that trains a model on a device, in a new folder or in the folder `to`.

    It returns the losses per token, and the weights before and after.
    """

    def train(device, *, to=None, dropout=0.0, **settings):
        if settings.get("compile"):
            torch.compiler.reset()  # it compiles a function a few times only
        to = to or tmp_path / str(len(list(tmp_path.iterdir())))
        to.mkdir(exist_ok=True)
        given = {"tokens_per_update": 300, "max_tokens": 100, "max_updates": UPDATES, **settings}
        system = systems.system(
            model=systems.model(dropout=dropout, **HEADS), train=systems.train(**given)
        )
        job = Job(Run("micro", "toy", 3), system, folder / "binary", folder / "split", "code")
        group = Group(0, 1, device)
        trainer = Trainer(job, group, to, Fingerprints.from_job(job), Observer())
        before = copied(trainer.model)
        trainer.run()
        return [point["loss"] for point in trainer.state.curve], before, copied(trainer.model)

    return train


def copied(model):
    return {name: weight.cpu().clone() for name, weight in named_weights(model).items()}


def check_losses(train, precision, compiled):
    """Compare the losses of a training run on the device with the losses on the CPU."""
    expected, _, _ = train(CPU)
    losses, _, _ = train(DEVICE, precision=precision, compile=compiled)
    tolerance, _ = PRECISIONS[precision]
    assert losses == pytest.approx(expected, rel=tolerance)
    assert len(losses) == UPDATES
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_losses_are_those_of_the_cpu(train, precision):
    check_losses(train, precision, compiled=False)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_gradient_of_each_parameter_is_that_of_the_cpu(train, precision):
    """With a learning rate of 1, SGD subtracts the gradient."""
    sgd = {
        "optimizer": Optimizer(name="sgd"),
        "lr_schedule": LrSchedule(constant=Constant(lr=1.0)),
        "clip_norm": 0.0,
        "max_updates": 1,
    }
    gradients = []
    for device, settings in ((CPU, {}), (DEVICE, {"precision": precision})):
        _, before, after = train(device, tokens_per_update=100, **sgd, **settings)
        gradients.append({name: before[name] - after[name] for name in before})
    expected, found = gradients
    norms = {name: float(gradient.norm()) for name, gradient in expected.items()}
    differences = {name: float((found[name] - expected[name]).norm()) for name in expected}
    _, tolerance = PRECISIONS[precision]
    assert min(norms.values()) > 0
    assert {
        name: norms[name] for name in norms if differences[name] > tolerance * norms[name]
    } == {}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_goes_on_from_a_checkpoint(train, tmp_path, precision):
    """The result is exact on a CPU, and within a tolerance on a GPU, which adds in any order."""
    settings = {"dropout": 0.1, "precision": precision}
    losses, _, weights = train(DEVICE, **settings)
    first, _, half = train(DEVICE, to=tmp_path / "twice", max_updates=UPDATES // 2, **settings)
    both, resumed, again = train(DEVICE, to=tmp_path / "twice", **settings)
    assert all(torch.equal(resumed[name], weight) for name, weight in half.items())
    tolerance, _ = PRECISIONS[precision]
    exactly = DEVICE == CPU
    assert both == pytest.approx(losses, rel=0 if exactly else tolerance)
    assert both[: len(first)] == first
    difference, size = (
        torch.cat([each.flatten() for each in vector]).norm()
        for vector in ([again[name] - weights[name] for name in weights], weights.values())
    )
    assert difference <= (0 if exactly else 0.02 * size)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_no_update_waits_for_the_device(folder, precision):
    """The first update of each shape may wait: CUDA graphs record the kernels of packed batches.

    So each update runs once before waiting becomes an error.
    """
    corpus, group = BinaryCorpus(folder / "binary"), Group(0, 1, DEVICE)
    train = systems.train(tokens_per_update=300, max_tokens=100, precision=precision, compile=False)
    system = systems.system(model=systems.model(**HEADS), train=train)
    size = len(corpus.segmentation("de").vocabulary)
    step = TrainStep(Transformer(system.model, size, size).to(DEVICE), train, 1, group)
    updates = list(islice(local_updates(corpus, system, 1, Position(), group), UPDATES))
    for number, local in enumerate(updates, 1):
        step.read_stats(step.update(number, local))
    packed = isinstance(updates[0].batches[0][0], PackedBatch)
    assert packed == (DEVICE != CPU and precision != "float32")
    if DEVICE != CPU:
        torch.cuda.set_sync_debug_mode("error")
    try:
        pending = [step.update(UPDATES + n, local) for n, local in enumerate(updates, 1)]
    finally:
        if DEVICE != CPU:
            torch.cuda.set_sync_debug_mode("default")
    losses = [step.read_stats(each).loss for each in pending]
    assert losses[-1] < losses[0]


@needs(TWO_GPUS, DEVICE == CPU or torch.cuda.device_count() >= 2)
def test_two_devices_train_as_one(tmp_path_factory):
    roots = [project(tmp_path_factory.mktemp(str(count))) for count in (1, 2)]
    for count, root in enumerate(roots, 1):
        trainings.train(root, count)
    curves = [
        read_json(root / "results" / "micro" / "toy" / "1" / "curves.json")["training"]
        for root in roots
    ]
    one, two = ([point["loss"] for point in curve] for curve in curves)
    assert two == pytest.approx(one, rel=1e-3)


def test_the_search_finds_what_it_finds_on_the_cpu(folder):
    torch.set_float32_matmul_precision("highest")  # trainings of the tests above leave TF32
    corpus = BinaryCorpus(folder / "binary")
    torch.manual_seed(8)
    size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), size, size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # far from even probabilities, so that searches differ
    side = corpus.side("test.x", corpus.source)
    found = {}
    for device in (CPU, DEVICE):
        engine = Engine(model.to(device), systems.decode(beam=4))
        found[device] = [best[0].tokens for best in engine.search(side, side.lengths)]
    assert found[DEVICE] == found[CPU]
    assert len({tuple(tokens) for tokens in found[CPU]}) > 10


# These tests come last, since each compiles for a minute; on the CPU, bfloat16 takes several.
COMPILED = ["float32"] if DEVICE == CPU else ["float32", "bfloat16"]


@pytest.mark.parametrize("precision", COMPILED)
def test_losses_of_compiled_layers_are_those_of_the_cpu(train, precision):
    check_losses(train, precision, compiled=True)
