"""Results as records: one for each system x corpus x seed x test set.

A record holds only what repeats exactly; what a clock measured is in timings.py.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime import fingerprint
from bleuprint.runtime.code import code_fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.bleu_variants import BleuVariant
from bleuprint.scoring.breakdown import ByCount, ByLength
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.significance import PValues, paired_tests
from bleuprint.tracking.cell_results import CellResults, cells_of


@dataclass(frozen=True)
class Metric:
    """A score with its 95 % interval and sacreBLEU's signature."""

    score: float
    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Paired:
    """The paired tests against the baseline's translations of the same seed."""

    baseline: str
    p_values: PValues


@dataclass(frozen=True)
class Length:
    """The tokens that BLEU counts in the translations and the references, and their ratio."""

    hypothesis: int
    reference: int
    ratio: float


@dataclass(frozen=True)
class Fingerprints:
    """SHA-256 of what made the result.

    `training`: what decides the training (settings, code and data), as MLflow's runs bear it;
    `settings`: all of the cell's, from the corpus's files to decoding; `code`: the package.
    """

    training: str
    settings: str
    code: str


@dataclass(frozen=True)
class Data:
    """SHA-256 of what went in and came out: the binary corpus, and the test set's files."""

    binary: str
    sources: str
    references: str
    hypotheses: str


@dataclass(frozen=True)
class Record:
    """One number of the table and all that stands behind it.

    `paired` is None for the baseline, `by_count` where tokens are characters; `decode` are the
    settings that translated.
    """

    system: str
    corpus: str
    seed: int
    test: str
    source: str
    target: str
    bleu: Metric
    chrf: Metric
    ter: Metric
    length: Length
    paired: Paired | None
    reconciliation: tuple[BleuVariant, ...]
    by_length: tuple[ByLength, ...]
    by_count: tuple[ByCount, ...] | None
    lines: int
    parameters: int
    training_flops: float
    source_tokens: int
    target_tokens: int
    updates: int
    decode: dict[str, Any]
    fingerprints: Fingerprints
    data: Data

    @property
    def cell(self) -> Cell:
        return Cell(self.system, self.corpus, self.seed)

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"


def collect(settings: Settings, root: Path = Path()) -> list[Record]:
    """The records of every cell in `settings`, in its order.

    Raises UserError naming the cell and the file if one has no result yet, if the model, the
    settings or the files are not those of translation.json, if the translations do not have the
    BLEU of scores.json, or if the curves are not those of training.json.
    """
    runs = {cell: CellResults.open(settings, cell, root).check() for cell in cells_of(settings)}
    paired = dict[tuple[Cell, str], Paired]()
    for corpus, seed in product(settings.corpora, settings.seeds):
        paired |= _paired([runs[Cell(system, corpus, seed)] for system in settings.systems])
    code = code_fingerprint("report", root)
    return [
        _record(run, test, paired.get((cell, test)), code)
        for cell, run in runs.items()
        for test in run.tests
    ]


def save(records: Sequence[Record], path: Path) -> None:
    """Write the records as JSON: a list of objects, readable and exactly repeatable."""
    write_json(path, [dataclasses.asdict(record) for record in records])


def load(path: Path) -> list[Record]:
    """The records that `save` wrote."""
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    try:
        return [_from_json(entry) for entry in read_json(path)]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: was not written by this version; run: dvc repro") from None


def check_settings(records: Sequence[Record], settings: Settings, path: Path) -> None:
    """Raise UserError unless the records, read from `path`, are those of these settings.

    Published numbers are not part of the records, and may differ.
    """
    if list(dict.fromkeys(record.cell for record in records)) != cells_of(settings) or any(
        record.fingerprints.settings != settings_of(settings, record.cell) for record in records
    ):
        raise UserError(f"{path}: is not of params.yaml as it is; run: dvc repro")


def settings_of(settings: Settings, cell: Cell) -> str:
    """The fingerprint of all settings of a cell, from the corpus's files to decoding."""
    # license and citation change no result
    corpus = dict(vars(settings.corpus(cell.corpus)))
    del corpus["license_and_citation"]
    return fingerprint.of_settings(settings.system(cell.system), corpus, cell.seed)


def _paired(runs: Sequence[CellResults]) -> dict[tuple[Cell, str], Paired]:
    """Paired tests of all but the first system against the first, by cell and test set."""
    baseline, *others = runs
    target = baseline.texts.target
    found: dict[tuple[Cell, str], Paired] = {}
    for test in baseline.tests:
        translations = {}
        for run in runs:
            references, lines = run.lines(test)
            _check_bleu(run, test, references, lines)
            translations[run.cell.system] = lines
        if others:
            p_values = paired_tests(translations, references, target)
            for run in others:
                p = p_values[run.cell.system]
                found[run.cell, test] = Paired(baseline.cell.system, p)
    return found


def _check_bleu(run: CellResults, test: str, references: list[str], lines: list[str]) -> None:
    """Raise UserError if the translations have another BLEU than scores.json says."""
    stored = run.scores_of(test)["bleu"]["score"]
    metric = bleu_metric(references, run.texts.target)
    computed = round(metric.corpus_score(lines, None).score, DIGITS)
    if computed != stored:
        raise UserError(
            f"{run.path / 'scores.json'}: BLEU {stored} on {test}, but the translations have "
            f"{computed}; run: dvc repro"
        )


def _record(run: CellResults, test: str, paired: Paired | None, code: str) -> Record:
    corpus, training = run.settings.corpus(run.cell.corpus), run.training
    scores, _ = run.scores_of(test), run.curves
    settings = settings_of(run.settings, run.cell)
    return Record(
        **run.cell._asdict(),
        test=test,
        source=corpus.source,
        target=corpus.target,
        bleu=_metric(scores["bleu"]),
        chrf=_metric(scores["chrf"]),
        ter=_metric(scores["ter"]),
        length=_length(scores["bleu"]),
        paired=paired,
        **_parts(scores),
        lines=scores["lines"],
        parameters=training.parameters,
        training_flops=training.flops,
        source_tokens=training.source_tokens,
        target_tokens=training.target_tokens,
        updates=training.updates,
        decode=run.translation.decode,
        fingerprints=Fingerprints(training.fingerprint, settings, code),
        data=Data(training.data, scores["sources"], scores["references"], scores["hypotheses"]),
    )


def _metric(scores: Any) -> Metric:
    return Metric(**{field.name: scores[field.name] for field in dataclasses.fields(Metric)})


def _length(scores: Any) -> Length:
    return Length(scores["hypothesis_length"], scores["reference_length"], scores["length_ratio"])


def _parts(entry: Any) -> dict[str, Any]:
    """The lists of scores.json, or of a record in JSON."""
    by_count = entry["by_count"]
    return {
        "reconciliation": tuple(BleuVariant(**one) for one in entry["reconciliation"]),
        "by_length": tuple(ByLength(**one) for one in entry["by_length"]),
        "by_count": None if by_count is None else tuple(ByCount(**one) for one in by_count),
    }


def _from_json(entry: Any) -> Record:
    paired = entry["paired"]
    parts = {
        "bleu": Metric(**entry["bleu"]),
        "chrf": Metric(**entry["chrf"]),
        "ter": Metric(**entry["ter"]),
        "length": Length(**entry["length"]),
        "paired": paired and Paired(paired["baseline"], PValues(**paired["p_values"])),
        **_parts(entry),
        "fingerprints": Fingerprints(**entry["fingerprints"]),
        "data": Data(**entry["data"]),
    }
    return Record(**{**entry, **parts})
