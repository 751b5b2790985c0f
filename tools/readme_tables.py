"""Fills the tables of README.md from recipes/ and reports/: `python -m tools.readme_tables`.

"On real text" is made of the published numbers of the recipes that name a system here. Of
"Recipes" the cells after the second one are.
"""

import re
from collections.abc import Iterator
from itertools import chain
from math import isnan, nan
from pathlib import Path

from bleuprint.config.experiment import load
from bleuprint.config.published import Published
from bleuprint.report import frame
from bleuprint.report.grid import NONE
from bleuprint.report.system_results import SystemResult, system_results

# In "On real text", in this order.
REAL = ("multi30k", "multi30k-french", "course-multi30k", "table2-multi30k")
# Whose numbers are in reports/ itself.
DEFAULT = "phrasebook"
_TEXT_HEAD = (
    "| test set | system | published | here | difference | minutes | |",
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


def results_of(recipe: str, root: Path) -> list[SystemResult]:
    """Empty if there is no report."""
    path = report_of(recipe, root)
    return system_results(frame.read(path, path.parent)) if path.exists() else []


def published(recipe: str, root: Path) -> Iterator[str]:
    """Lines of the table: the published numbers of a recipe beside those of its report."""
    places = {(each.system, each.corpus, each.test): each for each in results_of(recipe, root)}
    for number in load(root / "recipes" / f"{recipe}.yaml").published:
        if result := places.get((number.system or "", number.corpus, number.test)):
            yield from _published(recipe, number, result)


def _published(recipe: str, number: Published, result: SystemResult) -> Iterator[str]:
    """A line for BLEU, counted as it was published, and one for perplexity."""
    measure = "bleu" if number.scored == "sacrebleu" else number.scored
    both = {
        measure: (f"BLEU ({number.scored})", number.bleu),
        "perplexity": ("perplexity", number.perplexity),
    }
    for key, (name, printed) in both.items():
        score = result.score(key)
        if score and printed is not None:
            form = ".2f" if key == "perplexity" else ".1f"
            cells = (
                f"{number.corpus} {number.test}, {name}",
                f"{number.name}, {number.source}; here `{result.system}`",
                f"{printed:{form}}",
                f"{score.mean:{form}}" if key == "perplexity" else str(score),
                f"{score.mean - printed:+{form}}",
                _minutes([result]),
                f"[table](reports/{recipe}/table.md)",
            )
            yield f"| {' | '.join(cells)} |"


def _recipe(line: re.Match[str], root: Path) -> str:
    recipe, cells = line[1], line[0].strip("| ").split(" | ")
    if not (results := results_of(recipe, root)):
        return line[0]
    first = max(results, key=lambda each: each.first.lines)  # of the largest test set
    same = [each for each in results if (each.task, each.test) == (first.task, first.test)]
    others = {each.label: each.difference for each in same if each.difference}
    text = f"{first.label} {first.bleu}"
    if others:
        best = max(others, key=lambda name: others[name].value)
        below = next(each.floor for each in same if each.label == best)
        text += f"; {best} {below or others[best].short}"
    link = "above" if recipe == DEFAULT else f"[table](reports/{recipe}/table.md)"
    return f"| {' | '.join((*cells[:2], text, _minutes(results), link))} |"


def _minutes(results: list[SystemResult]) -> str:
    """The mean over trainings, each once."""
    seconds = {
        sha: took
        for each in results
        if not each.outside
        for sha, took in zip(each.seeds.training_sha256, each.seeds.train_seconds, strict=True)
    }
    known = [took for took in seconds.values() if not isnan(took)]
    count = f"{len(seconds)} × " if len(seconds) > 1 else ""
    minutes = sum(known) / len(known) / 60 if known else nan
    return f"{count}{minutes:.0f}" if minutes >= 1 else f"{count}< 1" if known else NONE


if __name__ == "__main__":
    path = Path("README.md")
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
