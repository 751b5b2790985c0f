"""A model with own code is trained by several processes as by one."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from safetensors.numpy import load_file

from own_code import own_code_example, write_module
from params import write_resolved
from trainings import make_project, train, untrained_copy

RUN_FOLDER = Path("micro", "toy", "1")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train the toy project with the relative positions of docs/own_code.md in one process."""
    root = make_project(tmp_path_factory.mktemp("own_parts"))
    write_module(root, "relative", own_code_example())
    path = root / "params.yaml"
    params = YAML().load(path)
    params["systems"]["micro"]["model"]["positions"] = "own.relative"
    with path.open("w", encoding="utf-8") as stream:
        YAML().dump(params, stream)
    write_resolved(root)
    train(root)
    return root


@pytest.fixture(scope="module")
def trained_by_two(trained, tmp_path_factory):
    """Train the same project in two processes, which exchange gradients by gloo."""
    root = tmp_path_factory.mktemp("two_processes")
    write_module(root, "relative", own_code_example())
    train(untrained_copy(trained, root), processes=2)
    return root


def record(root, name):
    """Return the content of a file that the training has written, such as curves.json."""
    return json.loads((root / "results" / RUN_FOLDER / name).read_text("utf-8"))


def last_weights(root):
    """Return the weights of the last checkpoint by name."""
    (*_, path) = sorted((root / "models" / RUN_FOLDER).rglob("*.safetensors"))
    return load_file(path)


def test_two_processes_give_the_same_losses_with_own_code(trained, trained_by_two):
    losses = [point["loss"] for point in record(trained, "curves.json")["training"]]

    losses_of_two = [point["loss"] for point in record(trained_by_two, "curves.json")["training"]]

    assert losses_of_two == pytest.approx(losses, rel=1e-4)


def test_the_number_of_processes_does_not_count_for_own_code(trained, trained_by_two):
    """A training in two processes can be continued in one, and its results are up to date there."""
    for name in ("fingerprint", "updates", "target_tokens", "flops"):
        assert (
            record(trained_by_two, "training.json")[name] == record(trained, "training.json")[name]
        )


@pytest.mark.parametrize("side", ["source", "target"])
def test_two_processes_sum_the_gradients_of_own_weights(trained, trained_by_two, side):
    """The learned numbers are 0 before the training. Sums in another order differ slightly."""
    name = f"{side}_positions.own.bias"
    bias = last_weights(trained)[name]

    bias_of_two = last_weights(trained_by_two)[name]

    assert abs(bias).max() > 0.01
    assert bias_of_two == pytest.approx(bias, abs=5e-4)
