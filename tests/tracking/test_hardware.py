"""How fast devices compute, and what a training cost by their time: numbers worked by hand."""

import math
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.files import read_json
from bleuprint.tracking import hardware as machine
from bleuprint.tracking import training_cost
from bleuprint.tracking.hardware import (
    measured_flops,
    paper_flops,
    peak_flops,
    utilization,
)
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.tracking.training_cost import write_training
from bleuprint.training.train_state import TrainState

CPU = torch.device("cpu")
ALONE = Group(0, 1, CPU)
HOUR, DAY = 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "devices", "name", "cost"),
    [
        # the Transformer, base and big
        (12 * HOUR, 8, "Tesla P100-SXM2-16GB", 3.28e18),
        (3.5 * DAY, 8, "Tesla P100-PCIE-16GB", 2.30e19),
        # GNMT on en-fr, of the same table: 6 days on 96 K80s
        (6 * DAY, 96, "Tesla K80", 1.39e20),
    ],
)
def test_the_papers_costs(seconds: float, devices: int, name: str, cost: float) -> None:
    sustained = paper_flops(name)
    assert sustained is not None
    assert seconds * devices * sustained == pytest.approx(cost, rel=5e-3)


def test_utilization_is_the_share_of_what_could_have_been_done() -> None:
    # 8 devices of 10 FLOP/s could have done 8,000 in 100 s
    assert utilization(2_000, 100, 8, 10) == 0.25


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("Tesla K80", 2.8e12),
        ("Tesla K40c", 3.7e12),
        ("Tesla K40m", 3.7e12),
        ("Tesla M40", 6.0e12),
        ("Tesla M40 24GB", 6.0e12),
        ("NVIDIA Tesla P100-PCIE-12GB", 9.5e12),
        ("Quadro P1000", None),
        ("Quadro M4000", None),
        ("Tesla P4", None),
        ("NVIDIA H100 80GB HBM3", None),
        ("AMD EPYC", None),
    ],
)
def test_sustained_rates_by_the_paper(name: str, flops: float | None) -> None:
    assert paper_flops(name) == flops


@pytest.mark.parametrize(
    ("name", "float32", "tf32", "bfloat16"),
    [
        # without units for tf32, float32 is what it is computed in; bfloat16 is not computed
        ("Tesla P100-PCIE-16GB", 9.3, 9.3, None),
        ("Tesla P100-SXM2-16GB", 10.6, 10.6, None),
        ("Tesla V100-SXM2-32GB", 15.7, 15.7, None),
        ("Tesla T4", 8.1, 8.1, None),
        ("NVIDIA A100-SXM4-40GB", 19.5, 156, 312),
        ("A100-SXM4-80GB", 19.5, 156, 312),
        ("NVIDIA A100 80GB PCIe", 19.5, 156, 312),
        ("NVIDIA A100-PCIE-40GB", 19.5, 156, 312),
        ("NVIDIA A10", 31.2, 62.5, 125),
        ("NVIDIA L4", 30.3, 60, 121),
        ("NVIDIA L40S", 91.6, 183, 362.05),
        ("NVIDIA H100 PCIe", 51, 378, 756.5),
        ("NVIDIA H100 80GB HBM3", 67, 494.5, 989.5),
        ("NVIDIA H100 NVL", 60, 417.5, 835.5),
        ("NVIDIA H200", 67, 494.5, 989.5),
        ("NVIDIA GeForce RTX 3090", 35.6, 35.6, 71),
        ("NVIDIA GeForce RTX 4090", 82.6, 82.6, 165.2),
        # other devices than their names begin like, and parts of devices
        ("NVIDIA A10G", None, None, None),
        ("NVIDIA A1000", None, None, None),
        ("NVIDIA T400", None, None, None),
        ("NVIDIA GeForce RTX 3090 Ti", None, None, None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, None, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None, None, None),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", None, None, None),
        ("AMD EPYC", None, None, None),
    ],
)
def test_peaks_by_device_and_precision(
    name: str, float32: float | None, tf32: float | None, bfloat16: float | None
) -> None:
    for precision, peak in (("float32", float32), ("tf32", tf32), ("bfloat16", bfloat16)):
        found = peak_flops(name, precision)
        assert found == (peak if peak is None else pytest.approx(peak * 1e12)), precision


def test_the_measured_rate_is_about_that_of_numpy() -> None:
    matrix = np.ones((1024, 1024), np.float32)
    fastest = math.inf
    for _ in range(5):
        began = time.perf_counter()
        matrix @ matrix
        fastest = min(fastest, time.perf_counter() - began)
    # both take every core; the rest is another library's, and the machine's other work
    assert 0.1 < measured_flops(CPU, "float32") / (2 * 1024**3 / fastest) < 10


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_measuring_is_short_and_leaves_no_trace(precision: str) -> None:
    torch.set_float32_matmul_precision("medium")
    torch.manual_seed(7)
    state = torch.get_rng_state()
    try:
        began = time.monotonic()
        assert measured_flops(CPU, precision) > 0
        assert time.monotonic() - began < 5  # 0.1 to 0.2, if nothing else runs
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_machine_is_the_same_each_time() -> None:
    one = machine.machine_of(Group(0, 3, CPU))
    assert one == machine.machine_of(Group(0, 3, CPU))
    assert (one["processes"], one["threads"]) == (3, torch.get_num_threads())


