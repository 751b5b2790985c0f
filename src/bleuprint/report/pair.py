"""What `bleuprint compare` compares: two sides, and the corpora, test sets and seeds of both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from bleuprint.cells.results import Results
from bleuprint.config.outside import OutsideRow
from bleuprint.config.paths import Cell
from bleuprint.report.grid import Column
from bleuprint.report.paired import Compared, compared
from bleuprint.report.revision import Revision
from bleuprint.runtime.errors import UserError


@dataclass(frozen=True)
class PairedTests:
    """The results of two sides on a test set of a corpus, each by seed."""

    first: Sequence[Results]
    second: Sequence[Results]
    test: str

    @property
    def place(self) -> tuple[str, str]:
        return self.first[0].cell.corpus, self.test

    @property
    def target(self) -> str:
        """The target language."""
        return self.first[0].texts.target

    @property
    def trained(self) -> bool:
        """Whether both sides were trained here; otherwise the seeds of one are the same."""
        return not self.first[0].row and not self.second[0].row

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
        first, second = (
            [run.measures(self.test) for run in side] for side in (self.first, self.second)
        )
        return compared(first, second, self.trained, same_lines=not self.not_comparable)


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

    def results(self, corpus: str, seed: int) -> Results:
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

    def runs(self, corpus: str) -> list[list[Results]]:
        """The results of each side on a corpus, by seed."""
        return [[side.results(corpus, seed) for seed in self.seeds] for side in self.sides]

    def tests(self, runs: Sequence[Sequence[Results]] | None = None) -> Iterator["PairedTests"]:
        """The results on each test set, of each corpus, that both have; or of these `runs`."""
        for first, second in [runs] if runs else map(self.runs, self.corpora):
            for test in (test for test in first[0].scores if test in second[0].scores):
                yield PairedTests(first, second, test)

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one of numbers for each side, and more of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))
