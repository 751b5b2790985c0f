"""Training in bfloat16: products of a copy of the weights, which stay in float32."""

from contextlib import nullcontext
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
from trainings import ALONE, job_in, project

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
    batch = Batch.from_ids(PAIRS)
    losses = {}
    gradients = {}
    for precision in ("float32", "bfloat16"):
        model, optimizer = make_model_and_optimizer(precision)
        loss = batch_loss(model, batch, 0.1)
        loss.backward()
        # Only products are computed in bfloat16.
        assert loss.dtype == optimizer.gradient.dtype == torch.float32
        losses[precision] = loss.item()
        gradients[precision] = optimizer.gradient

    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.005)
    assert losses["bfloat16"] != losses["float32"]
    similarity = torch.cosine_similarity(gradients["float32"], gradients["bfloat16"], dim=0)
    assert similarity > 0.999


def test_inputs_and_outputs_of_each_linear_layer_are_bfloat16():
    model, _ = make_model_and_optimizer("bfloat16")
    dtypes = set()

    def record_dtypes(_, inputs, output):
        dtypes.update(tensor.dtype for tensor in inputs)
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


@pytest.mark.parametrize("this", [OLD_AMD, OLD_INTEL])
@pytest.mark.parametrize(
    ("precision", "hidden", "why"),
    [
        ("bfloat16", None, "this CPU has no instructions for it"),
        ("float16", None, "it is for GPUs; on CPUs float32 is faster; BLEUPRINT"),
        ("tf32", "", r"it is for .* faster \(CUDA_VISIBLE_DEVICES is '', which hides GPUs\)"),
    ],
)
def test_cpus_without_it_are_refused_unless_it_may_be_emulated(
    tmp_path, monkeypatch, precision, hidden, why, this
):
    job = job_in(project(tmp_path, precision=precision), monkeypatch)
    monkeypatch.setattr(processor, "THIS", this)
    monkeypatch.delenv("BLEUPRINT_EMULATE", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    fingerprints = Fingerprints.from_job(job)
    with pytest.raises(UserError, match=rf"micro\.train\.precision {precision}: {why}"):
        check_training(job, fingerprints, ALONE)
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")
    check_training(job, fingerprints, ALONE)


@pytest.mark.parametrize("this", [AMD, INTEL])
def test_cpus_that_have_it_are_not_refused(monkeypatch, this):
    monkeypatch.setattr(processor, "THIS", this)
    monkeypatch.delenv("BLEUPRINT_EMULATE", raising=False)
    check_precision("train.precision", "bfloat16", torch.device("cpu"))


@pytest.mark.parametrize("generation", [7, 8])
def test_gpus_that_only_emulate_it_are_refused(monkeypatch, generation):
    """Torch's own answer, of a GPU that its driver would describe."""
    gpu = SimpleNamespace(major=generation)
    monkeypatch.delenv("BLEUPRINT_EMULATE", raising=False)
    for name, answer in {
        **{"is_available": True, "current_device": 0, "get_device_properties": gpu},
        **{"get_device_name": "Tesla V100-SXM2-32GB", "_check_bf16_tensor_supported": True},
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    for precision in ("float32", "float16"):
        check_precision("train.precision", precision, torch.device("cuda"))
    for precision, instead in (("bfloat16", "float16"), ("tf32", "float32")):
        line = rf"n {precision}: Tesla V100-SXM2-32GB has no units for it: set {instead}"
        with pytest.raises(UserError, match=line) if generation == 7 else nullcontext():
            check_precision("train.precision", precision, torch.device("cuda"))
