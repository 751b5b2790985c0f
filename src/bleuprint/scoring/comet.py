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
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.test_sets import translated_test_sets
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_bytes, sha256_of, write_json
from bleuprint.scoring import comet_predict
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.record import SetScores
from bleuprint.scoring.significance import evaluate_metric
from bleuprint.text.parallel import TextFolder

_NEEDED = ("checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json")
# Nothing is fetched, and nothing is unpickled but tensors and plain values.
_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
# Sources, translations and references of a test set.
_Files = tuple[Path, Path, Path]


def score_run_by_comet(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a run's translations of all test sets and write comet.json.

    Raises UserError if params.yaml names no model, or if its folder or environment is not as named.
    """
    settings.check_scored(system, corpus, seed)
    entry = settings.corpus(corpus)
    texts = TextFolder(corpus_folder(corpus, "split", root), entry.source, entry.target)
    results = root / Run(system, corpus, seed).results_folder
    tests = translated_test_sets(settings, system, corpus, texts)
    files = {}
    for test in tests:
        files[test] = _files(texts, test, results)
    scores = _scores(settings, files)
    write_json(results / f"{COMET_METRIC.stage}.json", scores)
    return scores


def folder_sha256(place: Path) -> str:
    """The SHA-256 of what sha256sum prints of the files in a folder, sorted by their bytes.

    Files and folders whose names begin with a dot, such as those of a download, are left out.
    """
    files = {
        os.fsencode(f"./{path.relative_to(place)}"): path
        for path in place.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(place).parts)
    }
    printed = hashlib.sha256()
    for name in sorted(files):
        printed.update(f"{sha256_of(files[name])}  ".encode() + name + b"\n")
    return printed.hexdigest()


def notes_on_missing_comet(settings: Settings) -> Iterator[str]:
    """A note on what the stages would refuse, save another SHA-256: to hash a model takes seconds.

    Only a note, since `dvc pull` brings scores to a clone without the model.
    """
    for name, model in (settings.comet or {}).items():
        python, place = _paths(model)
        if not os.access(python, os.X_OK):
            yield f"comet.{name}.python: {python}: no such program"
        if missing := _missing(place):
            yield f"comet.{name}.folder: {place}: {missing}"


def _missing(place: Path) -> str:
    """What a model's folder lacks; empty if nothing."""
    missing = [name for name in _NEEDED if not (place / name).is_file()]
    return f"no {missing[0]}: not a whole COMET model (docs/scoring.md)" if missing else ""


def _paths(model: Comet) -> tuple[Path, Path]:
    """The Python and the folder of a model."""
    return environment.project_root() / model.python, environment.project_root() / model.folder


def _files(texts: TextFolder, test: str, results: Path) -> _Files:
    """Those of a test set, with the translations in a folder of results."""
    sources, references = texts.files(f"test.{test}")
    return sources, results / "hypotheses" / references.name, references


def _scores(settings: Settings, files: Mapping[str, _Files]) -> dict[str, SetScores]:
    """COMET of each test set. Raises UserError if params.yaml names no model."""
    if not settings.comet:
        raise UserError("params.yaml: names no COMET model (comet)")
    ((name, model),) = settings.comet.items()
    predicted = _predicted(model, list(files.values()))
    versions = f"Python{predicted['python']}|Comet{predicted['comet']}"
    signature = f"{versions}|fp32|{name}|r{predicted['references']}"
    scores: dict[str, SetScores] = {}
    for (test, of_test), segments in zip(files.items(), predicted["scores"], strict=True):
        sources, hypotheses, references = map(sha256_of, of_test)
        statistics = np.array([(round(10**6 * score), 1) for score in segments], dtype=np.float64)
        scores[test] = {
            "lines": len(segments),
            "sources": sources,
            "references": references,
            "hypotheses": hypotheses,
            "scored_with": model.sha256,
            "metrics": [evaluate_metric(COMET_METRIC, statistics, signature)],
        }
    return scores


def _predicted(model: Comet, files: Sequence[_Files]) -> dict[str, Any]:
    """What comet_predict.py writes of all files, run by the model's Python."""
    python, place = _paths(model)
    if missing := _missing(place):
        raise UserError(f"{place}: {missing}")
    if (found := folder_sha256(place)) != model.sha256:
        raise UserError(
            f"{place}: SHA-256 is {found}, not {model.sha256} as in params.yaml (comet)"
        )
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "scores.json")
        texts = [str(path.absolute()) for of_test in files for path in of_test]
        command = [str(python), "-I", comet_predict.__file__, str(place), str(output), *texts]
        try:
            status = subprocess.run(command, env={**os.environ, **_VARIABLES}).returncode
        except OSError as error:
            raise UserError(f"{python}: {error.strerror} (comet.python in params.yaml)") from None
        content: dict[str, Any] = json.loads(read_bytes(output)) if output.exists() else {}
    if "error" in content:
        raise UserError(f"{python}: {content['error']}")
    if status or not content:
        raise UserError(f"{python}: COMET ended with status {status}; its messages are above")
    for (_, hypotheses, _), scores in zip(files, content["scores"], strict=True):
        if not scores or not all(map(math.isfinite, scores)):
            raise UserError(f"{hypotheses}: is empty, or COMET of a line is not a number")
    return content
