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


def step(precision, **settings):
    torch.manual_seed(1)
    model = Transformer(systems.model(), 11, 11)
    return TrainStep(model, systems.train(precision=precision, **settings), 1, ALONE)


def test_updates_are_those_of_float32_but_for_rounding():
    float32, float16 = step("float32"), step("float16")
    for number in range(1, 21):
        expected, found = (
            each.read_stats(each.update(number, LOCAL)) for each in (float32, float16)
        )
        assert found.loss == pytest.approx(expected.loss, rel=0.02) and found.loss != expected.loss
        assert found.grad_norm == pytest.approx(expected.grad_norm, rel=0.1)
    assert float16.optimizer.loss_scale.value == 2**16


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_overflow_halves_the_scale_and_leaves_the_weights(optimizer):
    made = step("float16", optimizer=Optimizer(name=optimizer), ema=0.5)
    first = made.read_stats(made.update(1, LOCAL))
    before = {name: each.clone() for name, each in made.optimizer.state_dict().items()}
    weights = made.optimizer.weights.clone()
    made.optimizer.loss_scale.value.fill_(2.0**60)
    skipped = made.read_stats(made.update(2, LOCAL))
    assert torch.equal(made.optimizer.weights, weights)
    assert made.optimizer.loss_scale.value == 2.0**59
    kept = [name for name in before if name.startswith(("exp_avg", "step", "momentum_buffer"))]
    assert len(kept) > 1
    assert all(torch.equal(made.optimizer.state_dict()[name], before[name]) for name in kept)
    assert skipped.grad_norm == first.grad_norm and math.isfinite(skipped.loss)
    made.optimizer.loss_scale.value.fill_(1024.0)
    made.read_stats(made.update(3, LOCAL))
    assert not torch.equal(made.optimizer.weights, weights)


def test_what_is_not_a_matter_of_the_scale_is_an_error():
    made = step("float16")
    pending = made.update(1, LOCAL)
    for norm, scale in ((math.inf, 1.0), (2.0, 1e-5)):
        figures = torch.tensor([30.0, norm, scale], dtype=torch.float64)
        assert made.read_stats(dataclasses.replace(pending, figures=figures)).loss == 30
    figures = torch.tensor([30.0, math.inf, 1e-5], dtype=torch.float64)
    with pytest.raises(UserError, match=r"loss of update 1 is 1\.1\d*, its gradient's norm inf"):
        made.read_stats(dataclasses.replace(pending, figures=figures))
    with torch.no_grad():
        made.model.encoder[0].feed_forward.fc1.bias.fill_(math.inf)
    made.optimizer.load_state_dict({})  # renews the copies
    with pytest.raises(UserError, match="loss of update 2 is nan"):
        made.read_stats(made.update(2, LOCAL))


def test_the_scale_is_doubled_after_2000_updates_without_overflow():
    scale, found = LossScale(torch.device("cpu")), []
    for number in range(1, 4002):
        scale.update(torch.tensor(float(number == 500)))
        found.append(math.log2(scale.value))
    assert [found[at - 1] for at in (499, 500, 2499, 2500, 4001)] == [16, 15, 15, 16, 16]
