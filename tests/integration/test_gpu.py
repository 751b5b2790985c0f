"""Training and search on a GPU agree with the CPU's; BLEUPRINT_TEST_DEVICE=cpu tries the tests."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace

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
from bleuprint.runtime.json_files import read_json
from bleuprint.training.data_loader import local_updates
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer
from bleuprint.training.train_step import TrainStep
from bleuprint.training.trainer import Trainer
from prepared import prepare
from requirements import GPU, TWO_GPUS, needs
from trainings import bpe_units, make_project, toy_pairs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
CPU = torch.device("cpu")
pytestmark = [
    pytest.mark.gpu,
    needs(GPU, DEVICE.type != "cuda" or torch.cuda.is_available()),
]
UPDATES = 20
# Sizes of heads for which bleuprint's own kernels compute attention.
HEAD_SIZES = {"d_k": 16, "d_v": 16}


@dataclass(frozen=True)
class Tolerance:
    """The largest relative differences of a precision from float32 on the CPU.

    Attributes:
        loss: The difference of a loss.
        gradient: The norm of the difference of a parameter's gradient.
    """

    loss: float
    gradient: float


TOLERANCES = {
    "float32": Tolerance(loss=1e-3, gradient=2e-3),
    "tf32": Tolerance(loss=1e-2, gradient=2e-2),
    "bfloat16": Tolerance(loss=2e-2, gradient=1e-1),
    "float16": Tolerance(loss=1e-2, gradient=2e-2),
}


@dataclass(frozen=True)
class TrainingResult:
    """What a training has computed.

    Attributes:
        losses: The loss per token of each update.
        weights_before: The weights before the first update, by name, on the CPU.
        weights: The weights after the last update.
    """

    losses: list[float]
    weights_before: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    """Return a folder with a prepared corpus of 300 sentence pairs."""
    folder = tmp_path_factory.mktemp("gpu")
    sets = {"train": toy_pairs(300, 1), "valid": toy_pairs(20, 2), "test.x": toy_pairs(40, 3)}
    prepare(folder, sets, units=bpe_units(40))
    return folder


def copy_weights(model):
    """Return copies of a model's weights on the CPU, by name."""
    return {name: weight.cpu().clone() for name, weight in named_weights(model).items()}


@pytest.fixture(scope="module")
def train(data_folder, tmp_path_factory):
    """Return a function that trains a small model on a device, with 20 updates by default."""

    def train(device, *, folder=None, dropout=0.0, **settings):
        """Train, or go on with the training in a folder.

        Args:
            device: The device.
            folder: The folder of the training's checkpoints; a new one if None.
            dropout: The model's dropout.
            **settings: Settings of the training.
        """
        if settings.get("compile"):
            # PyTorch compiles a function for a few shapes only; tests before used some of them.
            torch.compiler.reset()
        if folder is None:
            folder = tmp_path_factory.mktemp("training")
        defaults = {"tokens_per_update": 300, "max_tokens": 100, "max_updates": UPDATES}
        system = systems.system(
            model=systems.model(dropout=dropout, **HEAD_SIZES),
            train=systems.train(**(defaults | settings)),
        )
        job = Job(
            run=Run("micro", "toy", 3),
            system=system,
            corpus_folder=data_folder / "binary",
            split_folder=data_folder / "split",
            code_fingerprint="code",
        )
        group = Group(0, 1, device)
        trainer = Trainer(job, group, folder, Fingerprints.from_job(job), Observer())
        weights_before = copy_weights(trainer.model)
        trainer.run()
        losses = [point["loss"] for point in trainer.state.curve]
        return TrainingResult(losses, weights_before, copy_weights(trainer.model))

    return train


def check_losses(train, precision, is_compiled):
    """Fail unless a training on the device learns, with the losses of a training on the CPU.

    Args:
        train: The fixture `train`.
        precision: The precision on the device; on the CPU it is float32.
        is_compiled: Whether layers are compiled on the device.
    """
    expected_losses = train(CPU).losses
    losses = train(DEVICE, precision=precision, compile=is_compiled).losses

    assert losses == pytest.approx(expected_losses, rel=TOLERANCES[precision].loss)
    assert len(losses) == UPDATES
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("precision", TOLERANCES)
def test_a_training_on_the_device_has_the_losses_of_one_on_the_cpu(train, precision):
    check_losses(train, precision, is_compiled=False)


