"""The results of two sides on one test set, seed by seed, and the tests of their differences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bleuprint.report.comet_scores import comet_columns, one_model, paired_comet
from bleuprint.report.system_results import largest_p, paired_t
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import PairedTest, paired_tests
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations


@dataclass(frozen=True)
class PairedScores:
    """A metric of both sides, by seed.

    `scale`: its name for human_agreement. `bootstrap`: p of the paired bootstrap over lines, by
    seed; empty if the test is over seeds.
    """

    label: str
    scale: str
    first: Sequence[float]
    second: Sequence[float]
    bootstrap: Sequence[float]

    @property
    def deltas(self) -> list[float]:
        return [b - a for a, b in zip(self.first, self.second, strict=True)]

    @property
    def p(self) -> float:
        return largest_p(self.deltas, self.bootstrap) if self.bootstrap else paired_t(self.deltas)


@dataclass(frozen=True)
class PairedRuns:
    """The results of two sides on a test set of a corpus, each by seed."""

    first: Sequence[ScoredTranslations]
    second: Sequence[ScoredTranslations]
    test: str

    @property
    def corpus(self) -> str:
        return self.first[0].cell.corpus

    @property
    def target(self) -> str:
        """The target language."""
        return self.first[0].texts.target

    @property
    def trained(self) -> tuple[bool, bool]:
        """Of each side, whether it was trained here; otherwise its seeds are the same."""
        return isinstance(self.first[0], CellResults), isinstance(self.second[0], CellResults)

    @property
    def not_comparable(self) -> str:
        """Why the scores are not of the same lines; empty if they are."""
        every = [run.scores_of(self.test) for run in (*self.first, *self.second)]
        for name in ("references", "sources"):
            if len({scores[name] for scores in every}) > 1:
                return f"the {name} of the test set are not the same"
        return ""

    def tests(self) -> list[dict[str, PairedTest]]:
        """The paired tests over lines, the second against the first, by seed and metric."""
        tests = []
        for before, after in zip(self.first, self.second, strict=True):
            (references, first), (_, second) = before.lines(self.test), after.lines(self.test)
            tests.append(paired_tests({"0": first, "1": second}, references, self.target)["1"])
        return tests

    def scores(self) -> Iterator[PairedScores]:
        """Every metric that all runs have; p is for runs that are comparable."""
        # external translations are compared with each seed
        over_lines = not self.not_comparable and (len(self.first) == 1 or not all(self.trained))
        tests = self.tests() if over_lines else []
        for metric, label in METRICS.items():
            first, second = self._points(self.first, metric), self._points(self.second, metric)
            if len(first) == len(second) == len(self.first):
                p = [of[metric].bootstrap for of in tests]
                yield PairedScores(label, label, first, second, p)
        if model := one_model((*self.first, *self.second), self.test):
            first, second = (
                [comet_columns(run, self.test)["comet"] for run in side]
                for side in (self.first, self.second)
            )
            runs = zip(self.first, self.second, strict=True) if over_lines else ()
            p = [paired_comet(after, before, self.test).bootstrap for before, after in runs]
            yield PairedScores("COMET", model, first, second, p)

    def _points(self, side: Sequence[ScoredTranslations], metric: str) -> list[float]:
        """By seed; without those of an earlier version that had no such metric."""
        every: list[Any] = [run.scores_of(self.test) for run in side]
        return [scores[metric]["score"] for scores in every if metric in scores]
