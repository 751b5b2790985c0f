"""The stage comet: a COMET score of each line of translations."""

import hashlib
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleuprint.config.comet import Comet
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import read_bytes, sha256_of
from bleuprint.scoring import comet_predict
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.metric import MILLIONTHS
from bleuprint.scoring.record import SetScores
from bleuprint.scoring.significance import evaluate_metric
from bleuprint.scoring.translated_files import TranslatedFiles, files_of_test_sets

# The files without which a folder does not contain a COMET model.
_REQUIRED_FILES = ("checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json")
# Nothing is fetched, and nothing is unpickled but tensors and plain values.
_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def score_run_by_comet(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score the translations of one system by COMET, and write comet.json.

    COMET is a trained model, which gives each line a score. All test sets that the system has
    translated are scored.

    Args:
        settings: The settings of the experiment.
        system: The name of the system.
        corpus: The name of the corpus that it was trained on.
        seed: The seed of the training.
        root: The project's folder.

    Returns:
        What is written, by the name of the test set.

    Raises:
        UserError: params.yaml names no model, the model or its Python environment is not where
            params.yaml says, or COMET fails.
    """
    settings.check_scored(system, corpus, seed)
    run = Run(system, corpus, seed)
    scores = _score_files(settings, files_of_test_sets(settings, run, root))
    write_json(root / run.results_folder / f"{COMET_METRIC.stage}.json", scores)
    return scores


def folder_sha256(folder: Path) -> str:
    """Return one SHA-256 for all files of a folder, by their names and contents.

    It is the SHA-256 of the list that the program sha256sum would print, with one line `HASH
    ./NAME` for each file, sorted by the bytes of the names. So users can compute it by themselves.
    Files and folders whose names begin with a dot, such as .git, are ignored.
    """
    file_by_name: dict[bytes, Path] = {}
    for path in folder.rglob("*"):
        relative_path = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative_path.parts)
        if path.is_file() and not is_hidden:
            file_by_name[os.fsencode(f"./{relative_path}")] = path
    list_hash = hashlib.sha256()
    for name, path in sorted(file_by_name.items()):
        file_hash = sha256_of(path).encode()
        list_hash.update(file_hash + b"  " + name + b"\n")
    return list_hash.hexdigest()


def notes_on_missing_comet(settings: Settings) -> Iterator[str]:
    """Yield a note if the COMET model in params.yaml, or the Python that runs it, is not here.

    It is only a note, since a clone can download the scores by `dvc pull` and needs no model. The
    SHA-256 is not checked, as hashing a model takes seconds.
    """
    # There is at most one model.
    for name, model in (settings.comet or {}).items():
        python = _python_of(model)
        folder = _folder_of(model)
        if not os.access(python, os.X_OK):
            yield (
                f"comet.{name}.python: {python} is not a program. Name a Python with unbabel-comet"
            )
        problem = _missing_file(folder)
        if problem:
            yield f"comet.{name}.folder: {folder}: {problem}"


def _missing_file(folder: Path) -> str:
    """Look for the files without which a folder does not contain a COMET model.

    Returns:
        A message about the first file that is missing; empty if all files are there.
    """
    for name in _REQUIRED_FILES:
        if not (folder / name).is_file():
            return f"{name} is missing, so this is not a complete COMET model (docs/scoring.md)"
    return ""


def _python_of(model: Comet) -> Path:
    """Return the Python of a model's environment."""
    return environment.project_root() / model.python


def _folder_of(model: Comet) -> Path:
    """Return the folder of a model."""
    return environment.project_root() / model.folder


def _score_files(settings: Settings, files: Mapping[str, TranslatedFiles]) -> dict[str, SetScores]:
    """Score test sets by the COMET model that params.yaml names.

    Args:
        settings: The settings of the experiment.
        files: The sources, translations and references, by the name of the test set.

    Returns:
        The scores as comet.json records them, by the name of the test set.

    Raises:
        UserError: params.yaml names no model, or COMET fails.
    """
    if not settings.comet:
        raise UserError("params.yaml names no COMET model. Add it under comet (docs/scoring.md)")
    # params.yaml allows one model, so there is exactly one item.
    ((name, model),) = settings.comet.items()
    predicted = _predict(model, list(files.values()))
    signature = (
        f"Python{predicted['python']}|Comet{predicted['comet']}|fp32|{name}"
        f"|r{predicted['references']}"
    )
    scores: dict[str, SetScores] = {}
    for (test, test_files), line_scores in zip(files.items(), predicted["scores"], strict=True):
        # The statistics of a line are whole numbers whose sums give the value of the metric. For
        # COMET, they are the score in millionths and 1, so that the value is the mean score.
        line_counts = [(round(MILLIONTHS * score), 1) for score in line_scores]
        statistics = np.array(line_counts, dtype=np.float64)
        scores[test] = {
            "lines": len(line_scores),
            "sources": sha256_of(test_files.sources),
            "references": sha256_of(test_files.references),
            "hypotheses": sha256_of(test_files.hypotheses),
            "scored_with": model.sha256,
            "metrics": [evaluate_metric(COMET_METRIC, statistics, signature)],
        }
    return scores


def _predict(model: Comet, files: Sequence[TranslatedFiles]) -> dict[str, Any]:
    """Let COMET score the lines of test sets, and check its scores.

    Args:
        model: The settings of the model.
        files: The files of each test set.

    Returns:
        What comet_predict.py writes: the scores of the lines of each test set, and versions.

    Raises:
        UserError: The model is incomplete or another one, COMET fails, or a score is not a number.
    """
    folder = _folder_of(model)
    _check_model(model, folder)
    predicted = _run_comet(_python_of(model), folder, files)
    for test_files, line_scores in zip(files, predicted["scores"], strict=True):
        if not line_scores or not all(map(math.isfinite, line_scores)):
            raise UserError(
                f"{test_files.hypotheses}: the file is empty, or COMET's score of a line is not a "
                "number"
            )
    return predicted


def _run_comet(python: Path, folder: Path, files: Sequence[TranslatedFiles]) -> dict[str, Any]:
    """Run comet_predict.py as a separate program, and read what it writes.

    The package unbabel-comet is installed in an environment of its own, which params.yaml names,
    since it needs other versions of libraries than bleuprint.

    Args:
        python: The Python of this environment.
        folder: The folder of the model.
        files: The files of each test set.

    Raises:
        UserError: The program cannot be started, or it fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "scores.json")
        # -I isolates Python: it imports nothing from the current folder or by the user's variables.
        command = [str(python), "-I", comet_predict.__file__, str(folder), str(output)]
        for test_files in files:
            for path in (test_files.sources, test_files.hypotheses, test_files.references):
                command.append(str(path.absolute()))
        variables = dict(os.environ)
        variables.update(_VARIABLES)
        try:
            status = subprocess.run(command, env=variables).returncode
        except OSError as error:
            raise UserError(f"{python}: {error.strerror} (comet.python in params.yaml)") from None
        content: dict[str, Any] = json.loads(read_bytes(output)) if output.exists() else {}
    if "error" in content:
        raise UserError(f"{python}: {content['error']}")
    if status != 0 or not content:
        raise UserError(f"{python}: COMET ended with status {status}. Its messages are above")
    return content


def _check_model(model: Comet, folder: Path) -> None:
    """Check that a folder contains the model that params.yaml names.

    Raises:
        UserError: A file is missing, or the SHA-256 is another one.
    """
    problem = _missing_file(folder)
    if problem:
        raise UserError(f"{folder}: {problem}")
    sha256 = folder_sha256(folder)
    if sha256 != model.sha256:
        raise UserError(
            f"{folder}: SHA-256 is {sha256}, not {model.sha256} as in params.yaml (comet)"
        )
