"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from bleuprint.config.outside import OutsideRow
from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.comet_scores import comet_columns, one_model, paired_comet
from bleuprint.report.fault_tables import faults_p, lines_of_faults
from bleuprint.report.grid import NONE, Column, Grid, Row
from bleuprint.report.revision import Revision
from bleuprint.report.system_results import largest_p, p_text, paired_t
from bleuprint.rules.letters import SCRIPTS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT, agreement_text, human_agreement
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import SIGNIFICANT, PairedTest, paired_tests
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations

_SHORT = 12
# The figures of a training, and how they are shown.
_FIGURES = {
    "updates": ",.0f",
    "target tokens": ",.0f",
    "final validation loss": ".3f",
    "best validation loss": ".3f",
    "final validation BLEU": ".1f",
    "best validation BLEU": ".1f",
}
# Texts by the leading cells of their row.
_Texts = Mapping[tuple[str, ...], str]


@dataclass(frozen=True)
class Side:
    """A system of a revision, or a row from outside."""

    system: str
    revision: Revision

    def __str__(self) -> str:
        return f"{self.system}@{self.revision.name}" if self.revision.name else self.system

    def outside(self, corpus: str) -> OutsideRow | None:
        """The row from outside on a corpus; None if it is trained here."""
        return self.revision.settings.outside_on(corpus).get(self.system)

    def check(self, corpus: str | None) -> None:
        """Raise UserError if there is no such row, or none on the `corpus`, if one is given."""
        settings = self.revision.settings
        if files := [name for name in settings.corpora if self.outside(name)]:
            if corpus not in (None, *files):
                raise UserError(
                    f"params.yaml: {self.system} has no translations on {corpus}, but on: "
                    f"{', '.join(files)}"
                )
        elif corpus:
            settings.system_on(self.system, corpus)
        else:
            settings.system(self.system)

    def corpora(self) -> list[str]:
        """The corpora on which there are results."""
        settings = self.revision.settings
        return [
            corpus
            for corpus in settings.corpora
            if self.outside(corpus) or self.system in settings.systems_on(corpus)
        ]

    def results(self, corpus: str, seed: int) -> ScoredTranslations:
        return self.revision.results(Cell(self.system, corpus, seed))


class Pair:
    """Two sides, and the corpora (or one `corpus`) and seeds that both have.

    Raises UserError if there are none, or if one of the sides has no such system or corpus.
    """

    def __init__(self, first: Side, second: Side, corpus: str | None = None) -> None:
        self.first, self.second = self.sides = first, second
        for side in self.sides:
            side.check(corpus)
        if first == second:
            raise UserError(f"{first}: compared with itself")
        seeds = [side.revision.settings.seeds for side in self.sides]
        self.seeds: list[int] = self._common("seeds", *seeds)
        corpora = [[corpus] if corpus else side.corpora() for side in self.sides]
        self.corpora: list[str] = self._common("corpora", *corpora)

    def _common(self, name: str, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        common = [value for value in first if value in second]
        if not common:
            raise UserError(f"{self.first} and {self.second}: no {name} in common")
        return common

    @property
    def of_others(self) -> bool:
        """Whether a side was not trained here."""
        return any(side.outside(corpus) for side in self.sides for corpus in self.corpora)

    def cells(self, side: Side) -> list[Cell]:
        """All cells of a side that are compared."""
        return [Cell(side.system, *place) for place in product(self.corpora, self.seeds)]

    def runs(self, corpus: str) -> list[list[ScoredTranslations]]:
        """The results of each side on a corpus, by seed."""
        return [[side.results(corpus, seed) for seed in self.seeds] for side in self.sides]

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one of numbers for each side, and more of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))


def differing(pair: Pair, part: str) -> Grid | None:
    """The rows of one of PARTS in which the sides differ."""
    heads, texts = PARTS[part]
    first, second = (texts(side, pair) for side in pair.sides)
    rows = tuple(
        Row((*key, first.get(key, NONE), second.get(key, NONE)))
        for key in dict.fromkeys((*first, *second))
        if first.get(key) != second.get(key)
    )
    return Grid(pair.columns(*heads), rows) if rows else None


