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
# What checkpoints.json and the header of each file of weights say of the training.
METADATA = {"fingerprint": "f1"}

# Updates 10 and 40 have the same loss, 20 and 30 the same BLEU. Update 25, the best, was validated,
# but its checkpoint was not kept.
VALIDATIONS = [
    {"update": 10, "loss": 2.0, "bleu": 11.0},
    {"update": 20, "loss": 3.0, "bleu": 13.0},
    {"update": 25, "loss": 1.0, "bleu": 99.0},
    {"update": 30, "loss": 2.5, "bleu": 13.0},
    {"update": 40, "loss": 2.0, "bleu": 12.0},
]


def save(path, metadata=METADATA, /, **tensors):
    """Write tensors in float32 as safetensors, and return the path."""
    arrays = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    save_file(arrays, path, metadata)
    return path


def exported(folder, metric="loss"):
    """Write checkpoints of updates 10 to 50, whose only weight, `a`, is the number of the update.

    Update 50 was not validated.
    """
    folder.mkdir()
    for update in (10, 20, 30, 40, 50):
        save(folder / f"{update:07d}.safetensors", a=[update])
    (folder / "model.json").write_text('{"of": "f1"}\n')
    record = METADATA | {"validation_metric": metric, "validations": VALIDATIONS}
    (folder / "checkpoints.json").write_text(json.dumps(record))
    return folder


def test_the_mean_of_tensors_is_computed_without_rounding_of_the_sum(tmp_path):
    """`math.fsum` adds numbers exactly; only the result is rounded to float32."""
    rng = np.random.default_rng(3)
    shape = (5, 7)
    tensors: list[NDArray[np.float32]] = []
    paths = []
    for number in range(7):
        tensor = rng.normal(size=shape).astype(np.float32)
        tensors.append(tensor)
        paths.append(save(tmp_path / str(number), a=tensor))

    mean = mean_tensors(paths)["a"]

    assert mean.dtype == np.float32
    assert mean.shape == shape
    for index in np.ndindex(shape):
        exact_sum = math.fsum(float(tensor[index]) for tensor in tensors)
        assert mean[index] == np.float32(exact_sum / 7)


def test_the_mean_has_all_tensors_with_their_shapes(tmp_path):
    rng = np.random.default_rng(3)
    shapes = {"a": (5, 7), "b": (11,), "c": (2, 3, 4)}
    first = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    second = {name: 3 * tensor for name, tensor in first.items()}

    means = mean_tensors([save(tmp_path / "1", **first), save(tmp_path / "2", **second)])

    assert {name: tensor.shape for name, tensor in means.items()} == shapes
    for name, tensor in first.items():
        expected = (tensor.astype(np.float64) + second[name]) / 2
        assert means[name].dtype == np.float32
        assert means[name].tolist() == expected.astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("settings", "metric", "updates"),
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
def test_the_last_or_best_checkpoints_are_averaged(tmp_path, settings, metric, updates):
    """The earlier of two equally good checkpoints is the better one.

    The only weight of a checkpoint, `a`, is the number of its update.
    """
    folder = exported(tmp_path / "checkpoints", metric)

    average_checkpoints(folder, settings, tmp_path / "averaged")

    expected = np.float32(sum(updates) / len(updates))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


@pytest.mark.parametrize(
    ("names", "last", "updates"),
    [
        # In alphabetical order, 100 comes before 90.
        (["8", "90", "100"], 1, [100]),
        (["8", "90", "100"], 2, [90, 100]),
        (["0000090", "0000100", "0000110"], 2, [100, 110]),
        (["9999990", "10000000", "10000010"], 2, [10_000_000, 10_000_010]),
        (["0000040", "9999999", "10000000"], 1, [10_000_000]),
    ],
)
def test_the_last_checkpoints_are_those_of_the_largest_updates(tmp_path, names, last, updates):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in names:
        save(folder / f"{name}.safetensors", a=[int(name)])
    (folder / "model.json").write_text("{}\n")
    record = METADATA | {"validation_metric": "loss", "validations": []}
    (folder / "checkpoints.json").write_text(json.dumps(record))

    average_checkpoints(folder, Average(last=last), tmp_path / "averaged")

    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"]["updates"] == updates
    expected = np.float32(sum(updates) / len(updates))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


def test_average_ema_copies_the_moving_average_of_the_weights(tmp_path):
    """The training computes it (`train.ema`) and exports it next to its last checkpoint."""
    folder = exported(tmp_path / "checkpoints")
    save(folder / "0000050.ema.safetensors", a=[0.1])

    average_checkpoints(folder, Average(ema=True), tmp_path / "averaged")

    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [np.float32(0.1)]
    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"] == {"settings": {"ema": True}, "updates": [50]}


