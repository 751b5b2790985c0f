"""The flat optimizer against torch's own, and the moving average by hand."""

import pytest
import torch
from torch import nn

import systems
from bleuprint.config.optimization import Optimizer
from bleuprint.training import optimizer as optimizer_module
from bleuprint.training.optimizer import FlatOptimizer, ema_weights

SGD_WITH_MOMENTUM = Optimizer(name="sgd", momentum=0.9, weight_decay=0.1)


def new_network():
    """Return a network of four parameters, with the same weights each time."""
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))


def flat_optimizer(network, **changes):
    """Make the optimizer of a network, with the settings of a small training and these changes."""
    return FlatOptimizer(network, systems.train(**changes))


def backward(network, factor=1.0):
    """Add the gradient of a loss on seven random inputs."""
    loss = factor * network(torch.randn(7, 3)).square().sum()
    loss.backward()


@pytest.mark.parametrize(
    "clip_norm",
    [
        pytest.param(0.0, id="no clipping"),
        pytest.param(0.05, id="always clipped"),
        pytest.param(1000.0, id="never clipped"),
    ],
)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(
    ("name", "torch_class", "options"),
    [
        pytest.param("adam", torch.optim.Adam, {"betas": (0.9, 0.98), "eps": 1e-9}, id="Adam"),
        # An eps as large as these gradients changes the result visibly.
        pytest.param(
            "adam", torch.optim.Adam, {"betas": (0.7, 0.95), "eps": 0.5}, id="Adam, large eps"
        ),
        pytest.param("adamw", torch.optim.AdamW, {"betas": (0.9, 0.98), "eps": 1e-9}, id="AdamW"),
        pytest.param(
            "adamw", torch.optim.AdamW, {"betas": (0.7, 0.95), "eps": 0.5}, id="AdamW, large eps"
        ),
        pytest.param("sgd", torch.optim.SGD, {"momentum": 0.9}, id="SGD with momentum"),
        pytest.param("sgd", torch.optim.SGD, {"momentum": 0.0}, id="SGD without momentum"),
    ],
)
def test_three_updates_equal_those_of_torchs_optimizer(
    clip_norm, weight_decay, name, torch_class, options
):
    """Each network gets the same inputs, and is updated with three learning rates."""
    network = new_network()
    settings = Optimizer(name=name, weight_decay=weight_decay, **options)
    optimizer = flat_optimizer(network, clip_norm=clip_norm, optimizer=settings)
    torch_network = new_network()
    torch_optimizer = torch_class(torch_network.parameters(), weight_decay=weight_decay, **options)
    inputs = torch.randn(7, 3)

    for learning_rate in (0.1, 0.03, 0.2):
        torch_optimizer.zero_grad()
        torch_network(inputs).square().sum().backward()
        torch_norm = nn.utils.clip_grad_norm_(torch_network.parameters(), clip_norm or 1e9)
        torch_optimizer.param_groups[0]["lr"] = learning_rate
        torch_optimizer.step()
        optimizer.zero_grad()
        network(inputs).square().sum().backward()
        norm = optimizer.grad_norm()
        optimizer.step(learning_rate, norm)

        # The norm is between the two values of `clip_norm`: one always clips, the other never.
        assert 0.05 < torch_norm < 1000
        assert norm == pytest.approx(float(torch_norm), rel=1e-5)
        pairs = zip(network.parameters(), torch_network.parameters(), strict=True)
        for parameter, torch_parameter in pairs:
            torch.testing.assert_close(parameter, torch_parameter, rtol=1e-4, atol=1e-5)


def test_a_gradient_below_clip_norm_is_not_changed():
    """`clip_norm` is far above the norm of this gradient, so that the update leaves it as it is."""
    network = new_network()
    optimizer = flat_optimizer(network, clip_norm=1000.0)
    backward(network)
    gradient = optimizer.gradient.clone()

    optimizer.step(0.1, optimizer.grad_norm())

    assert 0 < gradient.norm() < 1000
    assert torch.equal(optimizer.gradient, gradient)


@pytest.mark.parametrize("clip_norm", [0.5, 2.0])
def test_a_gradient_above_clip_norm_is_scaled_to_it(clip_norm):
    """The loss is multiplied by 10, which makes the gradient more than twice as large."""
    network = new_network()
    optimizer = flat_optimizer(network, clip_norm=clip_norm)
    backward(network, factor=10)
    gradient = optimizer.gradient.clone()
    assert gradient.norm() > 2 * clip_norm

    optimizer.step(0.1, optimizer.grad_norm())

    torch.testing.assert_close(optimizer.gradient, gradient * (clip_norm / gradient.norm()))


@pytest.mark.parametrize("eps", [1e-9, 0.25])
def test_the_first_update_of_adam_by_hand(eps):
    """After one update, Adam's corrected moments are the gradient g and its square."""
    network = new_network()
    optimizer = flat_optimizer(network, clip_norm=0.0, optimizer=Optimizer(eps=eps))
    backward(network)
    old_weights = optimizer.weights.clone()
    gradient = optimizer.gradient.clone()

    optimizer.step(0.1, optimizer.grad_norm())

    expected = old_weights - 0.1 * gradient / (gradient.abs() + eps)
    torch.testing.assert_close(optimizer.weights, expected, rtol=1e-4, atol=1e-6)


