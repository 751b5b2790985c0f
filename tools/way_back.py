"""Leads numbers of README.md and docs/ back to the runs that made them.

    python -m tools.way_back [--numbers 10] [--seed 1]

It draws numbers at random from paragraphs and tables that name a recipe with a committed report.
For each it prints where it stands, the entry of results.json, the commit, the minutes that its
trainings took, and the commands that make it again. If several entries are printed alike, an entry
of a system that is named beside the number comes first, then BLEU. Exits with 1 if a number is in
none of the reports that are named there.
"""

import argparse
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bleuprint.report import frame
from tools.readme_tables import DEFAULT, published_rows, report_of

# Numbers with a decimal point that are no percentage, size, version or part of a name.
_NUMBER = re.compile(r"(?<![\w.,/-])[+-]?\d+\.\d+(?![\w.%]| GB)")
# Blocks of code, code in a line, and addresses of links.
_CODE = re.compile(r"(?ms)^```.*?^```$|`[^`\n]*`|\]\([^)]*\)")


@dataclass(frozen=True)
class QuotedNumber:
    """A number in a text.

    Attributes:
        path: The file of the text.
        line: The number of its line, from 1.
        number: The number as printed.
        recipes: The recipes that its paragraph, or row of a table, names.
        context: The paragraph or row.
    """

    path: Path
    line: int
    number: str
    recipes: tuple[str, ...]
    context: str


@dataclass(frozen=True)
class Figure:
    """A number of a report, as tables print it.

    Attributes:
        text: The number as printed.
        recipe: The recipe of the report.
        system: The system; "" for published numbers.
        entry: What the number is, in words.
        commit: The commits of the runs behind it, shortened.
        minutes: How long their trainings took together.
    """

    text: str
    recipe: str
    system: str
    entry: str
    commit: str
    minutes: float

    def fit(self, quoted: QuotedNumber) -> tuple[bool, bool]:
        """Return how well it explains a number printed alike: greater is better."""
        is_system_named = bool(self.system) and _names(quoted.context, self.system)
        is_main_figure = "bleu" in self.entry or "published" in self.entry
        return is_system_named, is_main_figure


def main() -> None:
    """Draw numbers, and print where each comes from."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--numbers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    recipes = [DEFAULT]
    recipes += [path.parent.name for path in sorted(root.glob("reports/*/results.json"))]
    quoted_numbers: list[QuotedNumber] = []
    for path in [root / "README.md", *sorted(root.glob("docs/*.md"))]:
        quoted_numbers += find_numbers(path, recipes)
    count = min(arguments.numbers, len(quoted_numbers))
    sample = random.Random(arguments.seed).sample(quoted_numbers, count)
    print(f"{len(quoted_numbers)} numbers beside the name of a recipe; {count} of them:")
    unexplained = 0
    for quoted in sample:
        if not explain(quoted, root):
            unexplained += 1
    if unexplained:
        sys.exit(f"{unexplained} of {count} are in no report that is named beside them")


def find_numbers(path: Path, recipes: list[str]) -> Iterator[QuotedNumber]:
    """Yield the numbers in a Markdown file that stand next to the name of a recipe.

    Next to means: in the same paragraph, or in the same row of a table.

    Args:
        path: The Markdown file.
        recipes: The recipes with a report.
    """
    text = path.read_text(encoding="utf-8")
    first_line = 1
    # The parentheses keep the separators in the result, so that all lines are counted.
    for part in re.split(r"(\n\n)", text):
        is_table = part.lstrip().startswith("|")
        pieces = part.split("\n") if is_table else [part]
        for row, piece in enumerate(pieces):
            named_recipes = tuple(recipe for recipe in recipes if _names(piece, recipe))
            if not named_recipes:
                continue
            # Code may contain other numbers. Spaces take its place, so that positions stay the
            # same.
            prose = _CODE.sub(_blank, piece)
            for match in _NUMBER.finditer(prose):
                line = first_line + row + prose.count("\n", 0, match.start())
                yield QuotedNumber(path, line, match[0], named_recipes, piece)
        first_line += part.count("\n")


def _names(text: str, name: str) -> bool:
    """Return whether a text contains a name, not as a part of a longer one."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _blank(match: re.Match[str]) -> str:
    """Return spaces and line ends in place of a match."""
    return re.sub(r"[^\n]", " ", match[0])