def test_a_gpu_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU on {device}")
    hardware = machine.machine_of(Group(0, 8, torch.device("cuda", 0)))
    assert (hardware["device"], hardware["processes"]) == ("GPU on cuda:0", 8)


def trained(*machines: dict[str, Any], seconds: float = 100.0) -> Stopwatch:
    """The durations of a training."""
    stopwatch = Stopwatch(Path("nowhere"), {})
    stopwatch.machines, stopwatch.seconds = list(machines), seconds
    return stopwatch


def exported(stopwatch: Stopwatch, path: Path, group: Group = ALONE) -> dict[str, Any]:
    """What is written of a training of 1e12 operations."""
    state = TrainState.initial(parameters=10)
    state.flops, state.target_tokens = 10**12, 5_000
    write_training(path, state, stopwatch, "float32", group)
    content: dict[str, Any] = read_json(path)
    return content


@pytest.fixture
def rate(monkeypatch: pytest.MonkeyPatch) -> float:
    """What measuring gives: 4e10 FLOP/s."""
    monkeypatch.setattr(training_cost, "measured_flops", lambda *_: 4e10)
    return 4e10


def test_on_cpus_both_rates_are_measured(tmp_path: Path, rate: float) -> None:
    group = Group(0, 2, CPU)
    content = exported(trained(machine.machine_of(group)), tmp_path / "train.json", group)
    assert list(content)[:8] == [
        *("seconds", "device", "processes", "threads", "commit", "versions"),
        *("tokens_per_second", "rates"),
    ]
    assert content["versions"] == f"Python {platform.python_version()}, torch {torch.__version__}"
    assert {name: content[name] for name in list(content)[8:]} == {
        "devices": 2,
        "sustained_flops": rate,
        "sustained_from": "measured",
        "flops_by_time": 8e12,  # 100 s x 2 x 4e10
        "peak_flops": rate,
        "peak_from": "measured",
        "mfu": 0.125,  # 1e12 of 8e12
    }


@pytest.mark.parametrize(
    ("name", "sustained", "peak"),
    [
        ("Tesla P100-PCIE-16GB", (9.5e12, "paper"), (9.3e12, "known")),
        ("NVIDIA A100-SXM4-40GB", (4e10, "measured"), (19.5e12, "known")),
        ("Tesla M40", (6e12, "paper"), (4e10, "measured")),
    ],
)
@pytest.mark.usefixtures("rate")
def test_on_gpus_the_rate_is_the_papers_and_the_peak_known_where_they_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    sustained: tuple[float, str],
    peak: tuple[float, str],
) -> None:
    monkeypatch.setattr(machine, "_processor", lambda: name)
    content = exported(trained(machine.machine_of(ALONE)), tmp_path / "train.json")
    assert (content["sustained_flops"], content["sustained_from"]) == sustained
    assert (content["peak_flops"], content["peak_from"]) == (pytest.approx(peak[0]), peak[1])
    assert content["flops_by_time"] == 100 * sustained[0]
    assert content["mfu"] == round(1e12 / (100 * peak[0]), 4)


@pytest.mark.usefixtures("rate")
def test_resumed_at_another_commit_it_is_the_same_machine(tmp_path: Path) -> None:
    here = machine.machine_of(ALONE)
    stopwatch = trained(here, {**here, "commit": "another"})
    assert exported(stopwatch, tmp_path / "train.json")["flops_by_time"] == 4e12


@pytest.mark.usefixtures("rate")
@pytest.mark.parametrize("change", [{"device": "Other CPU"}, {"threads": 99}, {"processes": 5}])
def test_on_different_machines_no_cost_is_computed(tmp_path: Path, change: dict[str, Any]) -> None:
    here = machine.machine_of(ALONE)
    content = exported(trained(here, {**here, **change}), tmp_path / "train.json")
    assert {name for name, value in content.items() if " + " in str(value)} == set(change)
    assert not {"devices", "flops_by_time", "sustained_flops", "peak_flops", "mfu"} & set(content)
    assert content["seconds"] == 100


@pytest.mark.usefixtures("rate")
def test_here_is_not_measured_what_ran_elsewhere(tmp_path: Path) -> None:
    elsewhere = {**machine.machine_of(ALONE), "device": "Other CPU"}
    content = exported(trained(elsewhere), tmp_path / "train.json")
    assert content["devices"] == 1
    assert {content[n] for n in ("sustained_flops", "flops_by_time", "peak_flops", "mfu")} == {None}
    gpu = {**elsewhere, "device": "Tesla P100-PCIE-16GB"}
    assert exported(trained(gpu), tmp_path / "train.json")["flops_by_time"] == 9.5e14


@pytest.mark.usefixtures("rate")
def test_a_rate_that_the_training_outran_is_not_one(tmp_path: Path) -> None:
    here = machine.machine_of(ALONE)
    # 1e12 in 24 s are 4.2e10 a second
    content = exported(trained(here, seconds=24.0), tmp_path / "train.json")
    assert {content[n] for n in ("sustained_flops", "flops_by_time", "peak_flops", "mfu")} == {None}
    assert exported(trained(here, seconds=26.0), tmp_path / "train.json")["mfu"] == 0.9615
