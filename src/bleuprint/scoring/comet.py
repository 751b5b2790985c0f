"""The stages comet and comet_outside: a COMET score of each line of translations."""

import hashlib
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bleuprint.config.comet import Comet
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder, outside, outside_comet
from bleuprint.corpus.test_sets import names_of_test_sets
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, whole_folder, write_json
from bleuprint.scoring import comet_predict
from bleuprint.scoring.comet_measure import COMET_MEASURE
from bleuprint.scoring.record import COMET, SetScores
from bleuprint.scoring.significance import measured
from bleuprint.text.parallel import TextFolder, count_lines

_NEEDED = ("checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json")
_TOKENIZERS = ("tokenizer.json", "sentencepiece.bpe.model", "spiece.model", "vocab.txt")
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
_Key = TypeVar("_Key", bound=Hashable)


def score_cell(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a cell's translations of all test sets and write comet.json.

    Raises UserError if params.yaml names no model, if its folder or environment is not as named,
    or if the translations differ from those in translation.json.
    """
    row = settings.system_on(system, corpus)
    settings.check_seed(seed)
    texts = _texts(settings, corpus, root)
    cell = root / Cell(system, corpus, seed).results
    record = TranslationRecord.read(record_path := cell / TRANSLATION)
    tests = names_of_test_sets(settings.corpus(corpus), texts)
    files = {test: _files(texts, test, cell) for test in tests}
    for _, hypotheses, _ in files.values():
        record.check(record_path, row, hypotheses)
    scores = _scores(settings, files)
    write_json(cell / COMET, scores)
    return scores


def score_rows(settings: Settings, corpus: str, root: Path = Path()) -> None:
    """Score the rows from outside of a corpus, and write a file like comet.json for each.

    Raises UserError as `score_cell` does; translations must be those that params.yaml names.
    """
    texts, rows = _texts(settings, corpus, root), settings.outside_on(corpus)
    files: dict[tuple[str, str], _Files] = {}
    for name, row in rows.items():
        for test, file in row.tests.items():
            files[name, test] = _files(texts, test, outside(corpus, root) / name)
            if sha256_of(path := files[name, test][1]) != file.sha256:
                raise UserError(f"{path}: has changed since it was scored; run: dvc repro")
    scores = _scores(settings, files)
    with whole_folder(outside_comet(corpus, root)) as unfinished:
        for name, row in rows.items():
            of_row = {test: scores[name, test] for test in row.tests}
            write_json(unfinished / f"{name}.json", of_row)


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


def missing_parts(settings: Settings) -> Iterator[str]:
    """A note on what the stages would refuse, save another SHA-256: to hash a model takes seconds.

    Only a note, since `dvc pull` brings scores to a clone without the model.
    """
    for name, model in (settings.comet or {}).items():
        python, place = _paths(model)
        if not os.access(python, os.X_OK) or python.is_dir():
            yield f"comet.{name}.python: {python}: no such program"
        if not place.is_dir():
            yield f"comet.{name}.folder: {place}: no such folder"
        elif missing := _missing(place):
            yield f"comet.{name}.folder: {place}: {missing}"


def check_folder(place: Path, sha256: str) -> None:
    """Raise UserError if a model's folder is not complete, or not that of the SHA-256."""
    if missing := _missing(place):
        raise UserError(f"{place}: {missing}")
    if (found := folder_sha256(place)) != sha256:
        raise UserError(f"{place}: SHA-256 is {found}, not {sha256} as in params.yaml (comet)")


def _missing(place: Path) -> str:
    """What a model's folder lacks; empty if nothing."""
    for name in _NEEDED:
        if not (place / name).is_file():
            return f"no {name}: not a whole COMET model (docs/scoring.md)"
    if not any((place / "encoder" / name).is_file() for name in _TOKENIZERS):
        return f"no tokenizer of the encoder: none of {', '.join(_TOKENIZERS)} in encoder/"
    return ""


def _paths(model: Comet) -> tuple[Path, Path]:
    """The Python and the folder of a model."""
    return environment.root() / model.python, environment.root() / model.folder


def _texts(settings: Settings, corpus: str, root: Path) -> TextFolder:
    entry = settings.corpus(corpus)
    return TextFolder(folder(corpus, "split", root), entry.source, entry.target)


def _files(texts: TextFolder, test: str, results: Path) -> _Files:
    """Those of a test set, with the translations in a folder of results."""
    sources, references = texts.files(f"test.{test}")
    return sources, results / "hypotheses" / references.name, references


def _scores(settings: Settings, files: Mapping[_Key, _Files]) -> dict[_Key, SetScores]:
    """COMET of each test set. Raises UserError if params.yaml names no model."""
    if not settings.comet:
        raise UserError("params.yaml: names no COMET model (comet)")
    ((name, model),) = settings.comet.items()
    predicted = _predicted(model, list(files.values()))
    versions = f"Python{predicted['python']}|Comet{predicted['comet']}"
    signature = f"{versions}|fp32|{name}|r{predicted['references']}"
    scores: dict[_Key, SetScores] = {}
    for (key, of_test), segments in zip(files.items(), predicted["scores"], strict=True):
        sources, hypotheses, references = map(sha256_of, of_test)
        statistics = np.array([(round(10**6 * score), 1) for score in segments], dtype=np.float64)
        scores[key] = {
            "lines": len(segments),
            "sources": sources,
            "references": references,
            "hypotheses": hypotheses,
            "scored_with": model.sha256,
            "measures": [measured(COMET_MEASURE, statistics, signature)],
        }
    return scores


def _predicted(model: Comet, files: Sequence[_Files]) -> dict[str, Any]:
    """What comet_predict.py writes of all files, run by the model's Python."""
    python, place = _paths(model)
    check_folder(place, model.sha256)
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "scores.json")
        texts = [str(path.absolute()) for of_test in files for path in of_test]
        command = [
            str(python),
            "-I",
            str(Path(comet_predict.__file__)),
            str(place),
            str(output),
            *texts,
        ]
        try:
            status = subprocess.run(command, env={**os.environ, **_VARIABLES}).returncode
        except OSError as error:
            raise UserError(f"{python}: {error.strerror} (comet.python in params.yaml)") from None
        content = json.loads(output.read_text()) if output.exists() else {}
    if "error" in content:
        raise UserError(f"{python}: {content['error']}")
    if status or not content:
        raise UserError(f"{python}: COMET ended with status {status}; its messages are above")
    for (_, hypotheses, _), scores in zip(files, content["scores"], strict=True):
        _check_scores(hypotheses, scores)
    return dict(content)


def _check_scores(hypotheses: Path, scores: Sequence[float]) -> None:
    """Raise UserError unless there is a number for each line."""
    if len(scores) != (expected := count_lines(hypotheses)):
        raise UserError(f"{hypotheses}: {expected} lines, but COMET has {len(scores)} scores")
    for number, score in enumerate(scores, 1):
        if not math.isfinite(score):
            raise UserError(f"{hypotheses}:{number}: COMET is {score}")
    if not scores:
        raise UserError(f"{hypotheses}: is empty: nothing to score")
