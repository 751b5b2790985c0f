"""The gap between a score of ours and a published one, split into measured steps.

Starting from our score by sacreBLEU, the choices behind the published number are adopted one by
one: the scoring, the averaging of checkpoints, the search, the size of an update. The rest is
called unexplained: other data, other settings, another program, and what was not measured.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.config.system import System
from bleuprint.report.published.variants import (
    Variant,
    Variants,
    own,
    path_of,
    searched,
    single_changes,
)

# Digits of BLEU; the steps are rounded before they are added, so that the sums are right.
SHOWN = 2

# Settings in which two systems may differ that are compared for the size of their updates.
_WITH_TOKENS = (
    *("tokens_per_update", "max_tokens", "max_updates", "max_epochs"),
    *("validate_every", "checkpoint_every"),
)


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
class Change:
    """The system with one thing changed: its BLEU, and the difference from the system as it is.

    None if it was not measured; `own` marks the value that the system has.
    """

    what: str
    to: str
    bleu: float | None
    difference: float | None
    own: bool


@dataclass(frozen=True)
class Gap:
    """From `ours`, a mean over `seeds`, by `steps` to the published number.

    `ours`, the BLEU of all steps and `unexplained` add up to `published.bleu`. `changes` are of the
    average, the beam and the length penalty.
    """

    published: Published
    ours: float
    seeds: int
    steps: tuple[Step, ...]
    unexplained: float
    changes: tuple[Change, ...]

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
    """The system of a published number, and its variants, one entry a seed."""

    number: Published
    system: System
    variants: Sequence[Variants]

    def score(self, variant: Variant, way: str) -> float | None:
        """The mean over seeds; None if it was not measured for all."""
        measured = [seed.find(self.number.test, variant) for seed in self.variants]
        scores = [varied.scores[way] for varied in measured if varied and way in varied.scores]
        return fmean(scores) if len(scores) == len(measured) else None

    @property
    def headline(self) -> float:
        """The score of the system as it is, by sacreBLEU."""
        score = self.score(own(self.system), "sacrebleu")
        assert score is not None, "the system as it is was scored"
        return score


def cells_of(settings: Settings) -> list[Cell]:
    """The cells that published numbers name."""
    pairs = dict.fromkeys((n.system, n.corpus) for n in settings.published if n.system is not None)
    return [Cell(system, corpus, seed) for system, corpus in pairs for seed in settings.seeds]


def measured(settings: Settings, records: pd.DataFrame, root: Path = Path()) -> list[Gap]:
    """The gaps that were measured, from the variants below `root`."""
    paths = {cell: path_of(cell, root) for cell in cells_of(settings)}
    variants = {cell: Variants.read(path) for cell, path in paths.items() if path.exists()}
    return gaps(settings, records, variants)


def unmeasured(settings: Settings, measured: Sequence[Gap]) -> list[Published]:
    """The published numbers that name a system, and whose gap is not measured."""
    known = [gap.published for gap in measured]
    return [n for n in settings.published if n.system is not None and n not in known]


def gaps(settings: Settings, records: pd.DataFrame, variants: Mapping[Cell, Variants]) -> list[Gap]:
    """The gap to each published number that names a system, in their order.

    Left out are those whose variants lack a seed, or are of other trainings, translations or scores
    than the records: the system was trained or translated again since.
    """
    return [
        _gap(ours, settings, records)
        for number in settings.published
        if (ours := _ours(settings, number, records, variants))
    ]


def _ours(
    settings: Settings,
    number: Published,
    records: pd.DataFrame,
    variants: Mapping[Cell, Variants],
) -> _Ours | None:
    """The measured variants of a number's system; None if they are not of these records."""
    if number.system is None:
        return None
    system, of_system = settings.system(number.system), []
    for record in _records(records, number, number.system):
        measured = variants.get(Cell(record.system, record.corpus, record.seed))
        varied = measured and measured.find(number.test, own(system))
        if (
            measured is None
            or not varied
            or measured.training != record.training_sha256
            or varied.hypotheses != record.hypotheses_sha256
            or varied.scores != _scores(record)
        ):
            return None
        of_system.append(measured)
    return _Ours(number, system, of_system)


def _records(records: pd.DataFrame, number: Published, system: str) -> list[Any]:
    """The records of a system, one a seed, on the test set of a published number."""
    place = system, number.corpus, number.test
    return [each for each in records.itertuples() if (each.system, each.corpus, each.test) == place]


def _scores(record: Any) -> dict[str, float]:
    """BLEU of a record, as Published.scored names its variants."""
    variants = {variant["name"]: variant["score"] for variant in record.variants}
    return {"sacrebleu": record.bleu, **variants}


def _gap(ours: _Ours, settings: Settings, records: pd.DataFrame) -> Gap:
    number, base = ours.number, own(ours.system)
    first = round(ours.headline, SHOWN)
    steps: list[Step] = []

    def add(what: str, after: float | None, note: str) -> bool:
        """Add a step to the score `after`; whether it was measured."""
        before = steps[-1].score if steps else first
        score = before if after is None else round(after, SHOWN)
        steps.append(
            Step(what, None if after is None else round(score - before, SHOWN), score, note)
        )
        return after is not None

    way, (score, note) = number.scored, _scoring(ours)
    if not add("scoring", score, note):
        way = "sacrebleu"
    variant = replace(base, average=number.average or base.average)
    if not add("averaging", *_averaging(ours, variant, way)):
        variant = base
    after = searched(number, variant)
    add("beam and length penalty", *_searching(ours, variant, after, way))
    more, note = _update_size(ours, settings, way, records)
    add("tokens per update", None if more is None else steps[-1].score + more, note)
    unexplained = round(number.bleu - steps[-1].score, SHOWN)
    changes = tuple(_changes(ours))
    return Gap(number, first, len(settings.seeds), tuple(steps), unexplained, changes)


