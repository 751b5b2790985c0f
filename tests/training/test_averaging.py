"""Averages of checkpoints: exactly those that the settings name, and only of one training."""

import hashlib
import json
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from bleuprint.config.system import Average
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.comet import folder_sha256
from bleuprint.training.averaging import average_checkpoints, mean_tensors

WEIGHTS = "model.safetensors"
MARK = {"fingerprint": "f1"}

# of 10 and 40 the losses are the same, of 20 and 30 the BLEU; 25 was validated and not kept
VALIDATIONS = [
    {"update": 10, "loss": 2.0, "bleu": 11.0},
    {"update": 20, "loss": 3.0, "bleu": 13.0},
    {"update": 25, "loss": 1.0, "bleu": 99.0},
    {"update": 30, "loss": 2.5, "bleu": 13.0},
    {"update": 40, "loss": 2.0, "bleu": 12.0},
]


def save(path, mark=MARK, /, **tensors):
    arrays = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    save_file(arrays, path, mark)
    return path


def exported(folder, metric="loss"):
    """Checkpoints whose only weight is their update; the last, of update 50, was not validated."""
    folder.mkdir()
    for update in (10, 20, 30, 40, 50):
        save(folder / f"{update:07d}.safetensors", a=[update])
    (folder / "model.json").write_text('{"of": "f1"}\n')
    record = {**MARK, "validation_metric": metric, "validations": VALIDATIONS}
    (folder / "checkpoints.json").write_text(json.dumps(record))
    return folder


