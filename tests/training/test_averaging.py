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


def save(path, metadata=METADATA, /, **tensors):
    """Write tensors in float32 as safetensors, and return the path."""
    arrays = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    save_file(arrays, path, metadata)
    return path


def write_checkpoints(folder, updates, losses=None, bleu_scores=None, metric="loss"):
    """Write the checkpoints that a training exports, and return their folder.

    Args:
        folder: The folder to make.
        updates: The updates whose checkpoint was kept. The only weight of a checkpoint, `a`, is
            the number of its update, so an average shows which checkpoints went into it. An update
            given as text is the name of the file; numbers are filled up to seven digits.
        losses: The loss of each validated update.
        bleu_scores: The BLEU score of each validated update.
        metric: The metric that decides which checkpoints are best.
    """
    folder.mkdir()
    for update in updates:
        name = update if isinstance(update, str) else f"{update:07d}"
        save(folder / f"{name}.safetensors", a=[int(update)])
    (folder / "model.json").write_text('{"of": "f1"}\n')
    validations = []
    for update, loss in (losses or {}).items():
        validation = {"update": update, "loss": loss}
        if bleu_scores:
            validation["bleu"] = bleu_scores[update]
        validations.append(validation)
    record = METADATA | {"validation_metric": metric, "validations": validations}
    (folder / "checkpoints.json").write_text(json.dumps(record))
    return folder


def test_the_mean_of_tensors_is_computed_without_rounding_of_the_sum(tmp_path):
    """The reference, `math.fsum`, adds exactly; only the result is rounded to float32."""
    rng = np.random.default_rng(3)
    shape = (5, 7)
    checkpoint_count = 7
    tensors: list[NDArray[np.float32]] = []
    paths = []
    for number in range(checkpoint_count):
        tensor = rng.normal(size=shape).astype(np.float32)
        tensors.append(tensor)
        paths.append(save(tmp_path / str(number), a=tensor))

    mean = mean_tensors(paths)["a"]

    assert mean.dtype == np.float32
    assert mean.shape == shape
    for index in np.ndindex(shape):
        exact_sum = math.fsum(float(tensor[index]) for tensor in tensors)
        assert mean[index] == np.float32(exact_sum / checkpoint_count)


def test_the_mean_has_all_tensors_with_their_shapes(tmp_path):
    """Two checkpoints with three tensors each; those of the second are three times as large."""
    rng = np.random.default_rng(3)
    first = {
        "a": rng.normal(size=(5, 7)).astype(np.float32),
        "b": rng.normal(size=11).astype(np.float32),
        "c": rng.normal(size=(2, 3, 4)).astype(np.float32),
    }
    second = {"a": 3 * first["a"], "b": 3 * first["b"], "c": 3 * first["c"]}
    first_path = save(tmp_path / "first", **first)
    second_path = save(tmp_path / "second", **second)

    means = mean_tensors([first_path, second_path])

    assert means.keys() == {"a", "b", "c"}
    for name, tensor in first.items():
        expected = (tensor.astype(np.float64) + second[name]) / 2
        assert means[name].shape == tensor.shape
        assert means[name].dtype == np.float32
        assert means[name].tolist() == expected.astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("settings", "metric", "updates"),
    [
        pytest.param(Average(last=1), "loss", [50], id="last checkpoint"),
        pytest.param(Average(last=2), "loss", [40, 50], id="last two"),
        pytest.param(Average(last=5), "bleu", [10, 20, 30, 40, 50], id="last five"),
        pytest.param(Average(best=1), "loss", [10], id="lowest loss"),
        pytest.param(Average(best=2), "loss", [10, 40], id="two lowest losses"),
        pytest.param(Average(best=3), "loss", [10, 30, 40], id="three lowest losses"),
        pytest.param(Average(best=1), "bleu", [20], id="highest BLEU"),
        pytest.param(Average(best=2), "bleu", [20, 30], id="two highest BLEU scores"),
        pytest.param(Average(best=3), "bleu", [20, 30, 40], id="three highest BLEU scores"),
    ],
)
def test_the_last_or_best_checkpoints_are_averaged(tmp_path, settings, metric, updates):
    """Best means lowest loss or highest BLEU; the earlier of two equally good checkpoints wins.

    Update 25, the best of all, was validated, but its checkpoint was not kept. The only weight of
    each checkpoint, `a`, is the number of its update.
    """
    folder = write_checkpoints(
        tmp_path / "checkpoints",
        updates=[10, 20, 30, 40, 50],
        losses={10: 2.0, 20: 3.0, 25: 1.0, 30: 2.5, 40: 2.0},
        bleu_scores={10: 11.0, 20: 13.0, 25: 99.0, 30: 13.0, 40: 12.0},
        metric=metric,
    )

    average_checkpoints(folder, settings, tmp_path / "averaged")

    expected = np.float32(sum(updates) / len(updates))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


