"""How fast devices compute, and what a training costs by its time on them."""

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
from bleuprint.tracking import hardware
from bleuprint.tracking.hardware import describe_machine, paper_flops, peak_flops, text_libraries
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.training.train_state import TrainState
from root import ROOT

CPU = torch.device("cpu")
ONE_PROCESS = Group(0, 1, CPU)
HOUR_SECONDS = 3600
DAY_SECONDS = 86_400


@pytest.mark.parametrize(
    ("seconds", "devices", "device_name", "cost"),
    [
        pytest.param(12 * HOUR_SECONDS, 8, "Tesla P100-SXM2-16GB", 3.28e18, id="Transformer base"),
        pytest.param(3.5 * DAY_SECONDS, 8, "Tesla P100-PCIE-16GB", 2.30e19, id="Transformer big"),
        pytest.param(6 * DAY_SECONDS, 96, "Tesla K80", 1.39e20, id="GNMT, English to French"),
    ],
)
def test_the_training_costs_of_attention_is_all_you_need_are_reproduced(
    seconds, devices, device_name, cost
):
    """Vaswani et al. (2017) multiply time, number of GPUs and sustained FLOP/s of a GPU.

    The expected costs are those of their table 2, rounded to three digits.
    """
    sustained_flops = paper_flops(device_name)

    total_flops = seconds * devices * sustained_flops
    assert total_flops == pytest.approx(cost, rel=5e-3)


@pytest.mark.parametrize(
    ("device_name", "sustained_flops"),
    [
        ("Tesla K80", 2.8e12),
        ("Tesla K40c", 3.7e12),
        ("Tesla K40m", 3.7e12),
        ("Tesla M40 24GB", 6.0e12),
        ("NVIDIA Tesla P100-PCIE-12GB", 9.5e12),
    ],
)
def test_the_sustained_flops_of_a_gpu_are_those_of_the_papers_footnote(
    device_name, sustained_flops
):
    """Vaswani et al. (2017), footnote 5, names K80, K40, M40 and P100."""
    assert paper_flops(device_name) == sustained_flops


@pytest.mark.parametrize(
    "device_name",
    ["Quadro M4000", "Tesla P4", "Quadro P1000", "NVIDIA H100 80GB HBM3", "AMD EPYC"],
)
def test_other_devices_have_no_sustained_flops(device_name):
    """Some of their names resemble those of the GPUs in the paper."""
    assert paper_flops(device_name) is None


@pytest.mark.parametrize(
    ("device_name", "float32", "tf32", "bfloat16", "float16"),
    [
        # Without units for tf32, it is computed in float32; bfloat16 is not computed.
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
    ],
)
def test_a_device_has_the_peak_teraflops_of_its_data_sheet(
    device_name, float32, tf32, bfloat16, float16
):
    """The numbers are NVIDIA's, without sparsity; None where a GPU has no units for a precision."""
    teraflops = {"float32": float32, "tf32": tf32, "bfloat16": bfloat16, "float16": float16}
    for precision, expected in teraflops.items():
        peak = peak_flops(device_name, precision)
        if expected is None:
            assert peak is None, precision
        else:
            assert peak == pytest.approx(expected * 1e12), precision


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "device_name",
    [
        "NVIDIA A10G",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "AMD EPYC",
    ],
)
def test_a_device_whose_name_only_begins_like_a_known_one_has_no_peak(device_name, precision):
    """MIG is a part of a GPU."""
    assert peak_flops(device_name, precision) is None


def test_the_peak_memory_of_a_process_is_in_bytes():
    """Operating systems report it in different units, such as KB on Linux.

    A process with torch takes more than 50 MB, and this one then allocates 400 MB.
    """
    peak_before = hardware.peak_memory(CPU)
    array = torch.ones(100_000_000)  # float32: 4 bytes each

    peak = hardware.peak_memory(CPU)

    assert 50_000_000 < peak_before <= peak
    assert peak > array.nbytes