def test_the_moving_average_is_not_among_the_last_checkpoints(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    save(folder / "0000050.ema.safetensors", a=[0.1])

    average_checkpoints(folder, Average(last=5), tmp_path / "averaged")

    mean_of_updates = (10 + 20 + 30 + 40 + 50) / 5
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [mean_of_updates]
    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"]["settings"] == {"last": 5}


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
def test_too_few_checkpoints_for_the_setting_are_an_error(tmp_path, settings, message):
    folder = exported(tmp_path / "checkpoints")

    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, settings, tmp_path / "averaged")
    assert str(raised.value) == f"{folder}: {message}"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_the_average_of_one_checkpoint_has_the_bytes_of_the_checkpoint(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    # Computing a mean could change these: a sum that starts from 0 loses the sign of -0, and the
    # others are the smallest, small, the largest and infinite.
    unusual_numbers = [-0.0, 0.0, 1e-45, -1e-40, 3.4028235e38, math.inf, 0.1]
    checkpoint = save(
        folder / "0000050.safetensors", zero=unusual_numbers, other=np.ones((2, 3)), a=[1.5]
    )

    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")

    assert (tmp_path / "averaged" / WEIGHTS).read_bytes() == checkpoint.read_bytes()


def test_averaging_again_writes_the_same_bytes(tmp_path):
    folder = exported(tmp_path / "checkpoints")

    average_checkpoints(folder, Average(best=2), tmp_path / "averaged")
    average_checkpoints(folder, Average(best=2), tmp_path / "again")

    assert folder_sha256(tmp_path / "again") == folder_sha256(tmp_path / "averaged")


def test_the_description_of_an_average_names_its_settings_updates_and_hash(tmp_path):
    folder = exported(tmp_path / "checkpoints")

    average_checkpoints(folder, Average(best=2), tmp_path / "averaged")

    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    weights = (tmp_path / "averaged" / WEIGHTS).read_bytes()
    assert description == {
        "of": "f1",  # copied from the checkpoints' description
        "averaged": {"settings": {"best": 2}, "updates": [10, 40]},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    with safe_open(tmp_path / "averaged" / WEIGHTS, "np") as file:
        assert file.metadata() == {"fingerprint": "f1"}


def test_a_checkpoint_of_another_training_is_not_averaged(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    other = save(folder / "0000040.safetensors", {"fingerprint": "f2"}, a=[40])

    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, Average(last=2), tmp_path / "averaged")

    assert str(raised.value) == (
        f"{other} contains weights of another training (f2...) than checkpoints.json names (f1...)"
    )


def test_a_checkpoint_of_another_training_that_is_not_averaged_does_not_matter(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    save(folder / "0000040.safetensors", {"fingerprint": "f2"}, a=[40])

    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")

    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [50]


def test_a_folder_without_checkpoints_is_an_error(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    for path in folder.glob("*.safetensors"):
        path.unlink()

    message = "average.last is 1, but the checkpoints are: none. Lower average.last; "
    with pytest.raises(UserError, match=message):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")


@pytest.mark.parametrize("name", ["0000050.safetensors", "checkpoints.json"])
def test_a_truncated_file_is_an_error_of_one_line(tmp_path, name):
    folder = exported(tmp_path / "checkpoints")
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(UserError, match=rf"^{path} is damaged: [^\n]+$"):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")
    assert not (tmp_path / "averaged").exists()


def test_a_record_without_its_metric_is_an_error_of_one_line(tmp_path):
    folder = exported(tmp_path / "checkpoints")
    record = folder / "checkpoints.json"
    record.write_text(record.read_text().replace("validation_metric", "metric"))
    with pytest.raises(UserError, match=rf"^{record} .*field validation_metric is missing[^\n]*$"):
        average_checkpoints(folder, Average(best=1), tmp_path / "averaged")


def test_memory_does_not_grow_with_the_number_of_checkpoints(tmp_path):
    tensor_count = 16
    tensor_size = 1 << 16
    checkpoint_count = 6
    tensors = {f"t{number}": np.ones(tensor_size, np.float32) for number in range(tensor_count)}
    paths = [save(tmp_path / str(number), **tensors) for number in range(checkpoint_count)]

    tracemalloc.start()
    mean_tensors(paths)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    bytes_of_sums = tensor_count * tensor_size * 8  # float64
    assert bytes_of_sums < peak_bytes < 1.2 * bytes_of_sums


def test_averaging_does_not_import_torch():
    """The import would take a second, longer than averaging itself."""
    code = "import bleuprint.training.averaging, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
