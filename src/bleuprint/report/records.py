"""The records from the results of all cells, checked to belong together."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import read_description
from bleuprint.report import document_tables
from bleuprint.report.comet_scores import (
    ROUNDING,
    check_one_signature,
    comet_columns,
    one_model,
    paired_comet,
)
from bleuprint.report.fault_tables import fault_counts
from bleuprint.report.frame import frame_of, with_measured
from bleuprint.report.system_results import METRICS, of_metric, with_differences
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.scoring import metrics
from bleuprint.scoring.output_faults import output_faults
from bleuprint.scoring.score import fast_scores
from bleuprint.scoring.significance import paired_tests
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations, settings_sha256
from bleuprint.tracking.outside_results import OutsideResults, open_results, rows_of


def collect(settings: Settings, root: Path = Path()) -> pd.DataFrame:
    """The records of every cell in `settings`, in its order.

    Raises UserError naming the cell and the file if one has no result yet, if the model, the
    settings or the files are not those of translation.json, if the translations do not have the
    BLEU of scores.json, or if the curves are not those of training.json.
    """
    runs = {cell: open_results(settings, cell, root).check() for cell in rows_of(settings)}
    for run in runs.values():
        if isinstance(run, CellResults):
            _ = run.curves  # which are checked as they are read
    paired = dict[tuple[Cell, str], dict[str, Any]]()
    for corpus, seed in product(settings.corpora, settings.seeds):
        rows = (*settings.systems_on(corpus), *settings.outside_on(corpus))
        paired |= _paired([runs[Cell(row, corpus, seed)] for row in rows])
    faults = fault_counts(runs)
    tested = ("p_bootstrap", "p_randomization", "standard_error")
    untested = dict.fromkeys(of_metric(metric, each) for metric in METRICS for each in tested)
    untested |= document_tables.tests_of(None)
    records = [
        {
            **_row(run, test),
            **{"baseline": None, **untested, **paired.get((cell, test), {})},
            "faults": faults.get((cell, test)),
        }
        for cell, run in runs.items()
        for test in run.tests
    ]
    frame = frame_of(records)
    check_one_signature(frame)
    return with_measured(with_differences(frame), root)


def check_settings(records: pd.DataFrame, settings: Settings, path: Path) -> None:
    """Raise UserError unless the records, read from `path`, are those of these settings.

    Published numbers are not part of the records, and may differ.
    """
    rows = records.drop_duplicates(list(Cell._fields))
    cells = [Cell(*row) for row in rows[list(Cell._fields)].itertuples(index=False)]
    same_comet = records.comet.notna().any() == bool(settings.comet)
    if (
        not same_comet
        or cells != rows_of(settings)
        or list(rows.settings_sha256) != [settings_sha256(settings, cell) for cell in cells]
    ):
        raise UserError(
            f"{path}: was made with another params.yaml; run: dvc repro, or if it runs nothing: "
            "dvc repro --force --single-item report"
        )


def _paired(runs: Sequence[ScoredTranslations]) -> dict[tuple[Cell, str], dict[str, Any]]:
    """Paired tests of all but the first system against the first, by cell and test set.

    A row from outside may have translations of some of the test sets.
    """
    baseline, *_ = runs
    tested: dict[tuple[Cell, str], dict[str, Any]] = {}
    for test in baseline.tests:
        translations = {}
        of_test = [run for run in runs if test in run.tests]
        for run in of_test:
            references, translations[run.cell.system] = run.lines(test)
            _check_scores(run, test, references, translations[run.cell.system])
        if len(of_test) > 1:
            tests = folder(baseline.cell.corpus, "tests", baseline.root)
            documents = read_description(tests, test).documents
            language = baseline.texts.target
            results = paired_tests(translations, references, language, documents)
            for run in of_test[1:]:
                row: dict[str, Any] = {"baseline": baseline.cell.system}
                by_metric = list(results[run.cell.system].values())
                if one_model([baseline, run], test):
                    by_metric.append(paired_comet(run, baseline, test))
                for metric, of in zip(METRICS, by_metric, strict=False):
                    row[of_metric(metric, "p_bootstrap")] = of.bootstrap
                    row[of_metric(metric, "p_randomization")] = of.randomization
                    row[of_metric(metric, "standard_error")] = of.standard_error
                tested[run.cell, test] = row | document_tables.tests_of(results[run.cell.system])
    return tested


def _check_scores(
    run: ScoredTranslations, test: str, references: list[str], lines: list[str]
) -> None:
    """Raise UserError if the translations have other scores than scores.json says.

    Compared are also intervals, signatures and the like. TER, which takes longer than the rest of
    the report to compute, has to be in its interval.
    """
    path, stored = run.path / "scores.json", run.scores_of(test)
    again = f"run: dvc repro --force --single-item {run.stage}"
    described = read_description(folder(run.cell.corpus, "tests", run.root), test)
    corpus, loss = run.settings.corpus(run.cell.corpus), run.losses.get(test)
    computed: dict[str, Any] = {**fast_scores(lines, references, corpus, described, loss)}
    if "faults" in stored:
        computed["faults"] = output_faults(run.sources(test), references, lines, corpus)
    if ("by_document" in stored) != ("by_document" in computed):
        raise UserError(f"{path}: documents of {test} are not those it was scored by; {again}")
    for what, (old, new) in _differences(stored, json.loads(json.dumps(computed))):
        raise UserError(f"{path}: {what} {old} on {test}, but the translations have {new}; {again}")
    ter = stored["ter"]
    if not ter["low"] - ROUNDING <= ter["score"] <= ter["high"] + ROUNDING:
        raise UserError(
            f"{path}: TER {ter['score']} on {test} is outside its interval of {ter['low']} to "
            f"{ter['high']}; {again}"
        )


def _differences(stored: Any, computed: Any, what: str = "") -> Iterator[tuple[str, Any]]:
    """What differs in `computed` values, each with its dotted name, and both values."""
    if isinstance(computed, Mapping) and isinstance(stored, Mapping):
        for name, value in computed.items():
            yield from _differences(stored.get(name), value, f"{what}.{name}".lstrip("."))
    elif isinstance(computed, list) and isinstance(stored, list) and len(stored) == len(computed):
        for place, (old, new) in enumerate(zip(stored, computed, strict=True)):
            yield from _differences(old, new, f"{what}.{place}")
    elif stored != computed:
        yield what, (stored, computed)


def _row(run: ScoredTranslations, test: str) -> dict[str, Any]:
    """The columns that come from the cell's own files."""
    corpus, scores = run.settings.corpus(run.cell.corpus), run.scores_of(test)
    loss: Mapping[str, float] = scores["loss"] or {}  # type: ignore[assignment]
    row = {
        **run.cell._asdict(),
        "test": test,
        "source": corpus.source,
        "target": corpus.target,
        "scored": "sacrebleu",
        "lines": scores["lines"],
        "test_loss": loss.get("loss"),
        "test_perplexity": loss.get("perplexity"),
        "word_perplexity": loss.get("word_perplexity"),
        **{name: scores["bleu"][name] for name in ("hypothesis_length", "reference_length")},
        "length_ratio": scores["bleu"]["length_ratio"],
        "outside": run.row.about if isinstance(run, OutsideResults) else None,
        **(_of_training(run) if isinstance(run, CellResults) else {}),
        "settings_sha256": settings_sha256(run.settings, run.cell),
        "sources_sha256": scores["sources"],
        "references_sha256": scores["references"],
        "hypotheses_sha256": scores["hypotheses"],
        "scored_with": scores.get("scored_with"),
        "variants": scores["bleu_variants"],
        "by_length": scores["by_length"],
        "by_count": scores["by_count"],
        **document_tables.columns_of(scores.get("by_document")),
    }
    for column, key in zip(METRICS, metrics.METRICS, strict=False):
        metric = scores[key]  # type: ignore[literal-required]
        row |= {column: metric["score"], f"{column}_signature": metric["signature"]}
        row |= {f"{column}_low": metric["low"], f"{column}_high": metric["high"]}
    return row | comet_columns(run, test)


def _of_training(run: CellResults) -> dict[str, Any]:
    """The columns of the training and the search, which rows from outside do not have."""
    training, decode = run.training, run.translation.decode
    return {
        **{name: getattr(training, name) for name in ("parameters", "updates")},
        **{name: getattr(training, name) for name in ("source_tokens", "target_tokens")},
        "training_flops": training.flops,
        "models": run.translation.models,
        **{name: decode[name] for name in ("engine", "precision", "beam")},
        **{f"length_penalty.{name}": value for name, value in decode["length_penalty"].items()},
        "training_sha256": training.fingerprint,
        "binary_sha256": training.data,
        "averaged_sha256": fingerprint.of_settings(run.translation.averaged),
        "decode_sha256": fingerprint.of_settings(decode),
    }
