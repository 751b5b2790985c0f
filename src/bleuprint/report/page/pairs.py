"""Any two systems on a test set: their difference, and the lines in which one is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bleuprint.report.grid import NONE, Grid, Number, grid
from bleuprint.report.page.lines import SetLines
from bleuprint.report.system_results import SystemResult, p_text, paired_t
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.significance import (
    SIGNIFICANT,
    bootstrap_p,
    resampled_counts,
    resampled_scores,
)


@dataclass(frozen=True)
class Difference:
    """The second system's BLEU minus the first's, and its p-value."""

    value: float
    p: float

    @property
    def significant(self) -> bool:
        return self.p < SIGNIFICANT


@dataclass(frozen=True)
class Pair:
    """Two systems on a test set, by the outputs of the first seed.

    `better`, `worse`, `same`: lines of the second by the BLEU of the line.
    """

    first: str
    second: str
    difference: Difference
    better: int
    worse: int
    same: int


def pairs(lines: SetLines, tested: Mapping[tuple[str, str], Difference]) -> list[Pair]:
    """Every two systems of a test set whose outputs are shown."""
    found = []
    for first, second in combinations(lines.outputs, 2):
        delta = lines.bleu[second] - lines.bleu[first]
        better, worse, same = (int(which.sum()) for which in (delta > 0, delta < 0, delta == 0))
        found.append(Pair(first, second, tested[first, second], better, worse, same))
    return found


def pair_differences(
    lines: SetLines, results: Sequence[SystemResult]
) -> dict[tuple[str, str], Difference]:
    """Every two systems, in their order: of all by a paired t-test over seeds, or with one seed of
    those that are shown by paired bootstrap over lines, as in the table of scores.
    """
    if len(results[0].seeds) > 1:
        by_system = {result.system: result.seeds.bleu.to_numpy() for result in results}
        return {
            (first, second): Difference(
                float((by_system[second] - by_system[first]).mean()),
                paired_t(by_system[second] - by_system[first]),
            )
            for first, second in combinations(by_system, 2)
        }
    return _by_bootstrap(lines)


def _by_bootstrap(lines: SetLines) -> dict[tuple[str, str], Difference]:
    metric = bleu_metric(lines.references, lines.languages[1])
    counts = resampled_counts(len(lines.references))
    scores, sampled = {}, {}
    for name, outputs in lines.outputs.items():
        statistics = np.array(metric._extract_corpus_statistics(outputs, None), dtype=np.float64)
        total = statistics.sum(0).astype(np.int64).tolist()
        scores[name] = float(metric._compute_score_from_stats(total).score)
        sampled[name] = resampled_scores(metric, statistics, counts)
    found = {}
    for first, second in combinations(lines.outputs, 2):
        value, p = scores[second] - scores[first], 1.0
        # as in paired_tests: samples of such texts are all alike
        if len(lines.references) > 1 and lines.outputs[first] != lines.outputs[second]:
            p = bootstrap_p(sampled[second] - sampled[first], abs(value))
        found[first, second] = Difference(value, p)
    return found


def matrix(tested: Mapping[tuple[str, str], Difference]) -> Grid | None:
    """The BLEU of a row's system minus that of a column's; None for two systems."""
    systems = list(dict.fromkeys(name for pair in tested for name in pair))
    if len(systems) < 3:
        return None
    rows = [(row, *(_cell(tested, row, column) for column in systems)) for row in systems]
    return grid(("System",), systems, rows)


def _cell(tested: Mapping[tuple[str, str], Difference], row: str, column: str) -> Number:
    if row == column:
        return Number(NONE, None)
    each = tested.get((column, row)) or tested[row, column]
    value = each.value if (column, row) in tested else -each.value
    mark = "" if each.significant else " n.s."
    return Number(f"{value:+z.1f}{mark} {p_text(each.p)}", value)