def scores(pair: Pair) -> Iterator[str | Grid]:
    """The scores on each test set that both have, with tests of their differences."""
    rows: list[Row] = []
    reasons: list[str] = []
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            reason = not_comparable(runs, test)
            rows += _score_rows(runs, test, tested=not reason)
            if reason:
                reasons.append(f"{corpus}, {test}: no p: {reason}")
    if not rows:
        yield "Scores: no test set in common"
        return
    yield Grid(
        pair.columns("corpus", "test set", "score", more=("difference", "p", AGREE)), tuple(rows)
    )
    yield from reasons
    if len(reasons) < len(rows) / len(METRICS):
        yield AGREEMENT
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
        if pair.of_others:
            yield "of translations of others, the largest of the bootstraps against each seed"
    else:
        yield f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set"


def faults(pair: Pair) -> Grid | None:
    """The lines with each fault that a side has, on test sets of the same lines; means over seeds.

    None if there are none, or if a side was scored by an earlier version.
    """
    rows = []
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            if not_comparable(runs, test):
                continue
            first, second = (lines_of_faults(side, test) for side in runs)
            for name in (name for name in first if name in second):
                sides = first[name], second[name]
                if any(chain.from_iterable(chain(*sides))):
                    form = ".1f" if len(pair.seeds) > 1 else ".0f"
                    counts = (format(fmean(map(len, side)), form) for side in sides)
                    p = faults_p(*sides, trained=all(isinstance(s[0], CellResults) for s in runs))
                    mark = " n.s." if p >= SIGNIFICANT else ""
                    rows.append(Row((corpus, test, name, *counts, f"{p_text(p)}{mark}")))
    heads = pair.columns("corpus", "test set", "fault", more=("p",))
    return Grid(heads, tuple(rows)) if rows else None


def same_scores(pair: Pair) -> bool:
    """Whether both have the same test sets with the same scores."""
    runs = [[[run.scores for run in side] for side in pair.runs(corpus)] for corpus in pair.corpora]
    return all(first == second for first, second in runs)


def not_comparable(runs: Sequence[Sequence[ScoredTranslations]], test: str) -> str:
    """Why the scores of two sides are not of the same lines; empty if they are."""
    every = [run.scores_of(test) for side in runs for run in side]
    for name in ("references", "sources"):
        if len({scores[name] for scores in every}) > 1:
            return f"the {name} of the test set are not the same"
    return ""


def paired(runs: Sequence[ScoredTranslations], test: str) -> dict[str, PairedTest]:
    """The paired tests of the second against the first."""
    (references, first), (_, second) = (run.lines(test) for run in runs)
    return paired_tests({"0": first, "1": second}, references, runs[0].texts.target)["1"]


def _settings(side: Side, pair: Pair) -> _Texts:
    """The settings by dotted key: the system's, the corpora's and the seeds."""
    settings = side.revision.settings
    corpora = {name: settings.corpus(name).deciding() for name in pair.corpora}
    others = dotted({"corpora": corpora, "seeds": settings.seeds})
    rows = {corpus: row for corpus in pair.corpora if (row := side.outside(corpus))}
    own = dotted({"outside": rows} if rows else {})
    if not pair.of_others:
        own = settings.system(side.system).dotted()
    every = {**own, **others}
    return {(key,): value for key, value in every.items()}


def _fingerprints(side: Side, pair: Pair) -> _Texts:
    """SHA-256 of code and data, and sacreBLEU's signatures, of the first seed on each corpus."""
    prints = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        run = side.results(corpus, pair.seeds[0])
        if isinstance(run, CellResults) and not pair.of_others:
            prints[corpus, "code of the training"] = run.training.code[:_SHORT]
            prints[corpus, "binary corpus"] = run.training.data[:_SHORT]
        for test, of_test in run.scores.items():
            prints[corpus, f"signature of BLEU, {test}"] = of_test["bleu"]["signature"]
    return prints


def _counts(side: Side, pair: Pair) -> _Texts:
    """Pairs out of each stage, and dropped and changed by each rule."""
    counts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        for stage, sets in read_ledgers(corpus, side.revision.root).items():
            for name, of_set in sets.items():
                for verb, by_rule in (("dropped", of_set.dropped), ("changed", of_set.changed)):
                    for rule, count in by_rule.items():
                        if count:
                            counts[corpus, name, stage, f"{verb} by {rule}"] = f"{count:,}"
                counts[corpus, name, stage, "out"] = f"{of_set.pairs_out:,}"
    return counts


