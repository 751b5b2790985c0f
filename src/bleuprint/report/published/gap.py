"""The gap between a score of ours and a published one, split into measured steps.

Starting from our score by sacreBLEU, the choices behind the published number are adopted one by
one: the scoring, the averaging of checkpoints, the search. The rest is called unexplained: other
data, other settings, another program, and what was not measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.config.system import System
from bleuprint.report.published.variants import (
    AVERAGE,
    SEARCH,
    Variant,
    Variants,
    Varied,
    adopted,
    own,
    path_of,
    variants_for,
)
from bleuprint.report.system_results import PLACE

# Digits of BLEU; the steps are rounded before they are added, so that the sums are right.
SHOWN = 2


@dataclass(frozen=True)
class Step:
    """One choice adopted from the published number: the BLEU that it adds, None if not measured.

    `score` is that after the step; `note` says what was compared, or why nothing was.
    """

    what: str
    bleu: float | None
    score: float
    note: str


@dataclass(frozen=True)
class Gap:
    """From `ours`, a mean over `seeds`, by `steps` to the published number.

    `ours`, the BLEU of all steps and `unexplained` add up to `published.bleu`.
    """

    published: Published
    ours: float
    seeds: int
    steps: tuple[Step, ...]
    unexplained: float

    @property
    def whole(self) -> float:
        """The difference to be explained."""
        return round(self.published.bleu - self.ours, SHOWN)

    @property
    def explained(self) -> float | None:
        """The sum of the steps; None if none was measured."""
        sizes = [step.bleu for step in self.steps if step.bleu is not None]
        return round(sum(sizes), SHOWN) if sizes else None


@dataclass(frozen=True)
class _Ours:
    """The system of a published number as it is, and the scores of its variants by seed."""

    number: Published
    base: Variant
    seeds: Sequence[Mapping[Variant, Mapping[str, float]]]

    def score(self, variant: Variant, way: str) -> float | None:
        """The mean over seeds; None if it was not measured for all."""
        scores = [seed[variant][way] for seed in self.seeds if way in seed.get(variant, ())]
        return fmean(scores) if len(scores) == len(self.seeds) else None


def cells_of(settings: Settings) -> list[Cell]:
    """The cells that published numbers name."""
    pairs = dict.fromkeys((n.system, n.corpus) for n in settings.published if n.system is not None)
    return [Cell(system, corpus, seed) for system, corpus in pairs for seed in settings.seeds]


def measured(settings: Settings, records: pd.DataFrame, root: Path = Path()) -> list[Gap]:
    """The gaps that were measured, from the variants below `root`."""
    paths = {cell: path_of(cell, root) for cell in cells_of(settings)}
    variants = {cell: Variants.read(path) for cell, path in paths.items() if path.exists()}
    return gaps(settings, records, variants)


def gaps(settings: Settings, records: pd.DataFrame, variants: Mapping[Cell, Variants]) -> list[Gap]:
    """The gap to each published number that names a system, in their order.

    Left out are those whose variants lack a seed, or are of other trainings, translations or scores
    than the records: the system was trained or translated again since. A number of which
    no other average or search is known needs no variants: its scores are in the records.
    """
    result = []
    for number in settings.published:
        if number.system is None:
            continue
        system = settings.system_on(number.system, number.corpus)
        place = [number.system, number.corpus, number.test]
        of_number = records[(records[PLACE] == place).all(axis=1)]
        seeds = [_scores(number, system, each, variants) for each in of_number.itertuples()]
        known = [scores for scores in seeds if scores is not None]
        if len(known) == len(seeds):
            result.append(_gap(_Ours(number, own(system), known)))
    return result


def _scores(
    number: Published, system: System, record: Any, variants: Mapping[Cell, Variants]
) -> dict[Variant, Mapping[str, float]] | None:
    """The scores of the variants of a seed; None if they are not those of its record."""
    base = own(system)
    scores = {"sacrebleu": record.bleu, **{each["name"]: each["score"] for each in record.variants}}
    if set(variants_for(number, system)) == {base}:
        return {base: scores}
    measured = variants.get(Cell(record.system, record.corpus, record.seed))
    recorded = Varied(record.test, base, scores, record.hypotheses_sha256)
    if (
        measured is None
        or measured.training != record.training_sha256
        or recorded not in measured.varied
    ):
        return None
    return {each.variant: each.scores for each in measured.varied if each.test == record.test}


def _gap(ours: _Ours) -> Gap:
    number, base = ours.number, ours.base
    first = ours.score(base, "sacrebleu")
    assert first is not None, "the system as it is was scored"
    steps: list[Step] = []

    def add(what: str, after: float | None, note: str) -> bool:
        """Add a step to the score `after`; whether it was measured."""
        before = steps[-1].score if steps else round(first, SHOWN)
        score = before if after is None else round(after, SHOWN)
        bleu = None if after is None else round(score - before, SHOWN)
        steps.append(Step(what, bleu, score, note))
        return after is not None

    way = number.scored if add("scoring", *_scoring(ours)) else "sacrebleu"
    averaged = add("averaging", *_adopted(ours, base, AVERAGE, way))
    variant = adopted(number, base, AVERAGE) if averaged else base
    add("beam and length penalty", *_adopted(ours, variant, SEARCH, way))
    unexplained = round(number.bleu - steps[-1].score, SHOWN)
    return Gap(number, round(first, SHOWN), len(ours.seeds), tuple(steps), unexplained)


def _scoring(ours: _Ours) -> tuple[float | None, str]:
    way = ours.number.scored
    if way == "otherwise":
        return None, "how it was scored is not known, or nothing here scores so"
    score = ours.score(ours.base, way)
    if way == "sacrebleu":
        return score, "both are sacreBLEU's"
    if score is None:
        return None, f"{way}: not computed for this language"
    return score, f"sacreBLEU's for ours, {way} for theirs"


def _adopted(
    ours: _Ours, before: Variant, settings: Sequence[str], way: str
) -> tuple[float | None, str]:
    """The score after adopting these settings of the publication, and a note on both."""
    theirs, mine = (_words(each, settings) for each in (ours.number, ours.base))
    if not theirs:
        return None, "not known of theirs"
    after = adopted(ours.number, before, settings)
    score = ours.score(after, way)
    if after == before:
        return score, f"both {theirs}"
    missing = ": too few checkpoints kept, or published has changed: bleuprint gap"
    return score, f"ours {mine}; theirs {theirs}{missing if score is None else ''}"


def _words(translated: Variant | Published, settings: Sequence[str]) -> str:
    """The settings as far as they are known: beam 4, gnmt alpha 0.6; or average last 5."""
    known = {name: value for name in settings if (value := getattr(translated, name)) is not None}
    if average := known.pop("average", None):
        known = {f"average {name}": value for name, value in average.given.items()}
    if penalty := known.pop("length_penalty", None):
        known[f"{penalty.kind} alpha"] = penalty.alpha
    return ", ".join(f"{name} {value}" for name, value in known.items())
