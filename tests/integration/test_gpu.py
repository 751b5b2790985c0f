"""Training and search on a GPU agree with the CPU's; BLEUPRINT_TEST_DEVICE=cpu tries the tests."""

import os
from itertools import islice

import pytest
import torch
from torch import distributed

import systems
from bleuprint.dataset.batching import Position
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.engine import TorchEngine
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.data_loader import local_updates
from bleuprint.training.train_step import TrainStep
from prepared import prepare
from trainings import merges, toy_pairs

DEVICE = torch.device(os.environ.get("BLEUPRINT_TEST_DEVICE", "cuda"))
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE.type == "cuda" and not torch.cuda.is_available(), reason="no GPU"),
]
CPU = torch.device("cpu")
UPDATES = 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    sets = {"train": toy_pairs(300, 1), "valid": toy_pairs(20, 2), "test.x": toy_pairs(40, 3)}
    prepare(folder, sets, units=merges(40))
    return BinaryCorpus(folder / "binary")


def train(corpus, device, **settings):
    """The loss a token of some updates of a model without dropout."""
    system = systems.system(train=systems.train(tokens_per_update=300, max_tokens=100, **settings))
    torch.manual_seed(3)
    size = len(corpus.segmentation("de").vocabulary)
    group = Group(0, 1, device)
    step = TrainStep(Transformer(system.model, size, size).to(device), system.train, 1, group)
    updates = local_updates(corpus, system, 1, Position(), group)
    losses = []
    for number, local in enumerate(islice(updates, UPDATES)):
        stats = step.update(number + 1, local)
        losses.append(stats.loss / stats.target_tokens)
    updates.close()
    return losses


@pytest.mark.parametrize(
    ("precision", "compile_layers", "tolerance"),
    [
        ("float32", False, 1e-3),
        ("tf32", False, 1e-2),
        ("bfloat16", False, 2e-2),
        ("float32", True, 1e-3),
        ("bfloat16", True, 2e-2),
    ],
)
def test_losses_are_those_of_the_cpu(corpus, precision, compile_layers, tolerance):
    expected = train(corpus, CPU)
    losses = train(corpus, DEVICE, precision=precision, compile=compile_layers)
    assert losses == pytest.approx(expected, rel=tolerance)
    assert losses[-1] < 0.9 * losses[0]


def test_a_group_of_one_process_sums_on_both_devices(tmp_path):
    """As groups of several do: decisions of the hosts over gloo, gradients over NCCL."""
    on_gpu = DEVICE.type == "cuda"
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
        init_method=f"file://{tmp_path}/store",
        rank=0,
        world_size=1,
        device_id=torch.device("cuda", 0) if on_gpu else None,
    )
    try:
        sums = [torch.arange(5.0, device=device) for device in (CPU, DEVICE, CPU)]
        for work in [distributed.all_reduce(each, async_op=True) for each in sums]:
            work.wait()
        assert [each.tolist() for each in sums] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * 3
        if on_gpu:  # what nccl.watch reads
            nccl = distributed.distributed_c10d._get_default_group()._get_backend(DEVICE)
            assert nccl.get_error().name == "SUCCESS"
    finally:
        distributed.destroy_process_group()


def test_the_search_finds_what_it_finds_on_the_cpu(corpus):
    torch.manual_seed(8)
    size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), size, size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # far from even probabilities, so that searches differ
    side = corpus.side("test.x", corpus.source)
    found = {}
    for device in (CPU, DEVICE):
        engine = TorchEngine(model.to(device), systems.decode(beam=4))
        found[device] = [best[0].tokens for best in engine.search(side, side.lengths)]
    assert found[DEVICE] == found[CPU]
    assert len({tuple(tokens) for tokens in found[CPU]}) > 10
