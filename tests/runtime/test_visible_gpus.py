"""CUDA_VISIBLE_DEVICES is read by CUDA's documented examples, and as PyTorch reads it."""

import random

import pytest
import torch

from bleuprint.runtime import visible_gpus as module
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.visible_gpus import named_gpus, visible_gpus

# The GPU of the example in CUDA's documentation, and two whose UUIDs begin with the same digits.
UUIDS = [
    "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
    "GPU-5f1c03aa-0000-0000-0000-000000000001",
    "GPU-5f9e03aa-0000-0000-0000-000000000002",
]


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets CUDA_VISIBLE_DEVICES on a machine with three GPUs."""
    monkeypatch.setattr(module, "_driver_uuids", lambda: UUIDS)
    return lambda setting: monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)


@pytest.mark.parametrize(
    ("setting", "numbers"),
    [
        pytest.param("2,1", [2, 1], id="in-the-order-of-the-list"),
        pytest.param("0,2,-1,1", [0, 2], id="an-invalid-number-ends-the-list"),
        pytest.param("GPU-8932f937", [0], id="abbreviated-uuid"),
        pytest.param("GPU-5f9,GPU-8", [2, 0], id="abbreviated-uuids"),
        pytest.param(UUIDS[1], [1], id="whole-uuid"),
        pytest.param(" 1 , 0", [1, 0], id="spaces"),
        pytest.param("0,GPU-5f9", [0], id="a-uuid-ends-a-list-of-numbers"),
        pytest.param("GPU-5f9,0", [2], id="a-number-ends-a-list-of-uuids"),
        pytest.param("1gpu2,2ampere", [1, 2], id="text-after-numbers"),
    ],
)
def test_a_list_shows_the_gpus_that_cuda_shows(machine, setting, numbers):
    """The first three are the examples of CUDA's documentation."""
    machine(setting)

    assert visible_gpus() == [UUIDS[number] for number in numbers]


@pytest.mark.parametrize("setting", ["", "-1", "-1,0", "none", "NoDevFiles", "void", ","])
def test_a_list_that_begins_with_no_gpu_hides_all(machine, setting):
    """SLURM writes NoDevFiles for a job without GPUs."""
    machine(setting)

    assert named_gpus(setting) == []
    assert visible_gpus() == []


@pytest.mark.parametrize("setting", ["0,0", "0,00", "GPU-89,GPU-893", "MIG-a,MIG-a"])
def test_a_gpu_that_is_named_twice_is_an_error(machine, setting):
    """CUDA finds no GPU then, and the training would run on the CPUs."""
    machine(setting)

    with pytest.raises(UserError, match=f"is '{setting}' and names a GPU twice, .* Name each once"):
        visible_gpus()


@pytest.mark.parametrize("setting", ["7", "GPU-5f", "GPU-aaaa", "MIG-5f1c/1/0"])
def test_a_name_that_stands_for_no_single_gpu_of_the_driver_stays_as_it_is(machine, setting):
    """PyTorch finds no such GPU, and the stage reports it. Parts of GPUs (MIG) are not listed."""
    machine(setting)

    assert visible_gpus() == [setting]


def test_without_a_driver_the_names_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(module, "_driver_uuids", list)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5f")

    assert visible_gpus() == ["GPU-5f"]


def test_without_a_setting_all_gpus_of_the_driver_are_visible(monkeypatch):
    monkeypatch.setattr(module, "_driver_uuids", lambda: UUIDS)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    assert visible_gpus() == UUIDS


def numbers_by_pytorch(setting, monkeypatch):
    """Return the numbers of the GPUs that PyTorch's own reader finds in a setting, of `UUIDS`."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    entries = torch.cuda._parse_visible_devices()
    if entries and isinstance(entries[0], str):
        return torch.cuda._transform_uuid_to_ordinals(entries, UUIDS)
    numbers = []
    for number in entries:
        if number >= len(UUIDS):
            break
        numbers.append(number)
    return numbers


@pytest.mark.usefixtures("machine")
def test_random_lists_show_the_gpus_that_pytorch_finds(monkeypatch):
    """PyTorch reads the variable with code of its own, to count GPUs without starting CUDA.

    PyTorch finds no GPU where one is named twice, which is an error here. Names that stand for no
    GPU end PyTorch's list; here they stay, so that the stage can report them.
    """
    entries = ["0", "1", "2", "3", "-1", "", "x", "1x", "+2", " 1"]
    entries += ["GPU-", "GPU-8", "GPU-5f", "GPU-5f1", UUIDS[2], "GPU-aa", "MIG-1"]
    rng = random.Random(1)
    checked_count = 0
    for _ in range(2000):
        setting = ",".join(rng.choices(entries, k=rng.randint(1, 4)))
        expected = numbers_by_pytorch(setting, monkeypatch)
        try:
            names = visible_gpus()
        except UserError:
            assert expected == [], setting
            continue
        found = []
        for name in names:
            if name not in UUIDS:
                break
            found.append(UUIDS.index(name))
        assert found == expected, setting
        checked_count += bool(expected)
    assert checked_count > 500
