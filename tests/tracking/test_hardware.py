"""How fast devices compute, and what a training cost by their time: numbers worked by hand."""

import dataclasses
import platform
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.distributed.group import Group
from bleuprint.text import segmenter
from bleuprint.tracking import hardware as machine
from bleuprint.tracking.hardware import paper_flops, peak_flops
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training.train_state import TrainState
from root import ROOT

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
def test_the_papers_costs(seconds, devices, name, cost):
    sustained = paper_flops(name)
    assert sustained is not None
    assert seconds * devices * sustained == pytest.approx(cost, rel=5e-3)
    assert paper_flops("Quadro P1000") is paper_flops("NVIDIA H100 80GB HBM3") is None


@pytest.mark.parametrize(
    ("name", "float32", "tf32", "bfloat16", "float16"),
    [
        # without units for tf32, float32 is what it is computed in; bfloat16 is not computed
        ("Tesla P100-PCIE-16GB", 9.3, 9.3, None, None),
        ("Tesla V100-SXM2-32GB", 15.7, 15.7, None, 125),
        ("Tesla V100-PCIE-16GB", 14, 14, None, 112),
        ("Tesla T4", 8.1, 8.1, None, 65),
        ("NVIDIA A100-SXM4-40GB", 19.5, 156, 312, 312),
        ("NVIDIA A100 80GB PCIe", 19.5, 156, 312, 312),
        ("NVIDIA A10", 31.2, 62.5, 125, 125),
        ("NVIDIA H100 80GB HBM3", 67, 494.5, 989.5, 989.5),
        ("NVIDIA H200", 67, 494.5, 989.5, 989.5),
        ("NVIDIA GeForce RTX 3090", 35.6, 35.6, 71, 71),
        # other devices than their names begin like, and parts of devices
        ("NVIDIA A10G", None, None, None, None),
        ("NVIDIA GeForce RTX 3090 Ti", None, None, None, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None, None, None, None),
        ("AMD EPYC", None, None, None, None),
    ],
)
def test_peaks_by_device_and_precision(name, float32, tf32, bfloat16, float16):
    peaks = {"float32": float32, "tf32": tf32, "bfloat16": bfloat16, "float16": float16}
    for precision, peak in peaks.items():
        found = peak_flops(name, precision)
        assert found == (peak if peak is None else pytest.approx(peak * 1e12)), precision


def test_peak_memory_is_in_bytes():
    before = machine.peak_memory(CPU)
    held = torch.ones(100_000_000)  # 400 MB
    grown = machine.peak_memory(CPU)
    assert 5e7 < before <= grown and grown > held.nbytes


def trained(*machines, seconds=100.0):
    """The durations of a training."""
    stopwatch = Stopwatch(Path("nowhere"), {}, lambda: 0)
    stopwatch.peak_memory = 10**8
    stopwatch.machines, stopwatch.seconds = list(machines), seconds
    return stopwatch


def cost(stopwatch):
    """What was measured of a training of 1e12 operations."""
    state = TrainState.initial(parameters=10)
    state.flops, state.target_tokens = 10**12, 5_000
    return stopwatch.cost(state, "float32")


def test_what_was_measured_on_a_cpu():
    training = cost(trained(machine.describe_machine(Group(0, 2, CPU))))
    assert (training.seconds, training.tokens_per_second) == (100, 50)
    assert (training.processes, training.devices) == (2, 2)
    assert training.versions == f"Python {platform.python_version()}, torch {torch.__version__}"
    assert training.peak_memory == 10**8
    # no sustained FLOP/s is published for it
    assert {training.sustained_flops, training.flops_by_time, training.mfu} == {None}


@pytest.mark.parametrize(
    ("name", "sustained", "peak"),
    [
        ("Tesla P100-PCIE-16GB", 9.5e12, 9.3e12),
        ("NVIDIA A100-SXM4-40GB", None, 19.5e12),
        ("Tesla M40", 6e12, None),
    ],
)
def test_on_gpus_the_rates_are_the_papers_and_the_data_sheets(monkeypatch, name, sustained, peak):
    monkeypatch.setattr(machine, "_cpu_name", lambda: name)
    training = cost(trained(machine.describe_machine(ALONE)))
    assert training.sustained_flops == sustained
    assert training.flops_by_time == (sustained and 100 * sustained)
    assert training.peak_flops == (peak and pytest.approx(peak))
    assert training.mfu == (peak and round(1e12 / (100 * peak), 4))


