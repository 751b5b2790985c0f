"""Training: learns, repeats, resumes to the bit, and is the same on any number of processes."""

import json
import math
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import bleuprint.train
from bleuprint.errors import UserError
from bleuprint.files import sha256_of_folder
from bleuprint.layout import Cell, folder
from bleuprint.optimizer import FlatAdam
from bleuprint.processes import Group
from bleuprint.settings import load
from bleuprint.train import Job
from trainings import project, start, train, write_params

CELL = Path("micro", "toy", "1")


def facts(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "results" / CELL / "training.json").read_text())
    return content


def curves(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "results" / CELL / "curves.json").read_text())
    return content


def losses(root: Path) -> list[float]:
    return [point["loss"] for point in curves(root)["training"]]


def weights(root: Path) -> str:
    return sha256_of_folder(root / "models" / CELL / "checkpoints")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy project after an uninterrupted training on one process."""
    root = project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def fresh(trained: Path, root: Path) -> Path:
    """The same project, untrained."""
    shutil.copytree(trained / "data", root / "data")
    shutil.copy(trained / "params.yaml", root / "params.yaml")
    return root


def test_the_same_settings_give_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    again = fresh(trained, tmp_path)
    train(again)
    assert weights(again) == weights(trained)
    assert facts(again) == facts(trained)
    assert curves(again) == curves(trained)


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_gives_the_same_losses(
    trained: Path, tmp_path: Path, processes: int
) -> None:
    several = fresh(trained, tmp_path)
    train(several, processes)
    assert losses(several) == pytest.approx(losses(trained), rel=1e-4)
    for name in ("updates", "source_tokens", "target_tokens", "flops", "fingerprint"):
        assert facts(several)[name] == facts(trained)[name]
    timing = json.loads((several / "timings" / CELL / "train.json").read_text())
    assert timing["processes"] == processes


def test_killed_again_and_again_it_ends_with_the_same_weights(
    trained: Path, tmp_path: Path
) -> None:
    root = fresh(trained, tmp_path)
    rng, kills = random.Random(7), 0
    while kills < 5:
        process = start(root)
        wait_for_checkpoint(root, kills // 2)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.communicate(timeout=60)
        kills += 1
    train(root)
    assert weights(root) == weights(trained)
    assert facts(root) == facts(trained)
    assert curves(root) == curves(trained)


def test_told_to_stop_it_saves_says_so_and_goes_on(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 75, said
    assert "told to stop: saved at update" in said
    assert not (root / "models").exists()
    assert "going on from update" in train(root)
    assert weights(root) == weights(trained)


def test_a_checkpoint_cut_short_is_refused(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 1)
    process.kill()
    process.communicate(timeout=60)
    newest = checkpoints(root)[-1]
    model = newest / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-100])
    said = train(root)
    assert f"{newest.name} is damaged" in said
    assert weights(root) == weights(trained)


def test_other_settings_start_afresh(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    process.kill()
    process.communicate(timeout=60)
    write_params(root, learning_rate=0.004)
    assert "going on" not in train(root)
    assert facts(root)["settings"] != facts(trained)["settings"]
    write_params(root)
    assert "going on" in train(root)
    assert weights(root) == weights(trained)


def test_a_diverging_training_names_what_to_lower(tmp_path: Path) -> None:
    root = project(tmp_path, learning_rate=1e30, warmup=1, clip_norm=0.0)
    said = train(root, status=1)
    assert said.splitlines()[-1].startswith("bleuprint: error: the loss of update")
    assert "learning_rate" in said
    assert "Traceback" not in said


def test_an_infinite_gradient_stops_it_with_the_weights_unharmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    monkeypatch.setattr(FlatAdam, "norm", lambda _: math.inf)
    places = (folder("toy", "binary"), folder("toy", "split"), tmp_path / "work")
    job = Job("toy", Cell("micro", "toy", 1), load().system("micro"), *places)
    with pytest.raises(UserError, match=r"update 1 is \d.*its gradient's norm inf"):
        bleuprint.train.train(job, Group(0, 1, torch.device("cpu")))


def test_half_precision_learns_as_well(trained: Path, tmp_path: Path) -> None:
    half = fresh(trained, tmp_path)
    write_params(half, precision="bfloat16")
    train(half)
    assert losses(half)[-1] == pytest.approx(losses(trained)[-1], rel=0.05)
    assert losses(half) != losses(trained)


def test_a_sentence_beyond_the_batch_is_one_clear_line(tmp_path: Path) -> None:
    said = train(project(tmp_path, batch_tokens=5), status=1)
    assert "does not fit into train.batch_tokens 5" in said
    assert "Traceback" not in said


def checkpoints(root: Path) -> list[Path]:
    return sorted((root / "work" / "trainings").glob("*/checkpoint-*"))


def wait_for_checkpoint(root: Path, more_than: int) -> None:
    """Until there are so many checkpoints (old ones are pruned, so three at the most)."""
    deadline = time.monotonic() + 60
    while len(checkpoints(root)) <= more_than:
        assert time.monotonic() < deadline, "no checkpoint within a minute"
        time.sleep(0.02)
