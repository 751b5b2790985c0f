"""What DVC's own commands show: few numbers for `dvc metrics`, points for `dvc plots`.

How the points are drawn stands in dvc.yaml and in .dvc/plots/: with a column for the system, so
that other systems need no other plots. There are eight colours.
"""

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.report.records import Record
from bleuprint.report.system_results import standings
from bleuprint.runtime.files import read_object

# Points of a training's curve that are drawn, at most.
POINTS = 100
_CELL = ("system", "corpus", "seed")


def metrics(records: Sequence[Record]) -> dict[str, Any]:
    """BLEU by system and corpus, and by test set where there are several; means over seeds."""
    tests: dict[str, set[str]] = {}
    for record in records:
        tests.setdefault(record.corpus, set()).add(record.test)
    by_system: dict[str, Any] = {}
    for one in standings(records):
        of_system, mean = by_system.setdefault(one.system, {}), round(one.bleu.mean, 2)
        if len(tests[one.corpus]) > 1:
            of_system.setdefault(one.corpus, {})[one.test] = mean
        else:
            of_system[one.corpus] = mean
    return {"BLEU": by_system}


def training(cells: Iterable[Cell], root: Path = Path()) -> str:
    """The loss by update, as CSV: the mean of neighbours where there are more than POINTS."""
    rows = []
    for cell in cells:
        points = _curves(cell, root)["training"]
        together = -(-len(points) // POINTS) or 1
        for start in range(0, len(points), together):
            near = points[start : start + together]
            loss = round(statistics.mean(point["loss"] for point in near), 4)
            rows.append({**_named(cell), **_place(near[-1]), "loss": loss})
    return _csv((*_CELL, "update", "tokens", "loss"), rows)


def validation(cells: Iterable[Cell], root: Path = Path()) -> str:
    """Loss and BLEU of the validation set by update, as CSV."""
    rows = [
        {
            **_named(cell),
            "update": point["update"],
            **{name: round(point[name], 4) for name in ("loss", "bleu")},
        }
        for cell in cells
        for point in _curves(cell, root)["validation"]
    ]
    return _csv((*_CELL, "update", "loss", "bleu"), rows)


def html_template() -> str:
    """A page for `dvc plots --html-template` that needs no network: Vega is Snakemake's copy."""
    assets = files("snakemake") / "assets" / "data"
    scripts = "".join(
        f"<script>{(assets / name / f'{name}.js').read_text(encoding='utf-8')}</script>\n"
        for name in ("vega", "vega-lite", "vega-embed")
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>bleuprint: plots</title>\n{{refresh_tag}}\n{scripts}</head>\n"
        "<body>\n{plot_divs}\n</body>\n</html>\n"
    )


def _curves(cell: Cell, root: Path) -> dict[str, Any]:
    return read_object(root / cell.results / "curves.json", ("training", "validation"))


def _named(cell: Cell) -> dict[str, Any]:
    return dict(zip(_CELL, cell, strict=True))


def _place(point: Mapping[str, Any]) -> dict[str, Any]:
    return {"update": point["update"], "tokens": point["tokens"]}


def _csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
