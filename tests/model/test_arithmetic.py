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
from trainings import STAGES, environment, make_project, untrained_copy, without_mlflow

IMPORT_FOLDERS = [str(ROOT / "src"), str(ROOT / "tests" / "support")]


@pytest.fixture(scope="module")
def portable_project(tmp_path_factory):
    """Make a toy project whose system has portable arithmetic, untrained."""
    root = make_project(tmp_path_factory.mktemp("portable"), max_updates=20)
    yaml = YAML()
    params = yaml.load(root / "params.yaml")
    params["systems"]["micro"]["arithmetic"] = "portable"
    yaml.dump(params, root / "params.yaml")
    write_resolved(root)
    return root


@pytest.fixture
def busy_cores():
    """Keep two cores busy with processes that compute without end."""
    processes = []
    for _ in range(2):
        processes.append(subprocess.Popen([sys.executable, "-c", "while 1: pass"]))
    yield
    for process in processes:
        process.kill()
        process.wait()


def train_and_translate(root, launcher=(), **variables):
    """Run train, average and translate, and return the SHA-256 of the models and of the results.

    Args:
        root: The project.
        launcher: The command that starts each stage, such as `taskset -c 0`.
        variables: Environment variables.
    """
    stage_environment = {**environment(), **without_mlflow(root), **variables}
    for stage in ("train", "average", "translate"):
        script = str(STAGES / f"{stage}.py")
        done = subprocess.run(
            [*launcher, sys.executable, script, "micro", "toy", "1"],
            cwd=root,
            env=stage_environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    return folder_sha256(root / "models"), folder_sha256(root / "results")


@pytest.mark.usefixtures("busy_cores")
def test_cores_threads_processes_and_load_change_no_bit(portable_project, tmp_path):
    """Two copies of a project with `arithmetic: portable` are trained, averaged and translated.

    One runs on one core; the other with more processes and threads. Other programs keep two cores
    busy. Equal are the SHA-256 of all models and of all results.
    """
    on_one_core = train_and_translate(
        untrained_copy(portable_project, tmp_path / "one-core"), launcher=("taskset", "-c", "0")
    )
    with_more_processes_and_threads = train_and_translate(
        untrained_copy(portable_project, tmp_path / "shared"),
        BLEUPRINT_PROCESSES="2",
        OMP_NUM_THREADS="8",
    )

    assert on_one_core == with_more_processes_and_threads


def hashes_of_portable_updates(emulator=()):
    """Return the hashes that tests/support/portable_updates.py prints, by what they are of.

    Args:
        emulator: The command that emulates a processor; empty to run on this one.
    """
    script = str(ROOT / "tests" / "support" / "portable_updates.py")
    script_environment = {
        **os.environ,
        **PORTABLE,
        "PYTHONPATH": os.pathsep.join(IMPORT_FOLDERS),
    }
    command = [*emulator, sys.executable, script]
    done = subprocess.run(command, env=script_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@needs_programs("qemu-x86_64")
@pytest.mark.parametrize("processor", ["EPYC-Rome", "Haswell", "Skylake-Client", "max"])
def test_processors_of_both_vendors_give_the_same_bits(processor):
    """A script trains a few updates on this machine, and then on a processor emulated by QEMU."""
    expected_hashes = hashes_of_portable_updates()
    assert expected_hashes["deviation"] is None

    hashes = hashes_of_portable_updates(emulator=("qemu-x86_64", "-cpu", processor))

    assert hashes == expected_hashes


@pytest.mark.parametrize("precision", ["bfloat16", "tf32"])
def test_portable_training_needs_float32(precision):
    with pytest.raises(ValueError, match=rf"train.precision float32, not {precision}"):
        system(arithmetic="portable", train=train(precision=precision))


def test_portable_decoding_needs_float32():
    with pytest.raises(ValueError, match=r"portable needs decode.precision float32, not bfloat16"):
        system(arithmetic="portable", decode=Decode(precision="bfloat16"))


def test_portable_training_cannot_be_compiled():
    with pytest.raises(ValueError, match=r"portable needs train.compile false, not true"):
        system(arithmetic="portable", train=train(compile=True))


def test_portable_and_native_trainings_have_different_hashes():
    """Checkpoints are found by this hash, so a change of `arithmetic` repeats the training."""
    native_sha256 = training_settings_sha256(system(arithmetic="native"), 1)
    portable_sha256 = training_settings_sha256(system(arithmetic="portable"), 1)

    assert native_sha256 != portable_sha256


def test_a_native_training_has_the_hash_of_versions_without_the_setting_arithmetic():
    """Otherwise an update of bleuprint would repeat the trainings of its older versions."""
    seed = 1
    hash_of_older_versions = of_settings(system().model, system().train, seed)

    native_sha256 = training_settings_sha256(system(arithmetic="native"), seed)

    assert native_sha256 == hash_of_older_versions


@pytest.fixture
def processor_with(monkeypatch):
    """Return a function that pretends that the processor has certain vector instructions."""
    monkeypatch.setattr(arithmetic, "describe_deviation", lambda: None)

    def set_capability(capability):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)

    return set_capability


def test_portable_arithmetic_is_accepted_on_a_processor_with_avx2(processor_with):
    processor_with("AVX2")

    check_portable("micro")


def test_portable_arithmetic_is_refused_in_several_processes(processor_with):
    """Processes add their gradients in an order that depends on their number."""
    processor_with("AVX2")

    message = r"systems.micro.arithmetic portable needs one process, not 2"
    with pytest.raises(UserError, match=message):
        check_portable("micro", 2)


def test_portable_arithmetic_is_refused_on_a_processor_without_avx2(processor_with):
    """DEFAULT is what PyTorch calls a processor with neither AVX2 nor AVX-512."""
    processor_with("DEFAULT")

    message = r"x86-64 processor with AVX2.*DEFAULT.*\. Set arithmetic: native"
    with pytest.raises(UserError, match=message):
        check_portable("micro")