def first_gradient(train, device, **settings):
    """Return the gradient of the first update, by parameter.

    With a learning rate of 1, SGD subtracts the gradient from the weights.
    """
    result = train(
        device,
        tokens_per_update=100,
        optimizer=Optimizer(name="sgd"),
        lr_schedule=LrSchedule(constant=Constant(lr=1.0)),
        clip_norm=0.0,
        max_updates=1,
        **settings,
    )
    return {name: result.weights_before[name] - weight for name, weight in result.weights.items()}


@pytest.mark.parametrize("precision", TOLERANCES)
def test_the_gradient_on_the_gpu_is_the_gradient_on_the_cpu_for_each_parameter(train, precision):
    """The CPU computes in float32, the GPU in different precisions.

    The norm of the difference may be 0.2% of the gradient for float32, and 10% for bfloat16.
    """
    gradient_on_cpu = first_gradient(train, CPU)
    gradient_on_gpu = first_gradient(train, DEVICE, precision=precision)

    differing_parameters = []
    for name, expected in gradient_on_cpu.items():
        assert expected.norm() > 0, name
        relative_difference = (gradient_on_gpu[name] - expected).norm() / expected.norm()
        if relative_difference > TOLERANCES[precision].gradient:
            differing_parameters.append(name)
    assert differing_parameters == []


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def interrupted_training(train, tmp_path_factory, request):
    """Return one training three times: at once, up to half of its updates, and resumed there.

    Attributes of the result: `at_once`, `first_half` and `resumed`, each a TrainingResult, and the
    `precision`. The losses of `resumed` are those of all updates.
    """
    settings = {"dropout": 0.1, "precision": request.param}
    folder = tmp_path_factory.mktemp("interrupted")
    return SimpleNamespace(
        at_once=train(DEVICE, **settings),
        first_half=train(DEVICE, folder=folder, max_updates=UPDATES // 2, **settings),
        resumed=train(DEVICE, folder=folder, **settings),
        precision=request.param,
    )


def test_a_resumed_training_begins_with_the_weights_and_losses_of_its_checkpoint(
    interrupted_training,
):
    """One training ended after the first half of its updates; another Trainer resumed it.

    The resumed training must start from the same bits, and keep the losses of the first half.
    """
    first_half = interrupted_training.first_half
    resumed = interrupted_training.resumed

    for name, weight in first_half.weights.items():
        assert torch.equal(resumed.weights_before[name], weight), name
    updates_of_first_half = len(first_half.losses)
    assert updates_of_first_half == UPDATES // 2
    assert resumed.losses[:updates_of_first_half] == first_half.losses


def test_a_resumed_training_has_the_losses_of_a_training_without_interruption(interrupted_training):
    """On a CPU the losses are equal. A GPU adds numbers in any order, so rounding may differ.

    `at_once` is a training of the same system without an interruption.
    """
    tolerance = 0 if DEVICE == CPU else TOLERANCES[interrupted_training.precision].loss
    expected_losses = interrupted_training.at_once.losses

    assert interrupted_training.resumed.losses == pytest.approx(expected_losses, rel=tolerance)


def test_a_resumed_training_ends_with_the_weights_of_a_training_without_interruption(
    interrupted_training,
):
    """On a CPU the weights are equal. A GPU adds numbers in any order, so rounding may differ.

    All weights are compared as one long vector. `at_once` is the training without an interruption.
    """
    relative_tolerance = 0 if DEVICE == CPU else 0.02
    expected_weights = interrupted_training.at_once.weights
    weights = interrupted_training.resumed.weights
    expected_vector = torch.cat([weight.flatten() for weight in expected_weights.values()])
    vector = torch.cat([weights[name].flatten() for name in expected_weights])

    difference = (vector - expected_vector).norm()

    assert difference <= relative_tolerance * expected_vector.norm()


@contextmanager
def waiting_is_an_error():
    """Make PyTorch raise an error where the CPU waits for the GPU."""
    if DEVICE == CPU:
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture
def step_and_updates(data_folder):
    """Return a function that makes the TrainStep of a precision, and the batches of its updates."""

    def make(precision):
        corpus = BinaryCorpus(data_folder / "binary")
        group = Group(0, 1, DEVICE)
        settings = systems.train(
            tokens_per_update=300, max_tokens=100, precision=precision, compile=False
        )
        system = systems.system(model=systems.model(**HEAD_SIZES), train=settings)
        vocabulary_size = len(corpus.segmentation("de").vocabulary)
        model = Transformer(system.model, vocabulary_size, vocabulary_size).to(DEVICE)
        step = TrainStep(model, settings, 1, group)
        updates = list(islice(local_updates(corpus, system, 1, Position(), group), UPDATES))
        return step, updates

    return make


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_the_cpu_queues_updates_without_waiting_for_the_gpu(step_and_updates, precision):
    """If the CPU waited for each result, the GPU would idle while the next update is prepared.

    PyTorch's sync debug mode makes waiting an error. The first update of each shape may wait: CUDA
    graphs record the kernels of packed batches. So each update runs once before.
    """
    step, updates = step_and_updates(precision)
    for number, update in enumerate(updates, 1):
        step.read_stats(step.update(number, update))

    unread_stats = []
    with waiting_is_an_error():
        for number, update in enumerate(updates, UPDATES + 1):
            unread_stats.append(step.update(number, update))

    losses = [step.read_stats(stats).loss for stats in unread_stats]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_batches_are_packed_on_a_gpu_in_16_bits(step_and_updates, precision):
    """A packed batch has no padding. Its kernels exist for GPUs and numbers of 16 bits only."""
    _, updates = step_and_updates(precision)
    first_batch = updates[0].batches[0][0]

    is_packed = isinstance(first_batch, PackedBatch)

    has_16_bits = precision in ("bfloat16", "float16")
    assert is_packed == (DEVICE != CPU and has_16_bits)


@needs(TWO_GPUS, DEVICE == CPU or torch.cuda.device_count() >= 2)
def test_two_devices_train_with_the_losses_of_one(tmp_path_factory):
    """Two devices share the batches of an update, so the sum of their gradients is the same."""
    losses_by_device_count = {}
    for device_count in (1, 2):
        root = make_project(tmp_path_factory.mktemp(str(device_count)))
        trainings.train(root, device_count)
        curves = read_json(root / "results" / "micro" / "toy" / "1" / "curves.json")
        losses_by_device_count[device_count] = [point["loss"] for point in curves["training"]]

    assert losses_by_device_count[2] == pytest.approx(losses_by_device_count[1], rel=1e-3)


def test_beam_search_finds_the_same_translations_on_the_gpu_and_on_the_cpu(data_folder):
    """The model has random weights and a beam of 4.

    The weights are multiplied by 3: its probabilities are then less even, so that the sentences get
    different translations.
    """
    # Earlier tests may have switched to TF32, which rounds products.
    torch.set_float32_matmul_precision("highest")
    corpus = BinaryCorpus(data_folder / "binary")
    torch.manual_seed(8)
    vocabulary_size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), vocabulary_size, vocabulary_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    sources = corpus.side("test.x", corpus.source)

    translations = {}
    for device in (CPU, DEVICE):
        engine = Engine(model.to(device), systems.decode(beam=4))
        hypotheses = engine.search(sources, sources.lengths)
        translations[device] = [tuple(best_first[0].tokens) for best_first in hypotheses]

    assert translations[DEVICE] == translations[CPU]
    assert len(set(translations[CPU])) > 10, "the test needs sentences with different translations"


# These tests come last, since each compiles for a minute; on the CPU, bfloat16 takes several.
@pytest.mark.parametrize("precision", ["float32"] if DEVICE == CPU else ["float32", "bfloat16"])
def test_a_training_with_compiled_layers_has_the_losses_of_the_cpu(train, precision):
    check_losses(train, precision, is_compiled=True)
