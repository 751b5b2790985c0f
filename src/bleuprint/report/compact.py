"""A compact table: the BLEU of each system on each test set, and its difference, in one cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bleuprint.config.published import Published
from bleuprint.report.frame import Records
from bleuprint.report.grid import NONE, Column, Grid, Number, Row
from bleuprint.report.main_table import best
from bleuprint.report.published import literature
from bleuprint.report.system_results import SystemResult, signed, system_results


@dataclass(frozen=True)
class Compact:
    """`kinds`: of each system, as of a Row; `cells`: by test set, below its task, and system."""

    kinds: Mapping[str, str]
    cells: Mapping[Column, Mapping[str, Number]]

    def grid(self, most: int | None = None) -> Grid:
        """A row a system: `most` of them, baselines first, then those with the best mean."""
        means = {
            name: fmean([of[name].value or 0 for of in self.cells.values() if name in of] or [0])
            for name in self.kinds
        }
        ranked = sorted(means, key=lambda name: (self.kinds[name] != "baseline", -means[name]))
        shown = [name for name in self.kinds if name in ranked[:most]]
        tops = {column: self._best(of) for column, of in self.cells.items()}
        rows = [
            Row(
                (self._name(name), *(of.get(name, NONE) for of in self.cells.values())),
                self.kinds[name],
                frozenset(n for n, column in enumerate(self.cells, 1) if name in tops[column]),
            )
            for name in shown
        ]
        return Grid((Column("System", left=True), *self.cells), tuple(rows))

    def turned(self, most: int | None = None) -> Grid:
        """A row a test set, `most` of them."""
        rows = [
            Row(
                (f"{column.group}, {column.label}", *(of.get(name, NONE) for name in self.kinds)),
                best=frozenset(n for n, name in enumerate(self.kinds, 1) if name in self._best(of)),
            )
            for column, of in [*self.cells.items()][:most]
        ]
        systems = (Column(self._name(name), "BLEU") for name in self.kinds)
        return Grid((Column("Test set", left=True), *systems), tuple(rows))

    def _name(self, system: str) -> str:
        return f"{system} (baseline)" if self.kinds[system] == "baseline" else system

    def _best(self, of_test: Mapping[str, Number]) -> list[str]:
        ours = {name: cell for name, cell in of_test.items() if self.kinds[name] != "published"}
        return best("bleu", {name: cell.value or 0.0 for name, cell in ours.items()})


def compact(
    records: Records, published: Sequence[Published] = (), scored: str = "sacrebleu"
) -> Compact:
    """The scores of a variant of BLEU, after those that were published of it."""
    results, numbers = system_results(records), literature.rows(records.cells, published)
    kinds: dict[str, str] = {}
    cells: dict[Column, dict[str, Number]] = {}
    for each in results:
        of_test = cells.setdefault(Column(each.test, each.task.heading), {})
        of_task = numbers.corpus.isin(each.task.corpora) & (numbers.test == each.test)
        for number in numbers[of_task & (numbers.scored == scored)].itertuples():
            name = f"{number.system} (published)"
            of_test[name], kinds[name] = Number(number.bleu, float(number.bleu)), "published"
    baselines = {each.baseline.label for each in results if each.baseline}
    for each in results:
        kinds[each.name] = "baseline" if each.label in baselines else ""
        if cell := _cell(each, "bleu" if scored == "sacrebleu" else scored):
            cells[Column(each.test, each.task.heading)][each.name] = cell
    return Compact(kinds, cells)


def _cell(result: SystemResult, measure: str) -> Number | None:
    """36.7 (+1.2‡); a difference that is not significant has no mark."""
    if not (score := result.score(measure)):
        return None
    tested = result.difference_in(measure)
    difference = f" ({signed(tested.value, tested.significant)}{tested.mark})" if tested else ""
    return Number(f"{score.mean:.1f}{difference}", score.mean)
