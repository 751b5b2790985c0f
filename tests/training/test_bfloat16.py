"""Training in bfloat16: products of a copy of the weights, which stay in float32."""

from types import SimpleNamespace

import pytest
import torch

import systems
from bleuprint.config.system import Train
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.model.linear import Linear
from bleuprint.model.precision import check_precision
from bleuprint.model.transformer import Transformer
from bleuprint.pipeline.train_stage import check_training
from bleuprint.runtime import processor
from bleuprint.runtime.errors import UserError
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.loss import batch_loss
from bleuprint.training.optimizer import FlatOptimizer
from processors import AMD, INTEL, OLD_AMD, OLD_INTEL
from trainings import ONE_PROCESS, job_in, make_project

pytestmark = pytest.mark.usefixtures("one_thread")
IDS = list(range(4, 20))
PAIRS = PairIds([IDS, IDS[:9]], [IDS[::-1], IDS[3:14]])


def make_model_and_optimizer(precision):
    """Make an untrained model with an optimizer that copies its weights to this precision."""
    torch.manual_seed(1)
    model = Transformer(systems.model(dropout=0.0), 24, 24).train()
    settings: Train = systems.train(precision=precision)
    optimizer = FlatOptimizer(model, settings)
    model.activation_dtype = torch.bfloat16 if precision == "bfloat16" else None
    return model, optimizer


def test_loss_and_gradient_in_bfloat16_are_near_those_in_float32():
    """Only matrix products are computed in bfloat16; loss and gradient are stored in float32."""
    batch = Batch.from_ids(PAIRS)
    losses = {}
    gradients = {}
    for precision in ("float32", "bfloat16"):
        model, optimizer = make_model_and_optimizer(precision)
        loss = batch_loss(model, batch, 0.1)
        loss.backward()
        assert loss.dtype == optimizer.gradient.dtype == torch.float32
        losses[precision] = loss.item()
        gradients[precision] = optimizer.gradient

    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.005)
    assert losses["bfloat16"] != losses["float32"]  # Equal losses would show no rounding at all.
    similarity = torch.cosine_similarity(gradients["float32"], gradients["bfloat16"], dim=0)
    assert similarity > 0.999


def test_inputs_and_outputs_of_each_linear_layer_are_bfloat16():
    """A layer that got float32 would compute its product in float32, which takes longer."""
    model, _ = make_model_and_optimizer("bfloat16")
    dtypes = set()

    def record_dtypes(_layer, inputs, output):
        for tensor in inputs:
            dtypes.add(tensor.dtype)
        dtypes.add(output.dtype)

    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.register_forward_hook(record_dtypes)
    batch_loss(model, Batch.from_ids(PAIRS), 0.1).backward()

    assert dtypes == {torch.bfloat16}


def test_an_update_copies_the_changed_weights_to_bfloat16():
    """Products use a copy of the weights; the weights themselves stay in float32."""
    model, optimizer = make_model_and_optimizer("bfloat16")
    layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
    old_copies = [layer.copies[0].clone() for layer in layers]
    batch_loss(model, Batch.from_ids(PAIRS), 0.1).backward()

    optimizer.step(0.1, optimizer.grad_norm())

    for layer, old_copy in zip(layers, old_copies, strict=True):
        weight_copy, bias_copy = layer.copies
        assert torch.equal(weight_copy, layer.weight.bfloat16())
        assert not torch.equal(weight_copy, old_copy)
        assert bias_copy is None or torch.equal(bias_copy, layer.bias.bfloat16())


