"""Write the list of recipes and the pages of their results as Markdown, for conf.py."""

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from bleuprint.report.frame import read_without_costs
from bleuprint.report.page.chart import chart, legend, line_styles
from bleuprint.report.page.curves import mean_over_seeds
from bleuprint.report.score_frame import bleu_rows, score_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
# The recipe whose results are in reports/ itself; its HTML report is in reports/phrasebook.
DEFAULT = "phrasebook"
# A row of README's table of recipes: the cell with the names in backquotes, and the description.
_RECIPE_ROW = re.compile(r"^\| (`.*?`) \| (.*?) \|", re.MULTILINE)


def results_folder(recipe: str) -> Path:
    """Return the folder for a recipe's committed results; it need not exist."""
    reports = ROOT / "reports"
    return reports if recipe == DEFAULT else reports / recipe


def recipes() -> str:
    """Return README's list of recipes with results, and the navigation to their pages.

    Returns:
        A Markdown table. Each recipe has a link, the BLEU of its first row and the training time.
    """
    _, _, after_heading = README.read_text("utf-8").partition("\n## Recipes\n")
    section, _, _ = after_heading.partition("\n## ")
    rows = ""
    pages = ""
    for names, description in _RECIPE_ROW.findall(section):
        # A row may list several recipes. Every second part of its cell is between backquotes.
        for name in names.split("`")[1::2]:
            rows += _recipe_row(name, description)
            table = results_folder(name) / "table.md"
            if table.exists():
                pages += f"{name} </{table.relative_to(ROOT).with_suffix('')}>\n"
    head = "| recipe | what it is | BLEU of its first row | training |\n|---|---|---|---|\n"
    navigation = f"```{{toctree}}\n:hidden:\n:caption: Results of recipes\n\n{pages}```\n"
    return f"{head}{rows}\n{navigation}"


def _recipe_row(name: str, description: str) -> str:
    """Return a recipe's row of the table.

    Args:
        name: The name of the recipe.
        description: What README says about it.
    """
    table = results_folder(name) / "table.md"
    if table.exists():
        link = str(table.relative_to(ROOT))
        score = _first_bleu(table.parent)
        training_time = _training_time(table.parent)
    else:
        link = f"recipes/{name}.yaml"
        score = _reason_without_results(name)
        training_time = ""
    # README is in the root, the page with the table in docs/.
    description = description.replace("](", "](../")
    return f"| [{name}](../{link}) | {description} | {score} | {training_time} |\n"


def _reason_without_results(recipe: str) -> str:
    """Return why no results of a recipe are committed."""
    if recipe == "own":
        return "your text"
    if "GPU" in about(ROOT / "recipes" / f"{recipe}.yaml"):
        return "needs a GPU"
    return "not run yet"


def page(table: Path, text: str) -> str:
    """Return the page of a recipe's results: how to reproduce them, scores, curves and settings.

    Args:
        table: The path of the recipe's table.md in reports/.
        text: The text of table.md, which begins with a title.
    """
    results = table.parent
    name = DEFAULT if results.name == "reports" else results.name
    title, _, tables = text.partition("\n")
    # The HTML report of the default recipe is in a folder of its own.
    html_report = results / "index.html"
    if name == DEFAULT:
        html_report = results / DEFAULT / "index.html"
    link = ""
    if html_report.exists():
        address = html_report.relative_to(results)
        link = f"\n[The whole page]({address}): curves, sentences, what broke.\n"
    costs = pd.read_csv(results / "costs.csv", usecols=["commit"])
    commits = ", ".join(costs.commit.str[:8].unique())
    return f"""{title}

{about(ROOT / "recipes" / f"{name}.yaml")}

```
make recipe NAME={name} && make reproduce
```
{link}
The tables are of commit {commits}; training took {_training_time(results)}. The settings at
the end are today's.
{tables}
## Validation loss

{_loss_chart(results)}

## Settings

```{{literalinclude}} /recipes/{name}.yaml
:language: yaml
```
"""


def about(recipe: Path) -> str:
    """Return what the comment at the top of a recipe says, as Markdown."""
    head, _, _ = recipe.read_text("utf-8").partition("\n\n")
    lines = []
    for line in head.splitlines():
        # Editors read the address of the settings' schema from one of the comments.
        if line.startswith("#") and "yaml-language-server" not in line:
            lines.append(line[1:].strip())
    # Markdown would take <unk> for HTML.
    return "\n".join(lines).replace("<", "\\<")


def _first_bleu(results: Path) -> str:
    """Return the BLEU of the first system on the first test set, such as `base: 34.1 ± 0.2`."""
    scores = score_frame(read_without_costs(results / "results.json"))
    first_row = bleu_rows(scores)[0]
    return f"{first_row.system}: {first_row.score_text}"


def _training_time(results: Path) -> str:
    """Return the number and the mean duration of the training runs, such as `3 × 12 minutes`."""
    minutes = _training_runs(results).train_seconds / 60
    mean_minutes = minutes.mean()
    decimals = 0 if mean_minutes >= 1 else 1
    text = f"{mean_minutes:.{decimals}f} minutes"
    if len(minutes) > 1:
        text = f"{len(minutes)} × {text}"
    return text


def _training_runs(results: Path) -> pd.DataFrame:
    """Return the costs of each training run, once for rows that share it.

    Rows that differ only in averaging share a training run; the first one is kept.
    """
    return pd.read_csv(results / "costs.csv").drop_duplicates("training_sha256")


def _loss_chart(results: Path) -> str:
    """Draw the validation loss of each system and corpus that was trained, averaged over seeds.

    Returns:
        An HTML element without line ends, which Markdown reads as one block of HTML.
    """
    runs = _training_runs(results)[["system", "corpus", "seed"]]
    points = runs.merge(pd.read_csv(results / "validation.csv"))
    has_one_corpus = points.corpus.nunique() == 1
    curves = {}
    for (system, corpus), points_of_seeds in points.groupby(["system", "corpus"], sort=False):
        name = system if has_one_corpus else f"{system}, {corpus}"
        seed_curves = []
        for _, points_of_seed in points_of_seeds.groupby("seed"):
            seed_curves.append(points_of_seed[["update", "loss"]].to_numpy())
        curves[name] = mean_over_seeds(seed_curves)
    styles = line_styles(list(curves))

    def draw(axes: "Axes") -> None:
        for name, curve in curves.items():
            axes.plot(curve.x, curve.y, **styles[name])
        axes.set_xlabel("Update")
        axes.set_ylabel("Nats per token")

    svg = chart("loss", "Validation loss by update", draw)
    element = f'<figure class="curves">{svg}<ul>{_legend_items(list(curves))}</ul></figure>'
    return " ".join(element.split())


def _legend_items(names: list[str]) -> str:
    """Return the items of a chart's legend as HTML: a piece of each line, and its name."""
    items = ""
    for entry in legend(names):
        items += (
            '<li><svg viewBox="0 0 28 8"><path d="M0 4H28" '
            f'style="stroke: {entry["color"]}" stroke-width="2.5" '
            f'stroke-dasharray="{entry["dashes"]}"/></svg> {escape(entry["name"])}</li>'
        )
    return items
