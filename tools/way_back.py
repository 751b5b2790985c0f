"""The way back from numbers of README.md and docs/ to the runs that made them.

    python -m tools.way_back [--numbers 10] [--seed 1]

draws numbers at random from paragraphs and tables that name a recipe with a committed report, and
prints for each its place, the entry of results.json, the commit, the minutes that its trainings
took, and the commands that make it again. Where several entries are printed alike, that of a system
which is named beside the number comes first, then BLEU. Exits with 1 if a number is in no report
that is named there.
"""

import argparse
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bleuprint.report import frame
from tools.readme_tables import DEFAULT, published, report_of

_NUMBER = re.compile(r"(?<![\w.,/-])[+-]?\d+\.\d+(?![\w.%]| GB)")
_CODE = re.compile(r"(?ms)^```.*?^```$|`[^`\n]*`|\]\([^)]*\)")


class Place(NamedTuple):
    """A number in a text, its paragraph, and the recipes that this names."""

    path: Path
    line: int
    number: str
    recipes: tuple[str, ...]
    around: str


class Figure(NamedTuple):
    """A number of a report, as tables print it."""

    text: str
    recipe: str
    system: str
    entry: str
    commit: str
    minutes: float

    def fit(self, place: Place) -> tuple[bool, bool]:
        """How well it explains a number that it equals."""
        named = re.search(rf"(?<![\w-]){re.escape(self.system)}(?![\w-])", place.around)
        return bool(self.system and named), "bleu" in self.entry or "published" in self.entry


def figures(recipe: str, root: Path) -> Iterator[Figure]:
    """Scores, intervals, differences, means and deviations over seeds, perplexities, published."""
    records = frame.read(report_of(recipe, root), report_of(recipe, root).parent)
    rows = records.to_frame()
    rows = rows[(rows.group == "") & rows.about.isna()]
    for (system, corpus, test, metric), of in rows.groupby(["system", "corpus", "test", "metric"]):
        cost = of.train_seconds.sum() / 60
        commit = ", ".join(sorted(set(of.commit.dropna().str[:10])))
        digits = 2 if "perplexity" in metric else 1
        signed = {"mean difference": of.difference.mean()}
        plain = {"mean": of.value.mean(), "standard deviation": of.value.std()}
        for row in of.itertuples():
            plain |= {
                f"{name}, seed {row.seed}": getattr(row, name)
                for name in ("value", "ci_low", "ci_high")
            }
        for sign, numbers in (("+", signed), ("", plain)):
            for name, number in numbers.items():
                if pd.notna(number):
                    entry = f"{system}, {corpus}, {test}: {metric}, {name}"
                    yield Figure(f"{number:{sign}.{digits}f}", recipe, system, entry, commit, cost)
    validated = pd.read_csv(report_of(recipe, root).with_name("validation.csv"))
    for row in validated.itertuples():
        entry = f"validation.csv, {row.system}, {row.corpus}, update {row.update}: perplexity"
        yield Figure(f"{np.exp(row.loss):.2f}", recipe, row.system, entry, commit, cost)
    for line in published(recipe, root):
        _, _, printed, _, difference, *_ = line.strip("| ").split(" | ")
        for name, text in (("published", printed), ("difference from published", difference)):
            yield Figure(text, recipe, "", f"recipes/{recipe}.yaml: {name}", commit, cost)


def places(path: Path, known: list[str]) -> Iterator[Place]:
    """The numbers of paragraphs, and of lines of tables, that name a recipe with a report."""
    text = path.read_text(encoding="utf-8")
    line = 1
    for part in re.split(r"(\n\n)", text):
        table = part.lstrip().startswith("|")
        for offset, piece in enumerate(part.split("\n") if table else [part]):
            named = tuple(name for name in known if re.search(rf"(?<![\w-]){name}(?![\w-])", piece))
            hidden = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), piece)
            for found in _NUMBER.finditer(hidden) if named else ():
                at = line + offset + hidden.count("\n", 0, found.start())
                yield Place(path, at, found[0], named, piece)
        line += part.count("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--numbers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    reports = [path.parent.name for path in sorted(root.glob("reports/*/results.json"))]
    texts = [root / "README.md", *sorted(root.glob("docs/*.md"))]
    found = [place for text in texts for place in places(text, [DEFAULT, *reports])]
    drawn = random.Random(arguments.seed).sample(found, min(arguments.numbers, len(found)))
    print(f"{len(found)} numbers beside the name of a recipe; {len(drawn)} of them:")
    lost = [place for place in drawn if not shown(place, root)]
    if lost:
        sys.exit(f"{len(lost)} of {len(drawn)} are in no report that is named beside them")


def shown(place: Place, root: Path) -> bool:
    """Print where a number comes from; whether it was found."""
    print(f"\n{place.path.relative_to(root)}:{place.line}: {place.number}")
    known = (each for recipe in place.recipes for each in figures(recipe, root))
    alike = [each for each in known if each.text == place.number]
    figure = max(alike, key=lambda each: each.fit(place), default=None)
    if figure is None:
        print(f"  not in the reports of {', '.join(place.recipes)}")
        return False
    others = f" ({len(alike) - 1} more are printed alike)" if alike[1:] else ""
    print(f"  {report_of(figure.recipe, root).relative_to(root)}: {figure.entry}{others}")
    print(f"  commit {figure.commit}; trained in {figure.minutes:.0f} minutes")
    print(f"  git checkout {figure.commit} && make recipe NAME={figure.recipe} && make reproduce")
    return True


if __name__ == "__main__":
    main()
