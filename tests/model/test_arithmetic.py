"""Portable arithmetic: the same bits on other processors, on any number of cores, under load."""

import json
import os
import subprocess
import sys

import pytest
import torch
from ruamel.yaml import YAML

from bleuprint.config.runs import training_settings_sha256
from bleuprint.config.system import Decode
from bleuprint.model import arithmetic
from bleuprint.model.arithmetic import PORTABLE, check_portable
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.scoring.comet import folder_sha256
from params import write_resolved
from requirements import needs_programs
from root import ROOT
from systems import system, train
from trainings import STAGES, environment, fresh, project, without_mlflow

PATHS = [str(ROOT / "src"), str(ROOT / "tests" / "support")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A toy project whose system has portable arithmetic, untrained."""
    root = project(tmp_path_factory.mktemp("portable"), max_updates=20)
    yaml = YAML()
    params = yaml.load(root / "params.yaml")
    params["systems"]["micro"]["arithmetic"] = "portable"
    yaml.dump(params, root / "params.yaml")
    write_resolved(root)
    return root


@pytest.fixture
def busy():
    """A process on each core that computes without end."""
    loops = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


def run(root, *before, **variables):
    """The SHA-256 of what train, average and translate write; `before`: what starts them."""
    told = {**environment(), **without_mlflow(root), **variables}
    for stage in ("train", "average", "translate"):
        command = [*before, sys.executable, str(STAGES / f"{stage}.py"), "micro", "toy", "1"]
        done = subprocess.run(command, cwd=root, env=told, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder_sha256(root / "models"), folder_sha256(root / "results")


@pytest.mark.usefixtures("busy")
def test_cores_threads_processes_and_load_change_no_bit(made, tmp_path):
    alone = run(fresh(made, tmp_path / "alone"), *("taskset", "-c", "0"))
    shared = run(fresh(made, tmp_path / "shared"), BLEUPRINT_PROCESSES="2", OMP_NUM_THREADS="8")
    assert alone == shared


def updates(*emulator):
    """The hashes of tests/support/portable_updates.py, of a process with portable arithmetic."""
    script = str(ROOT / "tests" / "support" / "portable_updates.py")
    command = [*emulator, sys.executable, script]
    told = {**os.environ, **PORTABLE, "PYTHONPATH": os.pathsep.join(PATHS)}
    done = subprocess.run(command, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@needs_programs("qemu-x86_64")
@pytest.mark.parametrize("processor", ["EPYC-Rome", "Haswell", "Skylake-Client", "max"])
def test_processors_of_both_vendors_give_the_same_bits(processor):
    expected = updates()
    assert expected["deviation"] is None
    assert updates("qemu-x86_64", "-cpu", processor) == expected


def test_what_is_portable_on_no_processor_is_refused():
    for precision in ("bfloat16", "tf32"):
        with pytest.raises(ValueError, match=rf"train.precision float32, not {precision}"):
            system(arithmetic="portable", train=train(precision=precision))
    with pytest.raises(ValueError, match=r"portable needs decode.precision float32, not bfloat16"):
        system(arithmetic="portable", decode=Decode(precision="bfloat16"))
    with pytest.raises(ValueError, match=r"portable needs train.compile false, not true"):
        system(arithmetic="portable", train=train(compile=True))


def test_a_portable_training_is_another_than_a_native_one():
    native, portable = (
        training_settings_sha256(system(arithmetic=each), 1) for each in ("native", "portable")
    )
    # that of a native one is as before there was a choice
    assert native == of_settings(system().model, system().train, 1) != portable


def test_a_machine_without_it_is_refused(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(arithmetic, "describe_deviation", lambda: None)
    check_portable("micro")
    with pytest.raises(
        UserError, match=r"systems.micro.arithmetic portable needs one process, not 2"
    ):
        check_portable("micro", 2)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    with pytest.raises(
        UserError, match=r"x86-64 processor with AVX2.*DEFAULT.*\. Set arithmetic: native"
    ):
        check_portable("micro")