def cost_on_machines(*machines, seconds=100.0, flops=10**12, target_tokens=5000, peak_memory=0):
    """Return the cost of a training.

    Args:
        machines: The machines on which it ran, as `describe_machine` returns them.
        seconds: Its duration.
        flops: The number of its floating-point operations.
        target_tokens: The number of target tokens that it was trained on.
        peak_memory: The largest memory of its processes, in bytes.
    """
    stopwatch = Stopwatch(Path("nowhere"), {}, lambda: 0)
    stopwatch.peak_memory = peak_memory
    stopwatch.machines = list(machines)
    stopwatch.seconds = seconds
    state = TrainState.initial(parameters=10)
    state.flops = flops
    state.target_tokens = target_tokens
    return stopwatch.cost(state, "float32")


def describe_gpu_machine(processes=1):
    """Describe a machine that trains on a Tesla P100, or on several of them."""
    return describe_machine(Group(0, processes, CPU)) | {"device": "Tesla P100-PCIE-16GB"}


def test_the_cost_of_a_training_records_its_time_and_machine():
    machine = describe_machine(Group(0, 2, CPU))  # two processes

    cost = cost_on_machines(machine, seconds=100.0, target_tokens=5000, peak_memory=10**8)

    assert cost.seconds == 100
    assert cost.tokens_per_second == 5000 / 100
    assert cost.processes == 2
    assert cost.devices == 2
    assert cost.versions == f"Python {platform.python_version()}, torch {torch.__version__}"
    assert cost.peak_memory == 10**8


def test_a_training_on_a_cpu_has_no_cost_in_flops():
    """The cost is the time multiplied by FLOP/s that a paper or data sheet gives for a GPU."""
    machine = describe_machine(Group(0, 2, CPU))

    cost = cost_on_machines(machine)

    assert cost.sustained_flops is None
    assert cost.flops_by_time is None
    assert cost.mfu is None


@pytest.mark.parametrize(
    ("device_name", "sustained_flops", "peak"),
    [
        pytest.param("Tesla P100-PCIE-16GB", 9.5e12, 9.3e12, id="in paper and data sheets"),
        pytest.param("NVIDIA A100-SXM4-40GB", None, 19.5e12, id="only in data sheets"),
        pytest.param("Tesla M40", 6e12, None, id="only in the paper"),
    ],
)
def test_the_flops_by_time_come_from_the_paper_and_the_utilization_from_data_sheets(
    monkeypatch, device_name, sustained_flops, peak
):
    """Model FLOP utilization (MFU) is the share of the peak that the training has used.

    The paper, Vaswani et al. (2017), has sustained FLOP/s; data sheets have the peak.
    """
    # The name of this machine's CPU is replaced by that of a GPU.
    monkeypatch.setattr(hardware, "_cpu_name", lambda: device_name)

    cost = cost_on_machines(describe_machine(ONE_PROCESS), seconds=100.0, flops=10**12)

    assert cost.sustained_flops == sustained_flops
    if sustained_flops is None:
        assert cost.flops_by_time is None
    else:
        assert cost.flops_by_time == 100 * sustained_flops
    if peak is None:
        assert cost.peak_flops is None
        assert cost.mfu is None
    else:
        assert cost.peak_flops == pytest.approx(peak)
        possible_flops = 100 * peak
        assert cost.mfu == round(10**12 / possible_flops, 4)


@pytest.mark.parametrize(
    "change", [{"device": "Other CPU"}, {"threads": 99}, {"processes": 5}], ids=" ".join
)
def test_a_training_that_was_resumed_on_another_machine_has_no_cost_in_flops(change):
    """How much of the 100 seconds each machine took is unknown."""
    first_machine = describe_gpu_machine()
    second_machine = first_machine | change

    cost = cost_on_machines(first_machine, second_machine, seconds=100.0)

    assert cost.seconds == 100
    assert cost.devices is None
    assert cost.flops_by_time is None
    assert cost.peak_flops is None
    assert cost.mfu is None


@pytest.mark.parametrize(
    "change", [{"device": "Other CPU"}, {"threads": 99}, {"processes": 5}], ids=" ".join
)
def test_the_cost_names_both_machines_where_they_differ(change):
    """A field that differs contains both values, such as "Tesla P100 + Other CPU"."""
    first_machine = describe_gpu_machine()
    second_machine = first_machine | change

    cost = cost_on_machines(first_machine, second_machine)

    fields_with_both = [name for name, value in vars(cost).items() if " + " in str(value)]
    assert fields_with_both == list(change)


