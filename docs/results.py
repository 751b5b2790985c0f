"""The recipes and the pages of their results, as Markdown; conf.py puts them into the site."""

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
DEFAULT = "phrasebook"  # its results are in reports/ itself, its page in reports/phrasebook


def folder(recipe: str) -> Path:
    """Return where the results of a recipe are committed; the folder need not exist."""
    return ROOT / "reports" / ("" if recipe == DEFAULT else recipe)


def recipes() -> str:
    """Return README's list of recipes, with the first BLEU of each, a link and the time it took."""
    section = README.read_text("utf-8").partition("\n## Recipes\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| (`.*?`) \| (.*?) \|", section, re.MULTILINE)
    rows, pages = "", ""
    for name, text in ((name, text) for cell, text in listed for name in cell.split("`")[1::2]):
        where, score, took = f"recipes/{name}.yaml", _no_result(name), ""
        if (results := folder(name)).joinpath("table.md").exists():
            where = f"{results.relative_to(ROOT)}/table.md"
            score, took = _first_bleu(results), _minutes(results)
            pages += f"{name} </{where.removesuffix('.md')}>\n"
        rows += f"| [{name}](../{where}) | {text.replace('](', '](../')} | {score} | {took} |\n"
    table = f"| recipe | what it is | BLEU of its first row | training |\n|---|---|---|---|\n{rows}"
    return f"{table}\n```{{toctree}}\n:hidden:\n:caption: Results of recipes\n\n{pages}```\n"


def _no_result(name: str) -> str:
    if name == "own":
        return "your text"
    return "needs a GPU" if "GPU" in about(ROOT / "recipes" / f"{name}.yaml") else "not run yet"


def page(table: Path, text: str) -> str:
    """Return the page of a recipe's results: how to make them, its table.md, curves, settings."""
    name = table.parent.name if table.parent.name != "reports" else DEFAULT
    recipe, results = ROOT / "recipes" / f"{name}.yaml", table.parent
    title, _, tables = text.partition("\n")
    whole = results / (DEFAULT if name == DEFAULT else "") / "index.html"
    link = f"\n[The whole page]({whole.relative_to(results)}): curves, sentences, what broke.\n"
    commits = pd.read_csv(results / "costs.csv", usecols=["commit"]).commit.str[:8].unique()
    return f"""{title}

{about(recipe)}

```
make recipe NAME={name} && make reproduce
```
{link if whole.exists() else ""}
The tables are of commit {", ".join(commits)}; training took {_minutes(results)}. The settings at
the end are today's.
{tables}
## Validation loss

{_curves(results)}

## Settings

```{{literalinclude}} /recipes/{name}.yaml
:language: yaml
```
"""


def about(recipe: Path) -> str:
    """Return what the comment at the top of a recipe says."""
    lines = recipe.read_text("utf-8").partition("\n\n")[0].splitlines()
    comment = [line[1:].strip() for line in lines if line.startswith("#")]
    text = "\n".join(line for line in comment if "yaml-language-server" not in line)
    return text.replace("<", "\\<")  # <unk> is no HTML


def _first_bleu(results: Path) -> str:
    """Return mean and deviation over seeds, or the interval, of the first system and test set."""
    first = bleu_rows(score_frame(read_without_costs(results / "results.json")))[0]
    return f"{first.system}: {first.score_text}"


def _minutes(results: Path) -> str:
    """Return the number and the mean duration of the trainings."""
    minutes = _trainings(results).train_seconds / 60
    mean = f"{minutes.mean():.{0 if minutes.mean() >= 1 else 1}f} minutes"
    return mean if len(minutes) == 1 else f"{len(minutes)} × {mean}"


def _trainings(results: Path) -> pd.DataFrame:
    """Keep the first of rows that share a training, as rows that differ in averaging do."""
    return pd.read_csv(results / "costs.csv").drop_duplicates("training_sha256")


def _curves(results: Path) -> str:
    """Draw a line for each system and corpus that was trained, the mean over its seeds."""
    cells = _trainings(results)[["system", "corpus", "seed"]]
    points = cells.merge(pd.read_csv(results / "validation.csv"))
    lines = {}
    for (system, corpus), of_seeds in points.groupby(["system", "corpus"], sort=False):
        name = system if points.corpus.nunique() == 1 else f"{system}, {corpus}"
        tables = [seed[["update", "loss"]].to_numpy() for _, seed in of_seeds.groupby("seed")]
        lines[name] = mean_over_seeds(tables)
    styles = line_styles(list(lines))

    def draw(axes: "Axes") -> None:
        for name, line in lines.items():
            axes.plot(line.x, line.y, **styles[name])
        axes.set_xlabel("Update")
        axes.set_ylabel("Nats per token")

    svg = chart("loss", "Validation loss by update", draw)
    keys = "".join(
        f'<li><svg viewBox="0 0 28 8"><path d="M0 4H28" style="stroke: {key["color"]}" '
        f'stroke-width="2.5" stroke-dasharray="{key["dashes"]}"/></svg> {escape(key["name"])}</li>'
        for key in legend(list(lines))
    )
    # a line without line ends is one block of HTML
    return " ".join(f'<figure class="curves">{svg}<ul>{keys}</ul></figure>'.split())
