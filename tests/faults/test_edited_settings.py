"""Settings that are edited while DVC runs a training."""

import time

from ruamel.yaml import YAML

import micro
import warm

STAGE = "train@tiny-own-1"


def test_a_training_whose_settings_were_edited_is_not_recorded_and_not_repeated(reproduced):
    reproduced.edit("params.yaml", "max_updates: 60", "max_updates: 90")
    before, trainings = _recorded(reproduced), reproduced.root / "work" / "trainings"
    known = {*trainings.glob("*/checkpoint-*")}
    process = reproduced.start("dvc", "repro", STAGE, path=warm.folder())
    try:
        deadline = time.monotonic() + 120
        while not {*trainings.glob("*/checkpoint-*")} - known:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        reproduced.edit("params.yaml", "label_smoothing: 0.1", "label_smoothing: 0.3")
        output, _ = process.communicate(timeout=120)
    finally:
        micro.kill(process)
    assert process.returncode
    said = "bleuprint: error: params.yaml (systems.tiny.train) was edited while this ran: run dvc"
    assert said in output, output
    assert _recorded(reproduced) == before
    last = next(trainings.glob("tiny.own.1.*/checkpoint-0000090")) / "sha256.json"
    written = last.stat().st_mtime_ns

    reproduced.edit("params.yaml", "label_smoothing: 0.3", "label_smoothing: 0.1")
    assert micro.ran(reproduced.run("dvc", "repro", STAGE)) == [STAGE]
    assert STAGE not in reproduced.changed()
    assert last.stat().st_mtime_ns == written


def _recorded(project):
    return YAML(typ="safe").load(project.read("dvc.lock"))["stages"][STAGE]
