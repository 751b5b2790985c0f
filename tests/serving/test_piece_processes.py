"""The pieces of a text are divided among processes: one per GPU, or one per core."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.visible_gpus import VISIBLE_GPUS
from bleuprint.serving import piece_processes
from bleuprint.serving.piece_processes import translate_pieces
from bleuprint.serving.translated_pieces import PieceFolder, TextPiece

PIECES = [TextPiece(number, number - 1, number) for number in range(1, 7)]
GPUS = ["GPU-a", "GPU-b", "GPU-c"]
# Translates six pieces in two processes of portable arithmetic. Each of them notes its pieces in
# the file `begun`, waits for the other one, and takes half a second for a piece.
PROGRAM = """\
import os
import time
from pathlib import Path
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import Progress
from bleuprint.serving.piece_processes import translate_pieces
from bleuprint.serving.translated_pieces import PieceFolder, TextPiece

PROCESSES = 2

def translate(piece, advance):
    with Path("begun").open("a") as file:
        file.write(f"{piece.number} {os.getpid()}\\n")
    while len({line.split()[1] for line in Path("begun").read_text().splitlines()}) < PROCESSES:
        time.sleep(0.02)
    time.sleep(0.5)
    return [f"translation {piece.number}"]

def load():
    return translate

def main():
    folder = PieceFolder(Path("kept"), "fingerprint")
    pieces = [TextPiece(number, number - 1, number) for number in range(1, 7)]
    unfinished = [piece for piece in pieces if folder.find_problem(piece)]
    translate_pieces(load, unfinished, folder, Progress("translate", 6, "pairs"))

if __name__ == "__main__":
    run_main(main)
"""


def wait_until(condition, seconds=120):
    """Wait until a condition holds; fail if it does not for a long time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def load_model_that_names_its_gpu(begun, process_count):
    """Return a function that takes the place of a model: a line is translated to a GPU's name.

    Args:
        begun: A folder in which each process writes a file.
        process_count: How many processes must have done so before a piece is translated: a slow one
            would else leave all pieces to the others.
    """
    (begun / str(os.getpid())).touch()

    def translate_to_name_of_gpu(piece, advance):
        """Return the name of the GPU that this process sees, and the id of the process."""
        wait_until(lambda: len(list(begun.iterdir())) == process_count)
        advance(piece.line_count)
        return [f"{os.environ[VISIBLE_GPUS]} {os.getpid()}"]

    return translate_to_name_of_gpu


def load_model_that_fails():
    """Return a function that takes the place of a model; it finds a damaged file."""
    return fail


def fail(piece, advance):  # noqa: ARG001
    """Raise the error of a damaged file."""
    raise DamagedFile(Path("train.de"), "line 2 is empty")


@pytest.fixture
def three_gpus(monkeypatch):
    """Let this process hold up to three GPUs that do not exist."""

    @contextmanager
    def hold(max_gpus):
        yield GPUS[:max_gpus]

    monkeypatch.setattr(piece_processes, "hold_gpus_for_torch", hold)
    monkeypatch.setenv(VISIBLE_GPUS, ",".join(GPUS))


def translate(folder, load, pieces=PIECES, max_processes=None):
    """Translate pieces of one line each; return the translations."""
    pieces_folder = PieceFolder(folder / "kept", "fingerprint")
    with Progress("translate", len(pieces), "pairs") as progress:
        translate_pieces(load, pieces, pieces_folder, progress, max_processes)
    return [next(pieces_folder.read(piece)) for piece in pieces]


@pytest.mark.usefixtures("three_gpus")
def test_each_gpu_translates_in_a_process_of_its_own(tmp_path):
    (tmp_path / "begun").mkdir()
    load = partial(load_model_that_names_its_gpu, tmp_path / "begun", len(GPUS))

    translations = translate(tmp_path, load)

    gpu_by_process = {}
    for translation in translations:
        gpu, process = translation.split(" ")
        assert gpu_by_process.setdefault(process, gpu) == gpu
    assert sorted(gpu_by_process.values()) == GPUS


