"""COMET scores, by the program comet-score in a virtual environment of its own.

unbabel-comet requires older versions of numpy, protobuf and others than this project is tested
with, so that both cannot be installed in one environment.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.cell_results import CellResults

_INSTALL = "python3 -m venv comet; comet/bin/pip install unbabel-comet 'setuptools<81'"
# The last line of comet-score's traceback if a model, or the model it is based on, is not found.
_NO_MODEL = re.compile("not supported by COMET|Invalid checkpoint path|huggingface|hparams.yaml")


def comet(
    settings: Settings, cell: Cell, model: str, program: str, root: Path = Path()
) -> Iterator[str]:
    """A line for each test set: its name, the system's COMET score, and the model.

    Raises UserError if the program or the model is not found.
    """
    run = CellResults.open(settings, cell, root)
    for test in run.tests:
        references, hypotheses = run.lines(test)
        score = comet_score(run.sources(test), hypotheses, references, model, program)
        yield f"{test}\t{score:.4f}\t{model}"


def comet_score(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    model: str,
    program: str,
) -> float:
    """The system's score, to the four digits that comet-score prints."""
    with TemporaryDirectory() as scratch:
        command = [program, "--model", model, "--quiet", "--only_system"]
        sides = {"-s": sources, "-t": hypotheses, "-r": references}
        for option, lines in sides.items():
            path = Path(scratch) / option.removeprefix("-")
            # It would end a line at a carriage return, and strips lines of spaces.
            path.write_bytes("".join(f"{line}\n".replace("\r", " ") for line in lines).encode())
            command += [option, str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise UserError(
                f"{program}: no such program. COMET needs an environment of its own: {_INSTALL}; "
                "then: --program comet/bin/comet-score"
            ) from None
    printed = re.search(r"\tscore: (-?[0-9.]+)\n", done.stdout)
    if done.returncode or printed is None:
        raise UserError(_failure(program, model, done.stderr))
    return float(printed[1])


def _failure(program: str, model: str, stderr: str) -> str:
    *_, last = [line for line in stderr.split("\n") if line.strip()] or [""]
    if not _NO_MODEL.search(last):
        return f"{program}: {last or 'printed no score'}"
    return (
        f"{program}: no model {model}: it is neither in {_hub()} nor could it be downloaded from "
        "huggingface.co; copy that folder from a machine that has the model, or name a file: "
        f"--model FOLDER/checkpoints/model.ckpt ({last.strip()})"
    )


def _hub() -> Path:
    """The cache of Hugging Face's library."""
    if hub := os.environ.get("HF_HUB_CACHE"):
        return Path(hub)
    home = os.environ.get("HF_HOME")
    return Path(home or Path.home() / ".cache" / "huggingface") / "hub"