def test_the_cost_of_a_training_resumed_at_another_commit_is_that_of_one_machine():
    """The commit does not change the speed of a GPU: here a P100 with sustained 9.5e12 FLOP/s."""
    first_machine = describe_gpu_machine()
    second_machine = first_machine | {"commit": "another"}

    cost = cost_on_machines(first_machine, second_machine, seconds=100.0)

    assert cost.flops_by_time == 100 * 9.5e12
    assert cost.commit.endswith(" + another")


def test_the_cost_of_a_training_counts_all_devices():
    """Eight P100, each with a peak of 9.3e12 FLOP/s and sustained 9.5e12 according to a paper."""
    machine = describe_gpu_machine(processes=8)

    cost = cost_on_machines(machine, seconds=0.1, flops=10**12)

    assert cost.devices == 8
    possible_flops = 0.1 * 8 * 9.3e12
    assert cost.mfu == round(10**12 / possible_flops, 4) == 0.1344
    assert cost.flops_by_time == pytest.approx(0.1 * 8 * 9.5e12)


def test_the_peak_memory_of_a_training_is_the_largest_of_its_processes(tmp_path):
    """A training that is resumed has a process for each start. Here four need 7, 9, 5 and 5 bytes.

    The last argument of a stopwatch is the function that measures the memory of its process.
    """
    for peak in (7, 9, 5):
        stopwatch = Stopwatch(tmp_path, {}, lambda peak=peak: peak)
        stopwatch.save()

    last_stopwatch = Stopwatch(tmp_path, {}, lambda: 5)

    assert last_stopwatch.peak_memory == 9


def test_a_process_that_finds_the_training_finished_does_not_change_its_peak_memory(tmp_path):
    """The process that trained needed 9 bytes. The later one needs 11, and trains nothing.

    The last argument of a stopwatch is the function that measures the memory of its process.
    """
    stopwatch = Stopwatch(tmp_path, {}, lambda: 9)
    stopwatch.save()

    later_stopwatch = Stopwatch(tmp_path, {}, lambda: 11)

    assert later_stopwatch.peak_memory == 9


def test_torch_tells_the_name_of_a_gpu(monkeypatch):
    """One of eight processes, on the first GPU of its machine; torch is replaced by a function."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU on {device}")

    machine = describe_machine(Group(0, 8, torch.device("cuda", 0)))

    assert machine["device"] == "GPU on cuda:0"
    assert machine["processes"] == 8


def test_the_description_of_a_machine_lists_the_versions_of_packages_that_split_text():
    """A new version of such a package may split a text differently, and so change a training."""
    machine = describe_machine(ONE_PROCESS, ["sacremoses", "subword-nmt"])

    _python, _torch, *packages = machine["versions"].split(", ")
    assert packages == [
        f"sacremoses {version('sacremoses')}",
        f"subword-nmt {version('subword-nmt')}",
    ]


@pytest.mark.parametrize(
    ("recipe", "libraries"),
    [
        pytest.param("phrasebook", ["sacremoses", "subword-nmt"], id="Moses and BPE"),
        pytest.param("course-multi30k", ["spacy", "sacremoses"], id="spaCy and words"),
        pytest.param("copy", [], id="neither"),
    ],
)
def test_the_text_of_a_recipe_is_split_by_these_packages(recipe, libraries):
    """Their versions are recorded with a training, since another version may split differently."""
    corpora = load_settings(ROOT / "recipes" / f"{recipe}.yaml").corpora
    first_corpus = next(iter(corpora.values()))

    assert text_libraries(first_corpus) == libraries


def test_the_libraries_that_split_thai_are_its_segmenter_and_sentencepiece(monkeypatch):
    """A corpus from English to Thai: pythainlp segments Thai, and sacremoses tokenizes English."""
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)  # as if all were installed
    corpus = load_settings(ROOT / "recipes" / "phrasebook.yaml").corpora["phrasebook-en-de"]
    sentencepiece = SentencePiece("bpe", 99, joint=True, byte_fallback=False)
    thai = dataclasses.replace(
        corpus,
        target="th",
        tokenize=dataclasses.replace(corpus.tokenize, name="segmenter"),
        vocabulary=Units(sentencepiece=sentencepiece),
        clean=(),
        filter=(),
    )

    assert text_libraries(thai) == ["pythainlp", "sacremoses", "sentencepiece"]
