"""Any two systems on a test set: the difference of their BLEU, and whether it is chance."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from bleuprint.report.grid import NONE, Grid, Number, grid
from bleuprint.report.page.lines import SetLines
from bleuprint.report.paired import compared, p_text, paired_t
from bleuprint.report.system_results import SystemResult
from bleuprint.scoring.significance import SIGNIFICANT

# BLEU of the second system minus that of the first, and p, by their names.
Differences = dict[tuple[str, str], tuple[float, float]]


def pair_differences(lines: SetLines, results: Sequence[SystemResult]) -> Differences:
    """Every two systems, in their order: of all by a paired t-test over seeds, or with one seed of
    those that are shown by paired bootstrap over lines, as in the table of scores.
    """
    found: Differences = {}
    if len(results[0].seeds) == 1:
        for first, second in combinations(lines.outputs, 2):
            sides = [lines.measured[first]], [lines.measured[second]]
            of = compared(*sides, trained=True)["bleu", ""]
            found[first, second] = of.difference, of.p or 1.0
        return found
    for one, other in combinations(results, 2):
        by_seed = zip(one.values(), other.values(), strict=True)
        deltas = [after - before for before, after in by_seed]
        found[one.system, other.system] = fmean(deltas), paired_t(deltas)
    return found


def matrix(tested: Differences) -> Grid | None:
    """The BLEU of a row's system minus that of a column's; None for two systems."""
    systems = list(dict.fromkeys(name for pair in tested for name in pair))
    if len(systems) < 3:
        return None
    rows = [(row, *(_cell(tested, row, column) for column in systems)) for row in systems]
    return grid(("System",), systems, rows)


def _cell(tested: Differences, row: str, column: str) -> Number:
    if row == column:
        return Number(NONE, None)
    value, p = tested[column, row] if (column, row) in tested else tested[row, column]
    value = value if (column, row) in tested else -value
    return Number(f"{value:+z.1f}{'' if p < SIGNIFICANT else ' n.s.'} {p_text(p)}", value)
