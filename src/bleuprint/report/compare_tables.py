"""What `bleuprint compare` compares, and its tables: only what differs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.grid import NONE, Column, Grid, Row
from bleuprint.report.paired import Compared, compared
from bleuprint.report.revision import Revision
from bleuprint.report.system_results import agreement
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT
from bleuprint.scoring.measure import Measured
from bleuprint.scoring.significance import SIGNIFICANT

# The facts of a training, and how they are shown; means over the seeds.
_FACTS = {"parameters": ",.0f", "updates": ",.0f", "target_tokens": ",.0f", "valid_loss": ".3f"}
# Texts by the leading cells of their row.
_Texts = Mapping[tuple[str, ...], str]


@dataclass(frozen=True)
class Side:
    """A system or a row from outside, of a revision."""

    row: str
    revision: Revision

    def __str__(self) -> str:
        return f"{self.row}@{self.revision.name}" if self.revision.name else self.row

    def corpora(self, only: str | None) -> list[str]:
        """Those on which there are results; raises UserError if not on `only`, if it is given."""
        settings = self.revision.settings
        found = [
            name
            for name in settings.corpora
            if self.row in {*settings.systems_on(name), *settings.outside_on(name)}
        ]
        if not found:
            settings.system(self.row)
        if only and settings.corpus(only) and only not in found:
            named = f"params.yaml: {self.row} has no translations on {only}"
            raise UserError(f"{named}, but on: {', '.join(found)}")
        return [only] if only else found

    def results(self, corpus: str, seed: int) -> Results:
        return self.revision.results(Cell(self.row, corpus, seed))


@dataclass(frozen=True)
class OnTest:
    """The results of two sides on a test set of a corpus, each by seed."""

    first: Sequence[Results]
    second: Sequence[Results]
    test: str

    @property
    def not_comparable(self) -> str:
        """Why the scores are not of the same lines; empty if they are."""
        every = [run.scores_of(self.test) for run in (*self.first, *self.second)]
        for name in ("references", "sources"):
            if len({scores[name] for scores in every}) > 1:
                return f"the {name} of the test set are not the same"
        return ""

    def compared(self) -> dict[tuple[str, str], Compared]:
        """Every measure that both have, by its key and group of lines."""
        both = self.first, self.second
        first, second = ([run.measures(self.test) for run in side] for side in both)
        trained = not self.first[0].row and not self.second[0].row
        return compared(first, second, trained, same_lines=not self.not_comparable)


class Pair:
    """Two sides, and the corpora (or one `corpus`) and seeds that both have.

    Raises UserError if there are none, or if one of the sides has no such system or corpus.
    """

    def __init__(self, first: Side, second: Side, corpus: str | None = None) -> None:
        self.sides = first, second
        if first == second:
            raise UserError(f"{first}: compared with itself")
        self.corpora: list[str] = self._common("corpora", *(e.corpora(corpus) for e in self.sides))
        seeds = (each.revision.settings.seeds for each in self.sides)
        self.seeds: list[int] = self._common("seeds", *seeds)
        self.runs = {
            name: [[side.results(name, seed) for seed in self.seeds] for side in self.sides]
            for name in self.corpora
        }

    def __str__(self) -> str:
        return " and ".join(map(str, self.sides))

    def _common(self, name: str, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        common = [value for value in first if value in second]
        if not common:
            raise UserError(f"{self}: no {name} in common")
        return common

    def tests(self) -> Iterator[OnTest]:
        """The results on each test set, of each corpus, that both have."""
        for first, second in self.runs.values():
            for test in (test for test in first[0].scores if test in second[0].scores):
                yield OnTest(first, second, test)

    @property
    def same_scores(self) -> bool:
        sides = (zip(runs.first, runs.second, strict=True) for runs in self.tests())
        return all(a.scores == b.scores for pairs in sides for a, b in pairs)

    @property
    def of_others(self) -> bool:
        """Whether a side was not trained here."""
        return any(
            side.row in side.revision.settings.outside_on(corpus)
            for side in self.sides
            for corpus in self.corpora
        )

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one of numbers for each side, and more of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))


def differing(pair: Pair, part: str) -> Grid | None:
    """The rows of one of PARTS in which the sides differ; None if there are none."""
    heads, texts = PARTS[part]
    first, second = (texts(side, pair) for side in pair.sides)
    rows = tuple(
        Row((*key, first.get(key, NONE), second.get(key, NONE)))
        for key in dict.fromkeys((*first, *second))
        if first.get(key) != second.get(key)
    )
    return Grid(pair.columns(*heads), rows) if rows else None


def scores(pair: Pair) -> Iterator[str | Grid]:
    """Scores and faults on each test set that both have, with tests of their differences."""
    rows, reasons = list[Row](), list[str]()
    for runs in pair.tests():
        for (_, group), of in runs.compared().items():
            occurs = any(each["value"] for each in (*of.first, *of.second))
            if not group and (of.measure.kind == "score" or occurs):
                rows.append(_score_row(runs, of))
        if reason := runs.not_comparable:
            reasons.append(f"{runs.first[0].cell.corpus}, {runs.test}: no p: {reason}")
    if not rows:
        yield "Scores: no test set in common"
        return
    more = "difference", "p", AGREE
    yield Grid(pair.columns("corpus", "test set", "score", more=more), tuple(rows))
    yield "faults: lines that have one that their reference does not have"
    yield from reasons
    if any(row.cells[-1] != NONE for row in rows):
        yield AGREEMENT
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
        if pair.of_others:
            yield "for external translations, the largest of the p over lines against each seed"
    else:
        yield (
            f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set, "
            "of faults approximate randomization"
        )
    yield "each p is of one test alone, not corrected for the number of tests"


def _score_row(runs: OnTest, of: Compared) -> Row:
    """A measure of both sides; without p if they are not comparable."""
    run, shown, agree = runs.first[0], NONE, NONE
    if (p := of.p) is not None:
        shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        if p < SIGNIFICANT:
            told = of.measure.key, of.first[0]["signature"], of.difference, run.texts.target
            agree = agreement(*told) or NONE
    sides = zip((of.first, of.second), (run, runs.second[0]), strict=True)
    means = (_mean(side[:1] if one.row else side, of.measure.digits) for side, one in sides)
    place = run.cell.corpus, runs.test, of.measure.label
    return Row((*place, *means, f"{of.difference:+z.1f}", shown, agree))


def _mean(side: Sequence[Measured], digits: int) -> str:
    values = [each["value"] for each in side]
    if len(values) > 1:
        return f"{fmean(values):.1f} ± {stdev(values):.1f}"
    return f"{values[0]:.{digits}f}"


def _settings(side: Side, pair: Pair) -> _Texts:
    """The settings by dotted key: the row's, the corpora's and the seeds."""
    settings = side.revision.settings
    corpora = {name: settings.corpus(name).deciding() for name in pair.corpora}
    outside = {name: settings.outside_on(name).get(side.row) for name in pair.corpora}
    own = dotted({"outside": outside}) if pair.of_others else settings.dotted(side.row)
    every = {**own, **dotted({"corpora": corpora, "seeds": settings.seeds})}
    return {(key,): value for key, value in every.items()}


def _counts(side: Side, pair: Pair) -> _Texts:
    """Pairs out of each stage, and dropped and changed by each rule."""
    counts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        for stage, sets in read_ledgers(corpus, side.revision.root).items():
            for name, of_set in sets.items():
                for verb, by_rule in (("dropped", of_set.dropped), ("changed", of_set.changed)):
                    for rule in filter(by_rule.get, by_rule):
                        counts[corpus, name, stage, f"{verb} by {rule}"] = f"{by_rule[rule]:,}"
                counts[corpus, name, stage, "out"] = f"{of_set.pairs_out:,}"
    return counts


def _trainings(side: Side, pair: Pair) -> _Texts:
    """Facts of the trainings and fingerprints of code and data; and signatures of the scores."""
    texts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        first, *_ = runs = [side.results(corpus, seed) for seed in pair.seeds]
        if not pair.of_others:
            for name, form in _FACTS.items():
                mean = fmean(getattr(run.training, name) for run in runs)
                texts[corpus, name.replace("_", " ")] = format(mean, form)
            texts[corpus, "SHA-256 of the code"] = first.training.code[:12]
            texts[corpus, "SHA-256 of the binary corpus"] = first.training.data[:12]
        for test in first.scores:
            signature = first.measures(test)["bleu", ""]["signature"]
            texts[corpus, f"signature of BLEU, {test}"] = signature
    return texts


# The heads of the texts of a part, and what makes these for a side.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[Side, Pair], _Texts]]] = {
    "Settings": (("setting",), _settings),
    "Data": (("corpus", "set", "stage", "pairs"), _counts),
    "Training": (("corpus", "training"), _trainings),
}