@pytest.mark.parametrize(
    ("names", "last", "updates"),
    [
        pytest.param(["8", "90", "100"], 1, [100], id="alphabetically, 100 is before 90"),
        pytest.param(["8", "90", "100"], 2, [90, 100], id="two without leading zeros"),
        pytest.param(["0000090", "0000100", "0000110"], 2, [100, 110], id="leading zeros"),
        pytest.param(
            ["9999990", "10000000", "10000010"],
            2,
            [10_000_000, 10_000_010],
            id="seven and eight digits",
        ),
        pytest.param(
            ["0000040", "9999999", "10000000"], 1, [10_000_000], id="more digits after zeros"
        ),
    ],
)
def test_the_last_checkpoints_are_those_of_the_largest_updates(tmp_path, names, last, updates):
    """Names are compared as numbers; the weight `a` of a checkpoint is the number in its name."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=names)

    average_checkpoints(folder, Average(last=last), tmp_path / "averaged")

    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"]["updates"] == updates
    expected = np.float32(sum(updates) / len(updates))
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [expected]


def test_average_ema_copies_the_moving_average_of_the_weights(tmp_path):
    """The training computes it (`train.ema`) and exports it next to its last checkpoint."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[40, 50])
    save(folder / "0000050.ema.safetensors", a=[0.1])

    average_checkpoints(folder, Average(ema=True), tmp_path / "averaged")

    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [np.float32(0.1)]
    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"] == {"settings": {"ema": True}, "updates": [50]}


def test_average_last_skips_the_file_with_the_moving_average(tmp_path):
    """The weight `a` of each checkpoint is its update; that of the moving average is 0.1."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[10, 20, 30, 40, 50])
    save(folder / "0000050.ema.safetensors", a=[0.1])

    average_checkpoints(folder, Average(last=5), tmp_path / "averaged")

    mean_of_updates = (10 + 20 + 30 + 40 + 50) / 5
    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [mean_of_updates]
    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    assert description["averaged"]["settings"] == {"last": 5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            Average(last=6),
            "average.last is 6, but the checkpoints are: 10, 20, 30, 40, 50. "
            "Lower average.last. No training is repeated",
            id="five checkpoints, six wanted",
        ),
        pytest.param(
            Average(best=5),
            "average.best is 5, but the validated checkpoints are: 10, 20, 30, 40. "
            "Lower average.best. No training is repeated",
            id="four validated checkpoints, five wanted",
        ),
        pytest.param(
            Average(ema=True),
            "average.ema is true, but the training kept no moving average. Set train.ema",
            id="no moving average",
        ),
    ],
)
def test_too_few_checkpoints_for_the_setting_are_an_error(tmp_path, settings, message):
    """Update 50 was not validated; the checkpoint of update 25 was not kept."""
    folder = write_checkpoints(
        tmp_path / "checkpoints",
        updates=[10, 20, 30, 40, 50],
        losses={10: 2.0, 20: 3.0, 25: 1.0, 30: 2.5, 40: 2.0},
    )

    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, settings, tmp_path / "averaged")

    assert str(raised.value) == f"{folder}: {message}"
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_the_average_of_one_checkpoint_has_the_bytes_of_the_checkpoint(tmp_path):
    """With `average.last: 1`, the file is copied, without arithmetic that could change a number."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[40, 50])
    # Computing a mean could change these: a sum that starts from 0 loses the sign of -0, and the
    # others are the smallest, small, the largest and infinite.
    unusual_numbers = [-0.0, 0.0, 1e-45, -1e-40, 3.4028235e38, math.inf, 0.1]
    last_checkpoint = save(
        folder / "0000050.safetensors", unusual=unusual_numbers, other=np.ones((2, 3)), a=[1.5]
    )

    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")

    assert (tmp_path / "averaged" / WEIGHTS).read_bytes() == last_checkpoint.read_bytes()


