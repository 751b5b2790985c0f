"""float16: the scale of the loss keeps small gradients, and overflow changes nothing else."""

import dataclasses
import math

import pytest
import torch

import systems
from bleuprint.config.optimization import Optimizer
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.batching import PlannedBatch, PlannedUpdate, Position
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.training.data_loader import LocalUpdate
from bleuprint.training.loss_scale import LossScale
from bleuprint.training.train_step import TrainStep
from trainings import ALONE

SENTENCES = [[*range(4, 4 + n), 2] for n in range(1, 7)]
BATCH = PackedBatch.from_ids(PairIds(SENTENCES, SENTENCES))
LOCAL = LocalUpdate(
    PlannedUpdate([PlannedBatch(0, torch.arange(6).numpy())], 27), range(1), [[BATCH]], Position()
)


def train_step(precision, **settings):
    """Make a training step of an untrained model with this precision."""
    torch.manual_seed(1)
    model = Transformer(systems.model(), 11, 11)
    return TrainStep(model, systems.train(precision=precision, **settings), 1, ALONE)


def test_float16_updates_have_the_loss_and_gradient_norm_of_float32_updates():
    float32 = train_step("float32")
    float16 = train_step("float16")

    for number in range(1, 21):
        expected = float32.read_stats(float32.update(number, LOCAL))
        stats = float16.read_stats(float16.update(number, LOCAL))
        assert stats.loss == pytest.approx(expected.loss, rel=0.02)
        assert stats.loss != expected.loss  # It is rounded, so it was computed in float16.
        assert stats.grad_norm == pytest.approx(expected.grad_norm, rel=0.1)

    initial_scale = 2**16
    assert float16.optimizer.loss_scale.value == initial_scale


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_update_whose_gradient_overflows_halves_the_scale_and_changes_nothing_else(optimizer):
    """The loss is multiplied by a scale, so that small gradients are not rounded to 0."""
    step = train_step("float16", optimizer=Optimizer(name=optimizer), ema=0.5)
    first = step.read_stats(step.update(1, LOCAL))
    state = {name: tensor.clone() for name, tensor in step.optimizer.state_dict().items()}
    weights = step.optimizer.weights.clone()
    step.optimizer.loss_scale.value.fill_(2.0**60)  # so that the gradient overflows

    skipped = step.read_stats(step.update(2, LOCAL))

    assert step.optimizer.loss_scale.value == 2.0**59
    assert torch.equal(step.optimizer.weights, weights)
    moments = [name for name in state if name.startswith(("exp_avg", "step", "momentum_buffer"))]
    assert len(moments) > 1
    for name in moments:
        assert torch.equal(step.optimizer.state_dict()[name], state[name])
    assert skipped.grad_norm == first.grad_norm  # the norm of the last update that counted
    assert math.isfinite(skipped.loss)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_updates_go_on_after_an_overflow(optimizer):
    step = train_step("float16", optimizer=Optimizer(name=optimizer), ema=0.5)
    step.read_stats(step.update(1, LOCAL))
    step.optimizer.loss_scale.value.fill_(2.0**60)
    step.read_stats(step.update(2, LOCAL))
    weights = step.optimizer.weights.clone()

    step.optimizer.loss_scale.value.fill_(1024.0)
    step.read_stats(step.update(3, LOCAL))

    assert not torch.equal(step.optimizer.weights, weights)


@pytest.mark.parametrize(
    ("grad_norm", "scale"),
    [
        pytest.param(math.inf, 1.0, id="overflow, and the scale can be halved"),
        pytest.param(2.0, 1e-5, id="a small scale without overflow"),
    ],
)
def test_an_overflow_or_a_small_scale_alone_is_not_an_error(grad_norm, scale):
    step = train_step("float16")
    pending = step.update(1, LOCAL)
    loss_norm_and_scale = torch.tensor([30.0, grad_norm, scale], dtype=torch.float64)

    stats = step.read_stats(dataclasses.replace(pending, loss_norm_scale=loss_norm_and_scale))

    assert stats.loss == 30


def test_an_overflow_in_spite_of_a_small_scale_is_an_error():
    step = train_step("float16")
    pending = step.update(1, LOCAL)
    loss_norm_and_scale = torch.tensor([30.0, math.inf, 1e-5], dtype=torch.float64)

    # The message has the mean loss of the 27 tokens: 30 / 27 = 1.11.
    with pytest.raises(UserError, match=r"loss of update 1 is 1\.1\d*, its gradient's norm inf"):
        step.read_stats(dataclasses.replace(pending, loss_norm_scale=loss_norm_and_scale))


def test_a_loss_that_is_nan_is_an_error_at_any_scale():
    step = train_step("float16")
    step.update(1, LOCAL)
    with torch.no_grad():
        step.model.encoder[0].feed_forward.fc1.bias.fill_(math.inf)
    step.optimizer.load_state_dict({})  # copies the weights to float16 again

    with pytest.raises(UserError, match="loss of update 2 is nan"):
        step.read_stats(step.update(2, LOCAL))


def test_the_scale_is_doubled_after_2000_updates_without_overflow():
    scale = LossScale(torch.device("cpu"))
    exponents = {}
    for update in range(1, 4002):
        has_overflow = update == 500
        scale.update(torch.tensor(float(has_overflow)))
        exponents[update] = math.log2(scale.value)

    assert exponents[499] == 16
    assert exponents[500] == 15  # halved by the overflow
    assert exponents[2499] == 15
    assert exponents[2500] == 16  # doubled after 2,000 updates
    assert exponents[4001] == 16
