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
from trainings import ONE_PROCESS

# Six sentences of 1 to 6 tokens, each with EOS: 2 + 3 + 4 + 5 + 6 + 7 = 27 tokens.
SENTENCES = [[*range(4, 4 + n), 2] for n in range(1, 7)]
UPDATE_OF_27_TOKENS = LocalUpdate(
    PlannedUpdate([PlannedBatch(0, torch.arange(6).numpy())], 27),
    range(1),
    [[PackedBatch.from_ids(PairIds(SENTENCES, SENTENCES))]],
    Position(),
)


def train_step(precision, **settings):
    """Make a training step of an untrained model with this precision."""
    torch.manual_seed(1)
    model = Transformer(systems.model(), 11, 11)
    return TrainStep(model, systems.train(precision=precision, **settings), 1, ONE_PROCESS)


def test_float16_updates_have_the_loss_and_gradient_norm_of_float32_updates():
    """float16 keeps 11 bits of each number, so 2% and 10% leave room for its rounding."""
    float32 = train_step("float32")
    float16 = train_step("float16")

    for number in range(1, 21):
        expected = float32.read_stats(float32.update(number, UPDATE_OF_27_TOKENS))
        stats = float16.read_stats(float16.update(number, UPDATE_OF_27_TOKENS))
        assert stats.loss == pytest.approx(expected.loss, rel=0.02)
        assert stats.loss != expected.loss  # It is rounded, so it was computed in float16.
        assert stats.grad_norm == pytest.approx(expected.grad_norm, rel=0.1)

    initial_scale = 2**16  # It would be halved by an overflow.
    assert float16.optimizer.loss_scale.value == initial_scale


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_update_whose_gradient_overflows_halves_the_scale_and_changes_nothing_else(optimizer):
    """The loss is multiplied by a scale, so that float16 does not round small gradients to 0.

    If the scaled gradient overflows, the update is skipped and the next ones use half the scale.
    """
    step = train_step("float16", optimizer=Optimizer(name=optimizer), ema=0.5)
    first = step.read_stats(step.update(1, UPDATE_OF_27_TOKENS))
    state = {name: tensor.clone() for name, tensor in step.optimizer.state_dict().items()}
    weights = step.optimizer.weights.clone()
    step.optimizer.loss_scale.value.fill_(2.0**60)  # so that the gradient overflows

    skipped = step.read_stats(step.update(2, UPDATE_OF_27_TOKENS))

    assert step.optimizer.loss_scale.value == 2.0**59
    assert torch.equal(step.optimizer.weights, weights)
    new_state = step.optimizer.state_dict()
    # The state of Adam, or that of SGD; the moving average (ema) and the scale are separate.
    moments = [name for name in state if name.startswith(("exp_avg", "step", "momentum_buffer"))]
    assert len(moments) > 1
    for name in moments:
        assert torch.equal(new_state[name], state[name])
    assert skipped.grad_norm == first.grad_norm  # the norm of the last update that counted
    assert math.isfinite(skipped.loss)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_update_after_an_overflow_changes_the_weights_again(optimizer):
    """Of three updates, only the second has a scale of the loss that is too large."""
    step = train_step("float16", optimizer=Optimizer(name=optimizer), ema=0.5)
    step.read_stats(step.update(1, UPDATE_OF_27_TOKENS))
    step.optimizer.loss_scale.value.fill_(2.0**60)  # so that the gradient of update 2 overflows
    step.read_stats(step.update(2, UPDATE_OF_27_TOKENS))
    weights = step.optimizer.weights.clone()

    step.optimizer.loss_scale.value.fill_(1024.0)  # small enough for update 3
    step.read_stats(step.update(3, UPDATE_OF_27_TOKENS))

    assert not torch.equal(step.optimizer.weights, weights)


@pytest.mark.parametrize(
    ("grad_norm", "scale"),
    [
        pytest.param(math.inf, 1.0, id="overflow, and the scale can be halved"),
        pytest.param(2.0, 1e-5, id="a small scale without overflow"),
    ],
)
def test_training_goes_on_after_an_overflow_or_with_a_small_scale(grad_norm, scale):
    """Only an overflow in spite of a small scale is an error: the gradient itself is too large."""
    step = train_step("float16")
    pending = step.update(1, UPDATE_OF_27_TOKENS)
    loss_norm_and_scale = torch.tensor([30.0, grad_norm, scale], dtype=torch.float64)

    stats = step.read_stats(dataclasses.replace(pending, loss_norm_scale=loss_norm_and_scale))

    assert stats.loss == 30


def test_an_overflow_in_spite_of_a_small_scale_is_an_error():
    """The message states the mean loss per token: 30 / 27 = 1.11."""
    step = train_step("float16")
    pending = step.update(1, UPDATE_OF_27_TOKENS)
    loss_norm_and_scale = torch.tensor([30.0, math.inf, 1e-5], dtype=torch.float64)

    with pytest.raises(UserError, match=r"loss of update 1 is 1\.1\d*, its gradient's norm inf"):
        step.read_stats(dataclasses.replace(pending, loss_norm_scale=loss_norm_and_scale))


def test_a_loss_that_is_nan_is_an_error_at_any_scale():
    """An infinite bias makes the loss NaN; a smaller scale cannot help, unlike for an overflow."""
    step = train_step("float16")
    step.update(1, UPDATE_OF_27_TOKENS)
    with torch.no_grad():
        step.model.encoder[0].feed_forward.fc1.bias.fill_(math.inf)
    step.optimizer.load_state_dict({})  # copies the weights to float16 again

    with pytest.raises(UserError, match="loss of update 2 is nan"):
        step.read_stats(step.update(2, UPDATE_OF_27_TOKENS))


def test_the_scale_is_doubled_after_2000_updates_without_overflow():
    """Of 4,001 updates, only update 500 overflows."""
    scale = LossScale(torch.device("cpu"))
    scale_after = {}

    for update in range(1, 4002):
        has_overflow = update == 500
        scale.update(torch.tensor(float(has_overflow)))
        scale_after[update] = float(scale.value)

    assert scale_after[499] == 2**16  # the initial scale
    assert scale_after[500] == 2**15  # halved by the overflow
    assert scale_after[2499] == 2**15
    assert scale_after[2500] == 2**16  # doubled after 2,000 updates
    assert scale_after[4001] == 2**16
