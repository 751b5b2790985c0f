"""COMET scores, by the program comet-score in a virtual environment of its own.

unbabel-comet requires older versions of numpy, protobuf and others than this project is tested
with, so that both cannot be installed in one environment.
"""

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
        *_, last = [line for line in done.stderr.split("\n") if line.strip()] or [
            "printed no score"
        ]
        raise UserError(f"{program}: {model}: {last.strip()}")
    return float(printed[1])
