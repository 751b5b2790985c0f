"""Fills the tables of README.md from recipes/ and reports/: `python -m tools.readme_tables`.

The table of "On real text" is made from the published numbers of the recipes that name a system of
ours. In the table of "Recipes", all columns after the second one are filled.
"""

import re
from collections.abc import Iterator
from math import isnan
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import load_settings
from bleuprint.config.published import Published
from bleuprint.report import frame
from bleuprint.report.score_frame import by_test_set, score_frame, select_metric
from bleuprint.report.table import DASH
from bleuprint.report.training_costs import one_row_per_training

# The recipes of "On real text", in this order.
REAL = ("multi30k", "multi30k-french", "course-multi30k", "table2-multi30k")
# The recipe whose numbers are in reports/ itself.
DEFAULT = "phrasebook"
_PUBLISHED_TABLE_HEAD = (
    "| test set | system | published | here | Δ | training time (minutes) | |",
    "|---|---|---:|---:|---:|---:|---|",
)


def fill_tables(readme: str, root: Path = Path()) -> str:
    """Return README's text with two tables filled from the committed reports.

    The first table, in the section "On real text", compares published scores with the
    reports, and is written anew. In the second one, in the section "Recipes", each row gets the
    results of its recipe.

    Args:
        readme: The text of README.md.
        root: The project's root.
    """
    text_before, published_head, text_after = readme.partition("\n## On real text\n")
    # The section begins with the old table, which is dropped. It ends at an empty line.
    _, rest = re.split(r"(?m)(?<=\n)\n(?!\|)", text_after.lstrip("\n"), maxsplit=1)
    table_lines = list(_PUBLISHED_TABLE_HEAD)
    for recipe in REAL:
        table_lines += published_rows(recipe, root)
    table = "\n".join(table_lines)
    text = f"{text_before}{published_head}\n{table}\n\n{rest}"
    text_before, recipes_head, recipes = text.partition("\n## Recipes\n")
    lines = []
    for line in recipes.split("\n"):
        # The row of a recipe begins with its name: | `phrasebook` | ...
        match = re.match(r"\| `([\w-]+)` \| ", line)
        lines.append(recipe_row(line, match[1], root) if match else line)
    recipes = "\n".join(lines)
    return f"{text_before}{recipes_head}{recipes}"


def report_of(recipe: str, root: Path) -> Path:
    """Return the path of a recipe's results.json, which need not exist.

    Args:
        recipe: The name of the recipe.
        root: The folder of the project.
    """
    folder = root / "reports"
    if recipe != DEFAULT:
        folder /= recipe
    return folder / "results.json"


def records_of(recipe: str, root: Path) -> frame.Records | None:
    """Return the records of a recipe's report; None if there is no report.

    Args:
        recipe: The name of the recipe.
        root: The folder of the project.
    """
    path = report_of(recipe, root)
    return frame.read(path, path.parent) if path.exists() else None


def published_rows(recipe: str, root: Path) -> Iterator[str]:
    """Yield rows of the table "On real text", for a recipe that repeats published experiments.

    Each row shows a published BLEU or perplexity, the one in the report of the recipe, and the
    difference. Without a report there are no rows.

    Args:
        recipe: The name of the recipe.
        root: The folder of the project.
    """
    records = records_of(recipe, root)
    if records is None:
        return
    scores = score_frame(records)
    for number in load_settings(root / "recipes" / f"{recipe}.yaml").published:
        is_same_task = (
            (scores.system == number.system)
            & (scores.corpus == number.corpus)
            & (scores.test == number.test)
        )
        runs = records.runs[records.runs.system == number.system]
        runs = runs[runs.corpus == number.corpus]
        minutes = _training_minutes(runs)
        our_scores = scores[is_same_task]
        # Published BLEU may be of a variant, such as tokenized BLEU. Ours is of the same variant.
        bleu_metric = "bleu" if number.metric == "sacrebleu" else number.metric
        if number.bleu is not None:
            for score in select_metric(our_scores, bleu_metric).itertuples():
                yield _row(
                    f"{number.corpus} {number.test}, BLEU ({number.metric})",
                    _published_system(number),
                    f"{number.bleu:.1f}",
                    score.score_text,
                    f"{score.value - number.bleu:+.1f}",
                    minutes,
                    f"[table](reports/{recipe}/table.md)",
                )
        if number.perplexity is not None:
            for score in select_metric(our_scores, "perplexity").itertuples():
                yield _row(
                    f"{number.corpus} {number.test}, perplexity",
                    _published_system(number),
                    f"{number.perplexity:.2f}",
                    f"{score.value:.2f}",
                    f"{score.value - number.perplexity:+.2f}",
                    minutes,
                    f"[table](reports/{recipe}/table.md)",
                )


def _published_system(number: Published) -> str:
    return f"{number.name}, {number.source}; here `{number.system}`"


def _row(*columns: str) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(columns)} |"


def recipe_row(line: str, recipe: str, root: Path) -> str:
    """Return a row of the table "Recipes", filled from the recipe's report.

    The result is the baseline's BLEU on the largest test set, and the system with the greatest
    gain over it.

    Args:
        line: The row as it is. It is returned unchanged if the recipe has no report.
        recipe: The recipe.
        root: The project's root.
    """
    records = records_of(recipe, root)
    if records is None:
        return line
    name, description, *_ = line.strip("| ").split(" | ")
    scores_by_test_set = []
    for _, _, scores in by_test_set(score_frame(records)):
        scores_by_test_set.append(list(select_metric(scores, "bleu").itertuples()))
    largest = max(scores_by_test_set, key=lambda scores: scores[0].lines)
    baseline = largest[0]
    result = f"{baseline.row_name} {baseline.score_text}"
    compared = [score for score in largest if not isnan(score.difference)]
    if compared:
        best = max(compared, key=lambda score: score.difference)
        # `+1.2 p < 0.001` is cut before the p-value.
        difference, _, _ = best.difference_text.partition(" p")
        result += f"; {best.row_name} {best.why_untested or difference}"
    link = "above" if recipe == DEFAULT else f"[table](reports/{recipe}/table.md)"
    return _row(name, description, result, _training_minutes(records.runs), link)


def _training_minutes(runs: pd.DataFrame) -> str:
    """Return the number of trainings, if there are several, and their mean time in minutes."""
    trainings = one_row_per_training(runs).drop_duplicates("training_sha256")
    minutes = trainings.train_seconds.mean() / 60
    if isnan(minutes):
        return DASH
    rounded = f"{minutes:.0f}" if minutes >= 1 else "< 1"
    if len(trainings) == 1:
        return rounded
    return f"{len(trainings)} × {rounded}"


if __name__ == "__main__":
    readme_path = Path("README.md")
    filled = fill_tables(readme_path.read_text(encoding="utf-8"))
    readme_path.write_text(filled, encoding="utf-8", newline="\n")