def _changes(ours: _Ours) -> Iterator[Change]:
    first = round(ours.headline, SHOWN)
    for what, variants in single_changes(ours.number, ours.system).items():
        for variant in variants:
            score = ours.score(variant, "sacrebleu")
            bleu = None if score is None else round(score, SHOWN)
            difference = None if bleu is None else round(bleu - first, SHOWN)
            yield Change(what, _value(what, variant), bleu, difference, variant == own(ours.system))


def _scoring(ours: _Ours) -> tuple[float | None, str]:
    way = ours.number.scored
    if way == "otherwise":
        return None, "how it was scored is not known, or nothing here scores so"
    score = ours.score(own(ours.system), way)
    if way == "sacrebleu":
        return score, "both are sacreBLEU's"
    if score is None:
        return None, f"{way}: not computed for this language"
    return score, f"sacreBLEU's for ours, {way} for theirs"


def _averaging(ours: _Ours, variant: Variant, way: str) -> tuple[float | None, str]:
    theirs, base = ours.number.average, own(ours.system)
    if theirs is None:
        return None, "how many checkpoints they averaged is not known"
    if variant == base:
        return ours.score(base, way), f"both {_average(variant)}"
    score = ours.score(variant, way)
    if score is None:
        kept = min(len(seed.checkpoints) for seed in ours.variants)
        few = f"only {kept} checkpoints" if theirs.last else "too few of them"
        return None, f"theirs {_average(variant)}, but ours kept {few}"
    return score, f"ours {_average(base)}, theirs {_average(variant)}"


def _searching(ours: _Ours, before: Variant, after: Variant, way: str) -> tuple[float | None, str]:
    known = _search(ours.number)
    if not known:
        return None, "how they searched is not known"
    both = after == before
    note = f"both {known}" if both else f"ours {_search(before)}; theirs {known}"
    if unknown := _unknown(ours.number):
        note += f"; not known of theirs, and kept as ours: {unknown}"
    return ours.score(after, way), note


def _update_size(
    ours: _Ours, settings: Settings, way: str, records: pd.DataFrame
) -> tuple[float | None, str]:
    """The difference that a system makes which differs from ours in its tokens per update only."""
    number, tokens = ours.number, ours.system.train.tokens_per_update
    theirs = number.tokens_per_update
    if theirs is None:
        return None, "how many tokens an update of theirs had is not known"
    if theirs == tokens:
        return 0.0, f"both {theirs:,}"
    compared = f"ours {tokens:,}, theirs {theirs:,}"
    for name, system in settings.systems.items():
        if system.train.tokens_per_update == theirs and _like(system, ours.system):
            difference = _difference(number, name, way, records)
            return difference, f"{compared}: {name} less {number.system}"
    return None, f"{compared}, but no other system differs from ours in this alone"


def _like(system: System, ours: System) -> bool:
    """Whether two systems differ at most in the size of an update and what follows from that."""
    same = {name: getattr(ours.train, name) for name in _WITH_TOKENS}
    return replace(system, train=replace(system.train, **same)) == ours


def _difference(number: Published, twin: str, way: str, records: pd.DataFrame) -> float | None:
    """The mean score of the system `twin` minus that of ours, each as it is."""
    assert number.system is not None
    means = []
    for system in (twin, number.system):
        scores = list(map(_scores, _records(records, number, system)))
        if any(way not in by_way for by_way in scores):
            return None
        means.append(fmean(by_way[way] for by_way in scores))
    return means[0] - means[1]


def _value(what: str, variant: Variant) -> str:
    if what == "average":
        return _average(variant)
    return str(variant.beam) if what == "beam" else f"{variant.alpha:g} ({variant.penalty})"


def _average(variant: Variant) -> str:
    how = variant.average
    if how.updates:
        return f"updates {how.updates[0]:,} to {how.updates[1]:,}"
    kind, count = ("last", how.last) if how.last else ("best", how.best)
    return f"the {kind} checkpoint" if count == 1 else f"the {kind} {count} checkpoints"


def _search(of: Variant | Published) -> str:
    """The beam and the length penalty, as far as they are known."""
    beam = "" if of.beam is None else f"beam {of.beam}"
    alpha = "" if of.alpha is None else f"alpha {of.alpha:g}"
    if of.penalty is not None:
        alpha = f"{alpha} ({of.penalty})" if alpha else f"length penalty {of.penalty}"
    return ", ".join(filter(None, (beam, alpha)))


def _unknown(number: Published) -> str:
    """The unknown settings of a search."""
    missing = ["beam"] if number.beam is None else []
    if number.alpha is None and number.penalty is None:
        missing.append("length penalty")
    elif number.alpha is None:
        missing.append("alpha")
    elif number.penalty is None:
        missing.append("kind of length penalty")
    return ", ".join(missing)