@pytest.mark.parametrize("change", [{"device": "Other CPU"}, {"threads": 99}, {"processes": 5}])
def test_on_different_machines_no_cost_is_computed(change):
    gpu = {**machine.describe_machine(ALONE), "device": "Tesla P100-PCIE-16GB"}
    training = cost(trained(gpu, {**gpu, **change}))
    joined = {name for name, value in vars(training).items() if " + " in str(value)}
    assert joined == set(change) and training.seconds == 100
    assert {training.devices, training.flops_by_time, training.peak_flops, training.mfu} == {None}


def test_the_peak_of_memory_is_that_of_the_processes_that_trained(tmp_path):
    """A process that finds the training finished, as of another row, adds nothing."""
    for peak in (7, 9, 5):
        stopwatch = Stopwatch(tmp_path, {}, lambda peak=peak: peak)
        stopwatch.save()
    assert Stopwatch(tmp_path, {}, lambda: 11).peak_memory == 9


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("Tesla K80", 2.8e12),
        ("Tesla K40c", 3.7e12),
        ("Tesla K40m", 3.7e12),
        ("Tesla M40 24GB", 6.0e12),
        ("NVIDIA Tesla P100-PCIE-12GB", 9.5e12),
        # devices whose names are like these, and others
        ("Quadro M4000", None),
        ("Tesla P4", None),
        ("AMD EPYC", None),
    ],
)
def test_sustained_rates_are_those_of_the_papers_footnote(name, flops):
    assert paper_flops(name) == flops


def test_costs_are_of_all_devices():
    """8 P100 of 9.3e12 FLOP/s could have done 7.44e12 in 0.1 s, of which 1e12 is 13.44%."""
    machines = {**machine.describe_machine(Group(0, 8, CPU)), "device": "Tesla P100-PCIE-16GB"}
    training = cost(trained(machines, seconds=0.1))
    assert training.devices == 8
    assert training.mfu == 0.1344
    assert training.flops_by_time == pytest.approx(0.1 * 8 * 9.5e12)


def test_a_training_resumed_at_another_commit_is_of_one_machine():
    gpu = {**machine.describe_machine(ALONE), "device": "Tesla P100-PCIE-16GB"}
    training = cost(trained(gpu, {**gpu, "commit": "another"}))
    assert training.flops_by_time == 9.5e14
    assert training.commit.endswith(" + another")


def test_a_gpu_is_named_by_torch(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU on {device}")
    hardware = machine.describe_machine(Group(0, 8, torch.device("cuda", 0)))
    assert (hardware["device"], hardware["processes"]) == ("GPU on cuda:0", 8)


def test_versions_include_the_packages_that_decide_the_text():
    shown = machine.describe_machine(ALONE, ["sacremoses", "subword-nmt"])["versions"]
    expected = [f"{name} {version(name)}" for name in ("sacremoses", "subword-nmt")]
    assert shown.split(", ")[2:] == expected


@pytest.mark.parametrize(
    ("recipe", "libraries"),
    [
        ("phrasebook", ["sacremoses", "subword-nmt"]),
        ("course-multi30k", ["spacy", "sacremoses"]),
        ("copy", []),
    ],
)
def test_packages_of_recipes(recipe, libraries):
    corpora = load_settings(ROOT / "recipes" / f"{recipe}.yaml").corpora
    assert machine.text_libraries(next(iter(corpora.values()))) == libraries


def test_packages_of_sentencepiece_and_a_segmenter(monkeypatch):
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)  # installed or not
    corpus = load_settings(ROOT / "recipes" / "phrasebook.yaml").corpora["phrasebook-en-de"]
    pieces = Units(sentencepiece=SentencePiece("bpe", 99, joint=True, byte_fallback=False))
    thai = dataclasses.replace(
        corpus,
        target="th",
        tokenize=dataclasses.replace(corpus.tokenize, name="segmenter"),
        vocabulary=pieces,
        clean=(),
        filter=(),
    )
    assert machine.text_libraries(thai) == ["pythainlp", "sacremoses", "sentencepiece"]