@pytest.fixture
def usual_environment(monkeypatch):
    """Remove the environment variables by which a user emulates a precision or hides GPUs."""
    monkeypatch.delenv("BLEUPRINT_EMULATE", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


for_each_old_cpu = pytest.mark.parametrize(
    "cpu", [pytest.param(OLD_AMD, id="old AMD"), pytest.param(OLD_INTEL, id="old Intel")]
)


@for_each_old_cpu
@pytest.mark.parametrize(
    ("precision", "reason"),
    [
        ("bfloat16", "this CPU has no instructions for it"),
        ("float16", "this precision is for GPUs. On CPUs set float32, which is faster. To use"),
        ("tf32", "this precision is for GPUs. On CPUs set float32, which is faster. To use"),
    ],
)
@pytest.mark.usefixtures("usual_environment")
def test_a_training_in_a_precision_that_the_cpu_lacks_is_refused(
    tmp_path, monkeypatch, precision, reason, cpu
):
    """An old CPU would emulate the precision, slower than float32. `cpu` replaces this one."""
    monkeypatch.setattr(processor, "THIS", cpu)
    job = job_in(make_project(tmp_path, precision=precision), monkeypatch)

    with pytest.raises(UserError, match=rf"micro\.train\.precision {precision}: {reason}"):
        check_training(job, Fingerprints.from_job(job), ONE_PROCESS)


@for_each_old_cpu
@pytest.mark.usefixtures("usual_environment")
def test_the_message_about_a_precision_for_gpus_says_that_gpus_are_hidden(
    tmp_path, monkeypatch, cpu
):
    """An empty CUDA_VISIBLE_DEVICES, often left from another job, makes PyTorch see no GPU."""
    monkeypatch.setattr(processor, "THIS", cpu)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    job = job_in(make_project(tmp_path, precision="tf32"), monkeypatch)

    message = (
        r"micro\.train\.precision tf32: this precision is for .* faster\. "
        r"CUDA_VISIBLE_DEVICES is '', which hides GPUs\."
    )
    with pytest.raises(UserError, match=message):
        check_training(job, Fingerprints.from_job(job), ONE_PROCESS)


@for_each_old_cpu
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "tf32"])
@pytest.mark.usefixtures("usual_environment")
def test_a_user_may_emulate_a_precision_that_the_cpu_lacks(tmp_path, monkeypatch, precision, cpu):
    """With BLEUPRINT_EMULATE=1 the check passes; without it, it raises an error."""
    monkeypatch.setattr(processor, "THIS", cpu)
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")
    job = job_in(make_project(tmp_path, precision=precision), monkeypatch)

    check_training(job, Fingerprints.from_job(job), ONE_PROCESS)


@pytest.mark.parametrize(
    "cpu", [pytest.param(AMD, id="new AMD"), pytest.param(INTEL, id="new Intel")]
)
@pytest.mark.usefixtures("usual_environment")
def test_cpus_with_instructions_for_bfloat16_may_use_it(monkeypatch, cpu):
    """The check raises an error for a precision that is refused. `cpu` replaces this machine's."""
    monkeypatch.setattr(processor, "THIS", cpu)

    check_precision("train.precision", "bfloat16", torch.device("cpu"))


def simulate_gpu(monkeypatch, generation):
    """Let torch describe a Tesla V100 as of this generation; the real one is of generation 7.

    It says that it can compute in bfloat16, as torch does of GPUs that only emulate it.
    """
    properties = SimpleNamespace(major=generation)
    monkeypatch.setattr(torch.cuda, "is_available", lambda *_: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda *_: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: properties)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Tesla V100-SXM2-32GB")
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda *_: True)


@pytest.mark.parametrize(("precision", "advice"), [("bfloat16", "float16"), ("tf32", "float32")])
@pytest.mark.usefixtures("usual_environment")
def test_a_precision_that_a_gpu_only_emulates_is_refused(monkeypatch, precision, advice):
    """The simulated GPU, a V100 of compute capability 7.0, has units for float16 and float32."""
    simulate_gpu(monkeypatch, generation=7)

    message = (
        rf"train.precision {precision}: Tesla V100-SXM2-32GB has no units for it. Set {advice}"
    )
    with pytest.raises(UserError, match=message):
        check_precision("train.precision", precision, torch.device("cuda"))


@pytest.mark.parametrize(
    ("generation", "precision"),
    [
        (7, "float32"),
        (7, "float16"),
        (8, "float32"),
        (8, "float16"),
        (8, "bfloat16"),
        (8, "tf32"),
    ],
)
@pytest.mark.usefixtures("usual_environment")
def test_a_precision_for_which_a_gpu_has_units_is_accepted(monkeypatch, generation, precision):
    """The check raises an error for a precision that is refused.

    Generation 7 has units for float16, and generation 8 also for bfloat16 and tf32.
    """
    simulate_gpu(monkeypatch, generation)

    check_precision("train.precision", precision, torch.device("cuda"))