def test_the_mean_is_that_of_exact_sums(tmp_path):
    rng = np.random.default_rng(3)
    shapes = {"a": (5, 7), "b": (11,), "c": (2, 3, 4)}
    sets: list[dict[str, NDArray[np.float32]]] = [
        {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        for _ in range(7)
    ]
    paths = [save(tmp_path / str(number), **tensors) for number, tensors in enumerate(sets)]
    found = mean_tensors(paths)
    assert {name: tensor.shape for name, tensor in found.items()} == shapes
    for name in shapes:
        columns = zip(*(tensors[name].ravel().tolist() for tensors in sets), strict=True)
        expected = [np.float32(math.fsum(column) / 7) for column in columns]
        assert found[name].dtype == np.float32
        assert found[name].ravel().tolist() == expected


@pytest.mark.parametrize(
    ("settings", "metric", "chosen"),
    [
        (Average(last=1), "loss", [50]),
        (Average(last=2), "loss", [40, 50]),
        (Average(last=5), "bleu", [10, 20, 30, 40, 50]),
        (Average(best=1), "loss", [10]),
        (Average(best=2), "loss", [10, 40]),
        (Average(best=3), "loss", [10, 30, 40]),
        (Average(best=1), "bleu", [20]),
        (Average(best=2), "bleu", [20, 30]),
        (Average(best=3), "bleu", [20, 30, 40]),
    ],
)
def test_the_ones_asked_for_are_averaged(tmp_path, settings, metric, chosen):
    folder = exported(tmp_path / "checkpoints", metric)
    average_checkpoints(folder, settings, tmp_path / "averaged")
    expected = np.float32(sum(chosen) / len(chosen))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


@pytest.mark.parametrize(
    ("names", "last", "chosen"),
    [
        # as text, 100 comes before 90
        (["8", "90", "100"], 1, [100]),
        (["8", "90", "100"], 2, [90, 100]),
        (["0000090", "0000100", "0000110"], 2, [100, 110]),
        (["9999990", "10000000", "10000010"], 2, [10_000_000, 10_000_010]),
        (["0000040", "9999999", "10000000"], 1, [10_000_000]),
    ],
)
def test_the_last_checkpoints_are_those_of_the_largest_updates(tmp_path, names, last, chosen):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in names:
        save(folder / f"{name}.safetensors", a=[int(name)])
    (folder / "model.json").write_text("{}\n")
    record = {**MARK, "validation_metric": "loss", "validations": []}
    (folder / "checkpoints.json").write_text(json.dumps(record))
    average_checkpoints(folder, Average(last=last), tmp_path / "averaged")
    described = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert described["averaged"]["updates"] == chosen
    expected = np.float32(sum(chosen) / len(chosen))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


def test_the_moving_average_is_taken_as_it_is(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    save(folder / "0000050.ema.safetensors", a=[0.1])
    average_checkpoints(folder, Average(ema=True), tmp_path / "averaged")
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [np.float32(0.1)]
    described = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert described["averaged"] == {"settings": {"ema": True}, "updates": [50]}
    average_checkpoints(folder, Average(last=5), tmp_path / "mean")  # it is none of the checkpoints
    described = json.loads((tmp_path / "mean" / "model.json").read_text())
    assert described["averaged"]["settings"] == {"last": 5}
    assert load_file(tmp_path / "mean" / WEIGHTS)["a"].tolist() == [30]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Average(last=6),
            "average.last is 6, but the checkpoints are: 10, 20, 30, 40, 50. "
            "Lower average.last; nothing is trained again",
        ),
        (
            Average(best=5),
            "average.best is 5, but the validated checkpoints are: 10, 20, 30, 40. "
            "Lower average.best; nothing is trained again",
        ),
        (
            Average(ema=True),
            "average.ema is true, but the training kept no moving average. Set train.ema",
        ),
    ],
)
def test_what_is_not_there_is_not_averaged(tmp_path, settings, message):
    folder = exported(tmp_path / "checkpoints")
    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, settings, tmp_path / "averaged")
    assert str(raised.value) == f"{folder}: {message}"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_one_alone_stays_as_it_is_to_the_bit(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    # a sum that starts from 0 loses the sign of -0; the others are denormal, largest, infinite
    odd = [-0.0, 0.0, 1e-45, -1e-40, 3.4028235e38, math.inf, 0.1]
    whole = save(folder / "0000050.safetensors", zero=odd, other=np.ones((2, 3)), a=[1.5])
    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")
    assert (tmp_path / "averaged" / WEIGHTS).read_bytes() == whole.read_bytes()


def test_an_average_is_described_and_repeats_to_the_byte(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    for name in ("averaged", "again"):
        average_checkpoints(folder, Average(best=2), tmp_path / name)
    assert folder_sha256(tmp_path / "again") == folder_sha256(tmp_path / "averaged")
    described = json.loads((tmp_path / "averaged" / "model.json").read_text())
    weights = (tmp_path / "averaged" / WEIGHTS).read_bytes()
    assert described == {
        "of": "f1",
        "averaged": {"settings": {"best": 2}, "updates": [10, 40]},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    with safe_open(tmp_path / "averaged" / WEIGHTS, "np") as file:
        assert file.metadata() == MARK


def test_a_checkpoint_of_another_training_is_not_averaged(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    other = save(folder / "0000040.safetensors", {"fingerprint": "f2"}, a=[40])
    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, Average(last=2), tmp_path / "averaged")
    assert str(raised.value) == (
        f"{other}: weights of another training (f2...) than checkpoints.json names (f1...)"
    )
    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")


def test_a_folder_without_checkpoints_says_so(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    for path in folder.glob("*.safetensors"):
        path.unlink()
    message = "average.last is 1, but the checkpoints are: none. Lower average.last; "
    with pytest.raises(UserError, match=message):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")


@pytest.mark.parametrize("name", ["0000050.safetensors", "checkpoints.json"])
def test_a_damaged_file_is_one_clear_line(tmp_path, name):
    folder = exported(tmp_path / "checkpoints")
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"^{path} is damaged: [^\n]+$"):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")
    assert not (tmp_path / "averaged").exists()


def test_a_record_that_lacks_a_field_is_one_clear_line(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    record = folder / "checkpoints.json"
    record.write_text(record.read_text().replace("validation_metric", "metric"))
    with pytest.raises(UserError, match=rf"^{record} .*field validation_metric is missing[^\n]*$"):
        average_checkpoints(folder, Average(best=1), tmp_path / "averaged")


def test_memory_does_not_grow_with_the_number_of_checkpoints(tmp_path):
    tensor_count, tensor_size, checkpoint_count = 16, 1 << 16, 6
    tensors = {f"t{number}": np.ones(tensor_size, np.float32) for number in range(tensor_count)}
    paths = [save(tmp_path / str(number), **tensors) for number in range(checkpoint_count)]
    bytes_of_sums = tensor_count * tensor_size * 8
    tracemalloc.start()
    mean_tensors(paths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bytes_of_sums < peak < 1.2 * bytes_of_sums


def test_averaging_does_not_load_torch():
    """It takes a second, longer than the stage itself."""
    code = "import bleuprint.training.averaging, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