def test_averaging_again_writes_the_same_bytes(tmp_path):
    """A time or a random number in the files would make DVC repeat all stages after this one."""
    folder = write_checkpoints(
        tmp_path / "checkpoints", updates=[10, 20, 30], losses={10: 2.0, 20: 3.0, 30: 2.5}
    )

    average_checkpoints(folder, Average(best=2), tmp_path / "averaged")
    average_checkpoints(folder, Average(best=2), tmp_path / "again")

    assert folder_sha256(tmp_path / "again") == folder_sha256(tmp_path / "averaged")


def test_the_description_of_an_average_names_its_settings_updates_and_hash(tmp_path):
    """The description is model.json; the header of the weights names the training, here f1."""
    folder = write_checkpoints(
        tmp_path / "checkpoints", updates=[10, 20, 40], losses={10: 2.0, 20: 3.0, 40: 2.1}
    )
    (folder / "model.json").write_text('{"architecture": "small"}\n')

    average_checkpoints(folder, Average(best=2), tmp_path / "averaged")

    description = json.loads((tmp_path / "averaged" / "model.json").read_text())
    weights = (tmp_path / "averaged" / WEIGHTS).read_bytes()
    assert description == {
        "architecture": "small",  # copied from the description of the checkpoints
        "averaged": {"settings": {"best": 2}, "updates": [10, 40]},  # the two lowest losses
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    with safe_open(tmp_path / "averaged" / WEIGHTS, "np") as file:
        assert file.metadata() == {"fingerprint": "f1"}


def test_averaging_with_a_checkpoint_of_another_training_is_an_error(tmp_path):
    """All checkpoints here have the training's fingerprint f1; one is then replaced."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[30, 40, 50])
    other_training = save(folder / "0000040.safetensors", {"fingerprint": "f2"}, a=[40])

    with pytest.raises(UserError) as raised:
        average_checkpoints(folder, Average(last=2), tmp_path / "averaged")

    assert str(raised.value) == (
        f"{other_training} contains weights of another training (f2...) "
        "than checkpoints.json names (f1...)"
    )


def test_only_the_averaged_checkpoints_must_be_of_the_same_training(tmp_path):
    """Only update 50, of training f1, is averaged; 40 is of training f2. Weight `a` tells which."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[30, 40, 50])
    save(folder / "0000040.safetensors", {"fingerprint": "f2"}, a=[40])

    average_checkpoints(folder, Average(last=1), tmp_path / "averaged")

    assert load_file(tmp_path / "averaged" / WEIGHTS)["a"].tolist() == [50]


def test_a_folder_without_checkpoints_is_an_error(tmp_path):
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[])

    message = "average.last is 1, but the checkpoints are: none. Lower average.last. "
    with pytest.raises(UserError, match=message):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")


@pytest.mark.parametrize("name", ["0000050.safetensors", "checkpoints.json"])
def test_a_truncated_file_is_an_error_of_one_line(tmp_path, name):
    """The file lacks its last byte, as after an interrupted copy; users get no traceback."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[40, 50])
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(UserError, match=rf"^{path} is damaged: [^\n]+$"):
        average_checkpoints(folder, Average(last=1), tmp_path / "averaged")
    assert not (tmp_path / "averaged").exists()


def test_a_record_without_its_metric_is_an_error_of_one_line(tmp_path):
    """The record, checkpoints.json, says by which metric checkpoints are compared."""
    folder = write_checkpoints(tmp_path / "checkpoints", updates=[10], losses={10: 2.0})
    record = folder / "checkpoints.json"
    record.write_text(record.read_text().replace("validation_metric", "metric"))

    with pytest.raises(UserError, match=rf"^{record} .*field validation_metric is missing[^\n]*$"):
        average_checkpoints(folder, Average(best=1), tmp_path / "averaged")


def test_memory_does_not_grow_with_the_number_of_checkpoints(tmp_path):
    """Six checkpoints are read one after the other; only the sums of the tensors stay in memory."""
    tensor_count = 16
    tensor_size = 1 << 16
    checkpoint_count = 6
    tensors = {f"t{index}": np.ones(tensor_size, np.float32) for index in range(tensor_count)}
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