@pytest.mark.usefixtures("three_gpus")
@pytest.mark.parametrize(
    ("pieces", "max_processes"), [(PIECES, 1), (PIECES[:1], None)], ids=["a shard", "one piece"]
)
def test_one_process_translates_without_others(tmp_path, pieces, max_processes):
    """It holds one GPU. A job of Snakemake, which has a shard, never uses more."""
    (tmp_path / "begun").mkdir()
    load = partial(load_model_that_names_its_gpu, tmp_path / "begun", 1)

    translations = translate(tmp_path, load, pieces, max_processes)

    processes = {translation.split(" ")[1] for translation in translations}
    assert processes == {str(os.getpid())}


@pytest.mark.usefixtures("three_gpus")
def test_an_error_of_a_process_is_raised_with_its_message(tmp_path):
    with pytest.raises(UserError, match=r"train\.de is damaged: line 2 is empty"):
        translate(tmp_path, load=load_model_that_fails)


def load_model_that_is_killed():
    """Return a function that takes the place of a model; its process is killed."""
    return kill_this_process


def kill_this_process(piece, advance):  # noqa: ARG001
    """Kill this process, as the kernel does if memory is exhausted."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("three_gpus")
def test_after_a_kill_the_user_is_told_to_use_fewer_gpus(tmp_path):
    """BLEUPRINT_WORKERS does not limit the number of these processes: there is one per GPU."""
    with pytest.raises(UserError, match=r"killed.*lower BLEUPRINT_GPUS \(now 3\)"):
        translate(tmp_path, load=load_model_that_is_killed)


def find_a_damaged_model():
    """Raise the error of a damaged model, instead of loading it."""
    raise DamagedFile(Path("model.safetensors"), "field weight is missing")


@pytest.mark.usefixtures("three_gpus")
def test_a_model_that_cannot_be_loaded_is_reported(tmp_path):
    """Each process tries again for its next piece, and needs a GPU for that: it must not wait."""
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        translate(tmp_path, load=find_a_damaged_model)


@pytest.fixture
def program(tmp_path):
    """Return a function that starts PROGRAM in a folder of its own."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "MKL_CBWR": "COMPATIBLE", "BLEUPRINT_WORKERS": "2"}
    started = []

    def start():
        command = [sys.executable, "program.py"]
        process = subprocess.Popen(command, cwd=tmp_path, env=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def begun_pieces(folder):
    """Return the pieces that processes have begun to translate, with the ids of the processes."""
    file = folder / "begun"
    text = file.read_text() if file.exists() else ""
    return [tuple(map(int, line.split(" "))) for line in text.splitlines()]


def finished_pieces(folder):
    """Return the numbers of the pieces that are finished."""
    pieces = PieceFolder(folder / "kept", "fingerprint")
    return [piece.number for piece in PIECES if pieces.find_problem(piece) is None]


def test_after_a_kill_only_unfinished_pieces_are_translated(program, tmp_path):
    """The kernel kills the first process without a warning (SIGKILL); its processes end, too."""
    process = program()
    wait_until(lambda: finished_pieces(tmp_path))
    process.send_signal(signal.SIGKILL)
    process.wait()
    helper_ids = {process_id for _, process_id in begun_pieces(tmp_path)}
    wait_until(lambda: not any(map(psutil.pid_exists, helper_ids)))
    finished = finished_pieces(tmp_path)
    assert 1 <= len(finished) < len(PIECES)
    (tmp_path / "begun").unlink()

    assert program().wait() == 0

    begun_again = sorted(number for number, _ in begun_pieces(tmp_path))
    expected = [piece.number for piece in PIECES if piece.number not in finished]
    assert begun_again == expected
    assert finished_pieces(tmp_path) == [piece.number for piece in PIECES]
    assert len(helper_ids) == 2
    assert process.pid not in helper_ids