def explain(quoted: QuotedNumber, root: Path) -> bool:
    """Print which entry of a report a quoted number is, and how to compute it again.

    Args:
        quoted: The number, and the recipes that are named next to it.
        root: The project's folder.

    Returns:
        Whether the report of one of these recipes contains the number.
    """
    print(f"\n{quoted.path.relative_to(root)}:{quoted.line}: {quoted.number}")
    candidates = []
    for recipe in quoted.recipes:
        for figure in figures_of(recipe, root):
            if figure.text == quoted.number:
                candidates.append(figure)
    if not candidates:
        print(f"  not in the reports of {', '.join(quoted.recipes)}")
        return False
    best = max(candidates, key=lambda figure: figure.fit(quoted))
    other_figures = (
        f" ({len(candidates) - 1} more are printed alike)" if len(candidates) > 1 else ""
    )
    print(f"  {report_of(best.recipe, root).relative_to(root)}: {best.entry}{other_figures}")
    print(f"  commit {best.commit}; trained in {best.minutes:.0f} minutes")
    print(f"  git checkout {best.commit} && make recipe NAME={best.recipe} && make reproduce")
    return True


def figures_of(recipe: str, root: Path) -> Iterator[Figure]:
    """Yield all numbers of a recipe's report, in the form in which texts quote them.

    These are scores, the perplexities on the validation set during training, and the published
    scores that the recipe compares with.

    Args:
        recipe: The name of the recipe.
        root: The folder of the project.
    """
    report = report_of(recipe, root)
    rows = frame.read(report, report.parent).to_frame()
    rows = rows[(rows.group == "") & rows.about.isna()]
    commit = ""
    minutes = 0.0
    for group_key, runs in rows.groupby(["system", "corpus", "test", "metric"]):
        system, corpus, test, metric = group_key
        commit = ", ".join(sorted(set(runs.commit.dropna().str[:10])))
        minutes = runs.train_seconds.sum() / 60
        for name, text in _printed_scores(runs, metric).items():
            entry = f"{system}, {corpus}, {test}: {metric}, {name}"
            yield Figure(text, recipe, system, entry, commit, minutes)
    # Validation and published numbers have no commit and no time of their own: they get those of
    # the last runs above.
    for row in pd.read_csv(report.with_name("validation.csv")).itertuples():
        entry = f"validation.csv, {row.system}, {row.corpus}, update {row.update}: perplexity"
        yield Figure(f"{np.exp(row.loss):.2f}", recipe, row.system, entry, commit, minutes)
    for line in published_rows(recipe, root):
        _, _, published, _, difference, *_ = line.strip("| ").split(" | ")
        source = f"recipes/{recipe}.yaml"
        yield Figure(published, recipe, "", f"{source}: published", commit, minutes)
        difference_entry = f"{source}: difference from published"
        yield Figure(difference, recipe, "", difference_entry, commit, minutes)


def _printed_scores(runs: pd.DataFrame, metric: str) -> dict[str, str]:
    """Return the scores of a system on a test set, rounded as in tables, by what they are.

    An example is {"mean": "27.3", "ci_low, seed 1": "26.1", "mean difference": "+0.4"}.

    Args:
        runs: The rows of the system's runs, one for each seed.
        metric: The metric.
    """
    digits = 2 if "perplexity" in metric else 1
    numbers = {"mean": runs.value.mean(), "standard deviation": runs.value.std()}
    for run in runs.itertuples():
        numbers[f"value, seed {run.seed}"] = run.value
        numbers[f"ci_low, seed {run.seed}"] = run.ci_low
        numbers[f"ci_high, seed {run.seed}"] = run.ci_high
    printed = {}
    mean_difference = runs.difference.mean()
    if pd.notna(mean_difference):
        printed["mean difference"] = f"{mean_difference:+.{digits}f}"
    for name, number in numbers.items():
        if pd.notna(number):
            printed[name] = f"{number:.{digits}f}"
    return printed


if __name__ == "__main__":
    main()