def _trainings(side: Side, pair: Pair) -> _Texts:
    """Updates, tokens, validation loss and BLEU; means over the seeds."""
    texts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        runs = [side.results(corpus, seed) for seed in pair.seeds]
        known = [_figures(run) for run in runs if isinstance(run, CellResults)]
        means = pd.DataFrame(known, columns=list(_FIGURES)).mean()
        for label, mean in means.items():
            texts[corpus, str(label)] = format(mean, _FIGURES[str(label)])
    return texts


def _figures(run: CellResults) -> tuple[float, ...]:
    """The figures of a training, whose curves `Revision.fetch` found."""
    assert run.curves is not None
    loss, bleu = (
        [getattr(each, name) for each in run.curves.validation] for name in ("loss", "bleu")
    )
    updates, tokens = run.training.updates, run.training.target_tokens
    return updates, tokens, loss[-1], min(loss), bleu[-1], max(bleu)


def _score_rows(
    runs: Sequence[Sequence[ScoredTranslations]], test: str, tested: bool
) -> Iterator[Row]:
    here = [isinstance(side[0], CellResults) for side in runs]
    # translations of others are compared with each seed
    by_seed = tested and (len(runs[0]) == 1 or not all(here))
    pairs = list(zip(*runs, strict=True)) if by_seed else []
    tests = [paired(both, test) for both in pairs]
    for metric, label in METRICS.items():
        of_sides = [[run.scores_of(test).get(metric) for run in side] for side in runs]
        if not all(map(all, of_sides)):  # chrF2++ in scores.json of an earlier version
            continue
        scores = [[each["score"] for each in side] for side in of_sides]  # type: ignore[index]
        bootstrap = [of[metric].bootstrap for of in tests]
        yield _score_row(runs, test, label, scores, bootstrap, tested)
    if model := one_model(chain(*runs), test):
        points = [[comet_columns(run, test)["comet"] for run in side] for side in runs]
        bootstrap = [paired_comet(b, a, test).bootstrap for a, b in pairs]
        yield _score_row(runs, test, "COMET", points, bootstrap, tested, scale=model)


def _score_row(
    runs: Sequence[Sequence[ScoredTranslations]],
    test: str,
    label: str,
    scores: Sequence[Sequence[float]],
    bootstrap: Sequence[float],
    tested: bool,
    scale: str = "",
) -> Row:
    """A metric of both sides; without p-values over lines, p is that of the t-test over seeds."""
    first, second = scores
    deltas = [b - a for a, b in zip(first, second, strict=True)]
    shown = agree = NONE
    if tested:
        p = largest_p(deltas, bootstrap) if bootstrap else paired_t(deltas)
        shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        per_cent = human_agreement(scale or label, fmean(deltas))
        natural = runs[0][0].texts.target in SCRIPTS  # and not symbols to be copied
        if per_cent is not None and natural and p < SIGNIFICANT:
            agree = agreement_text(scale or label, per_cent)
    means = (
        _mean(side if isinstance(of[0], CellResults) else side[:1])
        for side, of in zip(scores, runs, strict=True)
    )
    cells = *means, f"{fmean(deltas):+z.1f}", shown, agree
    return Row((runs[0][0].cell.corpus, test, label, *cells))


def _mean(scores: Sequence[float]) -> str:
    deviation = f" ± {stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{fmean(scores):.1f}{deviation}"


# The heads of the texts of a part, and what makes these for a side.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[Side, Pair], _Texts]]] = {
    "Settings": (("setting",), _settings),
    "Fingerprints": (("corpus", "fingerprint"), _fingerprints),
    "Data": (("corpus", "set", "stage", "pairs"), _counts),
    "Training": (("corpus", "training"), _trainings),
}


def parts(pair: Pair) -> list[str]:
    """The parts that both sides have: translations of others have no training."""
    return [part for part in PARTS if part != "Training" or not pair.of_others]
