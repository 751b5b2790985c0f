"""The records from the results of all cells, checked to belong together."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from bleuprint.cells.results import Results
from bleuprint.config.cells import rows_of, settings_sha256
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.frame import Records, with_measured
from bleuprint.report.paired import compared, holm
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.measure import DIGITS
from bleuprint.scoring.measures import MEASURES

_OF_TRAINING = ("parameters", "updates", "source_tokens", "target_tokens")
_Row = dict[str, Any]


def collect(settings: Settings, root: Path = Path()) -> Records:
    """The records of every cell in `settings`, in its order.

    Raises UserError naming the cell and the file if one has no result yet, or if its files do not
    belong together.
    """
    runs = {cell: Results.open(settings, cell, root).check() for cell in rows_of(settings)}
    measures = dict[tuple[Cell, str], list[_Row]]()
    for corpus in settings.corpora:
        rows = (*settings.systems_on(corpus), *settings.outside_on(corpus))
        by_row = [[runs[Cell(row, corpus, seed)] for seed in settings.seeds] for row in rows]
        for test in by_row[0][0].tests:
            measures |= _of_test([row for row in by_row if test in row[0].tests], test)
    cells = [_cell(run, test) for run in runs.values() for test in run.tests]
    ordered = (measures[cell, test] for cell, run in runs.items() for test in run.tests)
    records = Records.of(cells, list(chain.from_iterable(ordered)))
    _check_signatures(records)
    return Records(with_measured(records.cells, root), records.measures)


def check_settings(records: Records, settings: Settings, path: Path) -> None:
    """Raise UserError unless the records, read from `path`, are those of these settings.

    Published numbers are not part of the records, and may differ.
    """
    rows = records.cells.drop_duplicates(list(Cell._fields))
    cells = [Cell(*row) for row in rows[list(Cell._fields)].itertuples(index=False)]
    same_comet = (records.measures.measure == "comet").any() == bool(settings.comet)
    if (
        not same_comet
        or cells != rows_of(settings)
        or list(rows.settings_sha256) != [settings_sha256(settings, cell) for cell in cells]
    ):
        raise UserError(
            f"{path}: was made with another params.yaml; run: dvc repro, or if it runs nothing: "
            "dvc repro --force --single-item report"
        )


def _of_test(rows: Sequence[Sequence[Results]], test: str) -> dict[tuple[Cell, str], list[_Row]]:
    """The measures of each row's seeds, tested against the first row."""
    baseline, *_ = rows
    found = dict[tuple[Cell, str], list[_Row]]()
    tested = list[_Row]()
    for row in rows:
        for run in row:
            found[run.cell, test] = list(_measured(run, test))
        if row is not baseline:
            first, second = ([run.measures(test) for run in side] for side in (baseline, row))
            trained = not row[0].row and not baseline[0].row
            for key, of in compared(first, second, trained).items():
                for seed, run in enumerate(row):
                    (target,) = (r for r in found[run.cell, test] if _key(r) == key)
                    target |= {
                        "baseline": baseline[0].cell.system,
                        "difference": round(of.difference, DIGITS),
                        "p": of.p,
                        "p_randomization": of.tests[seed].randomization if of.tests else None,
                        "standard_error": of.tests[seed].standard_error if of.tests else None,
                    }
                    tested += [target] if seed == 0 else []
    corrected = _corrected(tested)
    for row in rows[1:]:
        for each in chain.from_iterable(found[run.cell, test] for run in row):
            p = corrected.get((each["system"], *_key(each)))
            each["p_holm"] = None if p is None else round(p, DIGITS)
            each["p"] = None if each.get("p") is None else round(each["p"], DIGITS)
    return found


def _corrected(tested: Sequence[_Row]) -> dict[tuple[str, ...], float]:
    """Holm's correction, of each measure for all systems, and of all faults together."""
    families: dict[tuple[str, str], list[_Row]] = {}
    for row in tested:
        family = "fault" if MEASURES[row["measure"]].kind == "fault" else row["measure"]
        families.setdefault((family, row["group"]), []).append(row)
    return {
        (row["system"], *_key(row)): p
        for rows in families.values()
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True)
        if row["p"] is not None
    }


def _key(row: _Row) -> tuple[str, str]:
    return row["measure"], row["group"]


def _measured(run: Results, test: str) -> Iterator[_Row]:
    for each in run.measures(test).values():
        kept = {name: value for name, value in each.items() if name != "statistics"}
        yield {**run.cell._asdict(), "test": test, **kept}


def _cell(run: Results, test: str) -> _Row:
    """The facts of a cell, and the fingerprints of what made its translations of a test set."""
    corpus, scores = run.settings.corpus(run.cell.corpus), run.scores_of(test)
    row = {
        **run.cell._asdict(),
        "test": test,
        "source": corpus.source,
        "target": corpus.target,
        "outside": run.row.about if run.row else None,
        "lines": scores["lines"],
        "scored_with": scores["scored_with"],
        "settings_sha256": settings_sha256(run.settings, run.cell),
        **{f"{side}_sha256": scores[side] for side in ("sources", "references", "hypotheses")},
    }
    if run.row:
        return row
    _ = run.curves  # which are checked as they are read
    training, decode = run.training, run.translation.decode
    return row | {
        **{name: getattr(training, name) for name in _OF_TRAINING},
        "training_flops": training.flops,
        "models": run.translation.models,
        "engine": decode["engine"],
        "precision": decode["precision"],
        "training_sha256": training.fingerprint,
        "binary_sha256": training.data,
        "averaged_sha256": fingerprint.of_settings(run.translation.averaged),
        "decode_sha256": fingerprint.of_settings(decode),
    }


def _check_signatures(records: Records) -> None:
    """Raise UserError if cells were scored by different versions of COMET, or of sacreBLEU."""
    alike = records.measures.drop_duplicates(["corpus", "measure", "group", "signature"])
    for (_, measure, _), signatures in alike.groupby(["corpus", "measure", "group"]).signature:
        if len(signatures) > 1:
            stage = "comet" if measure == "comet" else "score"
            raise UserError(
                f"{MEASURES[measure].label} of different versions: {' and '.join(signatures)}; to "
                f"score all again by one: dvc repro --force --single-item {stage}"
            )
