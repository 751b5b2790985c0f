"""Settings that are edited while DVC runs a real training (see also test_resolve)."""

import json
import time

import pytest

import micro
import warm

pytestmark = pytest.mark.slow
STAGE = "train@tiny-own-1"


def test_an_edit_while_a_training_runs_is_of_the_next_run(reproduced):
    reproduced.edit("params.yaml", "max_updates: 60", "max_updates: 90")
    trainings = reproduced.root / "work" / "trainings"
    known = {*trainings.glob("*/checkpoint-*")}
    process = reproduced.start("dvc", "repro", STAGE, path=warm.folder())
    try:
        deadline = time.monotonic() + 120
        while not {*trainings.glob("*/checkpoint-*")} - known:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        reproduced.edit("params.yaml", "clip_norm: 1.0", "clip_norm: 3.0")
        output, _ = process.communicate(timeout=120)
    finally:
        micro.kill(process)
    assert process.returncode == 0, output
    # what it computed with is what DVC records
    from dvc.utils.serialize import load_yaml

    params = load_yaml(str(reproduced.root / "dvc.lock"))["stages"][STAGE]["params"]
    recorded = params["reports/resolved.json"]["cells.tiny.own.train"]
    assert (recorded["max_updates"], recorded["clip_norm"]) == (90, 1.0)
    curves = json.loads(reproduced.read("results/tiny/own/1/training.json"))
    assert curves["updates"] == 90
    assert micro.ran(reproduced.run("dvc", "repro", STAGE)) == ["resolve", STAGE]
