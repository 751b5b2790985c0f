"""Fills the tables of README.md from recipes/ and reports/: `python -m tools.readme_tables`.

"On real text" is made of the published numbers of the recipes that name a system here. Of
"Recipes" the cells after the second one are.
"""

import re
from collections.abc import Iterator
from itertools import chain
from math import isnan
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import load_settings
from bleuprint.config.published import Published
from bleuprint.report import frame
from bleuprint.report.score_frame import by_test_set, score_frame, select_metric
from bleuprint.report.table import NONE

# In "On real text", in this order.
REAL = ("multi30k", "multi30k-french", "course-multi30k", "table2-multi30k")
# Whose numbers are in reports/ itself.
DEFAULT = "phrasebook"
_TEXT_HEAD = (
    "| test set | system | published | here | Δ | training time (minutes) | |",
    "|---|---|---:|---:|---:|---:|---|",
)


def filled(readme: str, root: Path = Path()) -> str:
    """README with its tables as they follow from the reports."""
    before, head, after = readme.partition("\n## On real text\n")
    _, rest = re.split(r"(?m)(?<=\n)\n(?!\|)", after.lstrip("\n"), maxsplit=1)
    table = "\n".join(
        (*_TEXT_HEAD, *chain.from_iterable(published(recipe, root) for recipe in REAL))
    )
    text = f"{before}{head}\n{table}\n\n{rest}"
    first, head, recipes = text.partition("\n## Recipes\n")
    lines = re.sub(r"(?m)^\| `([\w-]+)` \| .*$", lambda line: _recipe(line, root), recipes)
    return f"{first}{head}{lines}"


def report_of(recipe: str, root: Path) -> Path:
    """Its results.json."""
    return root / "reports" / ("" if recipe == DEFAULT else recipe) / "results.json"


def records_of(recipe: str, root: Path) -> frame.Records | None:
    """Return the records of a recipe's report; None if there is no report."""
    path = report_of(recipe, root)
    return frame.read(path, path.parent) if path.exists() else None


def published(recipe: str, root: Path) -> Iterator[str]:
    """Lines of the table: the published numbers of a recipe beside those of its report."""
    records = records_of(recipe, root)
    if records is None:
        return
    scores = score_frame(records)
    for number in load_settings(root / "recipes" / f"{recipe}.yaml").published:
        is_here = (
            (scores.system == number.system)
            & (scores.corpus == number.corpus)
            & (scores.test == number.test)
        )
        cells = records.runs[records.runs.system == number.system]
        cells = cells[cells.corpus == number.corpus]
        yield from _published(recipe, number, scores[is_here], _minutes(cells))


def _published(recipe: str, number: Published, scores: pd.DataFrame, minutes: str) -> Iterator[str]:
    """A line for BLEU, counted as it was published, and one for perplexity."""
    metric = "bleu" if number.metric == "sacrebleu" else number.metric
    both = {
        metric: (f"BLEU ({number.metric})", number.bleu),
        "perplexity": ("perplexity", number.perplexity),
    }
    for key, (name, printed) in both.items():
        if printed is None:
            continue
        form = ".2f" if key == "perplexity" else ".1f"
        for row in select_metric(scores, key).itertuples():
            cells = (
                f"{number.corpus} {number.test}, {name}",
                f"{number.name}, {number.source}; here `{number.system}`",
                f"{printed:{form}}",
                f"{row.value:{form}}" if key == "perplexity" else row.score_text,
                f"{row.value - printed:+{form}}",
                minutes,
                f"[table](reports/{recipe}/table.md)",
            )
            yield f"| {' | '.join(cells)} |"


def _recipe(line: re.Match[str], root: Path) -> str:
    recipe, cells = line[1], line[0].strip("| ").split(" | ")
    records = records_of(recipe, root)
    if records is None:
        return line[0]
    tests = [of_test for _, _, of_test in by_test_set(score_frame(records))]
    bleu = [list(select_metric(of_test, "bleu").itertuples()) for of_test in tests]
    rows = max(bleu, key=lambda rows: rows[0].lines)  # of the largest test set
    text = f"{rows[0].row_name} {rows[0].score_text}"
    others = [row for row in rows if not isnan(row.difference)]
    if others:
        best = max(others, key=lambda row: row.difference)
        text += f"; {best.row_name} {best.why_untested or best.difference_text.partition(' p')[0]}"
    link = "above" if recipe == DEFAULT else f"[table](reports/{recipe}/table.md)"
    return f"| {' | '.join((*cells[:2], text, _minutes(records.runs), link))} |"


def _minutes(cells: pd.DataFrame) -> str:
    """The mean over trainings, each once."""
    trainings = frame.one_row_per_training(cells).drop_duplicates("training_sha256")
    count = f"{len(trainings)} × " if len(trainings) > 1 else ""
    minutes = trainings.train_seconds.mean() / 60
    if isnan(minutes):
        return NONE
    return f"{count}{minutes:.0f}" if minutes >= 1 else f"{count}< 1"


if __name__ == "__main__":
    path = Path("README.md")
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