def starts_of_parameters(network, optimizer):
    """Return the index in the vector of all weights at which each parameter begins."""
    first_address = optimizer.weights.data_ptr()
    bytes_of_float32 = 4
    starts = []
    for parameter in network.parameters():
        starts.append((parameter.data_ptr() - first_address) // bytes_of_float32)
    return starts


def test_parameters_begin_at_multiples_of_64_elements():
    """One vector contains all parameters; on CPUs, aligned weights make products faster.

    The network has four parameters, each of fewer than 64 elements.
    """
    network = new_network()
    optimizer = flat_optimizer(network)

    starts = starts_of_parameters(network, optimizer)

    assert starts == [0, 64, 128, 192]


def test_an_update_leaves_the_gaps_between_parameters_at_zero():
    """One vector contains all parameters, each at a multiple of 64; the gaps belong to none."""
    network = new_network()
    optimizer = flat_optimizer(network)
    is_gap = torch.ones(len(optimizer.weights), dtype=torch.bool)
    starts = starts_of_parameters(network, optimizer)
    for start, parameter in zip(starts, network.parameters(), strict=True):
        is_gap[start : start + parameter.numel()] = False

    backward(network)
    optimizer.step(0.1, optimizer.grad_norm())

    gaps = optimizer.weights[is_gap]
    assert len(gaps) > 0
    assert torch.count_nonzero(gaps) == 0


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_a_training_continues_with_another_alignment_of_the_weights(name, monkeypatch):
    """A training may continue on a GPU, with other gaps between parameters than on the CPU before.

    The second optimizer aligns parameters to 16 elements instead of 64. It gets the weights and the
    state of the first after one update; a second update must then give both the same result.
    """
    changes = {"optimizer": Optimizer(name=name), "ema": 0.5}
    inputs = torch.randn(7, 3)

    def update(network, optimizer):
        optimizer.zero_grad()
        network(inputs).square().sum().backward()
        optimizer.step(0.1, optimizer.grad_norm())

    network = new_network()
    optimizer = flat_optimizer(network, **changes)
    update(network, optimizer)
    monkeypatch.setattr(optimizer_module, "_ALIGNED_ELEMENTS", 16)
    other_network = new_network()
    other_network.load_state_dict(network.state_dict())
    other_optimizer = flat_optimizer(other_network, **changes)
    saved_state = {name: tensor.clone() for name, tensor in optimizer.state_dict().items()}
    other_optimizer.load_state_dict(saved_state)
    assert len(other_optimizer.weights) != len(optimizer.weights)

    update(network, optimizer)
    update(other_network, other_optimizer)

    tensors = [*network.parameters(), *optimizer.state_dict().values()]
    other_tensors = [*other_network.parameters(), *other_optimizer.state_dict().values()]
    for tensor, other_tensor in zip(tensors, other_tensors, strict=True):
        torch.testing.assert_close(tensor, other_tensor, rtol=1e-5, atol=1e-7)


def weighted_mean(weights_by_update, decay):
    """Return the mean of the weights after each update; the share of older ones decays.

    Args:
        weights_by_update: The weights after each update, oldest first.
        decay: The share of the weights after an update, divided by the share after the next one.
    """
    total = torch.zeros_like(weights_by_update[0])
    sum_of_shares = 0.0
    for age, weights in enumerate(reversed(weights_by_update)):
        share = decay**age
        total += share * weights
        sum_of_shares += share
    return total / sum_of_shares


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.999])
def test_the_moving_average_is_the_weighted_mean_of_the_weights_after_all_updates(decay):
    """The reference, `weighted_mean`, gives each older update `decay` times the weight of the next.

    It is computed from all weights of up to five updates, in float64.
    """
    network = new_network()
    optimizer = flat_optimizer(network, optimizer=SGD_WITH_MOMENTUM, ema=decay)
    history: dict[str, list[torch.Tensor]] = {name: [] for name, _ in network.named_parameters()}

    for update in range(1, 6):
        optimizer.zero_grad()
        backward(network)
        optimizer.step(0.1, optimizer.grad_norm())
        for name, parameter in network.named_parameters():
            history[name].append(parameter.detach().double().clone())

        averages = ema_weights(optimizer.state_dict(), decay, update)

        assert averages.keys() == history.keys()
        for name, average in averages.items():
            expected = weighted_mean(history[name], decay)
            torch.testing.assert_close(average.double(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "vectors", "scalars"),
    [
        pytest.param({}, ["exp_avg", "exp_avg_sq"], ["step"], id="Adam"),
        pytest.param(
            {"ema": 0.9}, ["exp_avg", "exp_avg_sq", "ema"], ["step"], id="Adam, moving average"
        ),
        pytest.param({"optimizer": SGD_WITH_MOMENTUM}, ["momentum_buffer"], [], id="SGD"),
    ],
)
def test_the_saved_state_contains_what_the_settings_need(changes, vectors, scalars):
    """Checkpoints contain these names, so renaming one would make old checkpoints unreadable.

    Each vector has an entry per parameter of the network, a scalar has one in all.
    """
    network = new_network()

    state = flat_optimizer(network, **changes).state_dict()

    expected_names = set(scalars)
    for vector in vectors:
        for name, _ in network.named_parameters():
            expected_names.add(f"{vector}.{name}")
    assert set(state) == expected_names
