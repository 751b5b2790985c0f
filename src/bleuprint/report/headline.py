"""The scores on a terminal: what fits on a screen, or all of them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from bleuprint.config.published import Published
from bleuprint.report import main_table, notes, tables
from bleuprint.report.compact import compact
from bleuprint.report.frame import Records
from bleuprint.report.grid import Grid, filled_columns
from bleuprint.report.published import literature
from bleuprint.report.terminal import height, wrapped
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.human_agreement import AGREE
from bleuprint.scoring.significance import SIGNIFICANT

# Lines of a screen.
LINES = 40
_COSTS = ("Parameters", "Updates", "Time", "Tokens/s", "Memory")
_OTHERS = "Published numbers of other BLEU: bleuprint table --all"
_Parts = list[str | Grid]


def headline(
    records: Records, published: Sequence[Published] = (), after: Sequence[str] = ()
) -> _Parts:
    """The scores, as detailed as fits on a screen, how to read them, and the lines `after` them."""
    after = ["", *map(wrapped, notes.reachable_notes(records.cells)), *map(wrapped, after)]
    room = LINES - height(after)
    forms = _forms(records, published)
    form = next((form for form in forms if height(form) <= room), None)
    return [*(form or _cut(records, published, room)), *after]


def everything(records: Records, published: Sequence[Published] = ()) -> _Parts:
    """The tables of all scores and of costs, their notes, and what was found."""
    bleu, *further = ([measure] for measure in tables.measured_scores(records))
    found = tables.document_findings(records), tables.fault_findings(records)
    return [
        main_table.scores(records, bleu, published=published),
        *(main_table.scores(records, measure, {}) for measure in further),
        main_table.costs(records),
        "",
        *map(wrapped, notes.notes(records, published)),
        *map(wrapped, notes.reachable_notes(records.cells)),
        *(wrapped(finding) for findings in found for finding in findings),
    ]


def _forms(records: Records, published: Sequence[Published]) -> Iterator[_Parts]:
    """The tables with their legend, from the most detailed to the shortest."""
    detailed = main_table.scores(records, published=published)
    scores = [detailed]
    if "comet" in tables.measured_scores(records):
        scores.append(main_table.scores(records, ["comet"], {}))
    cost = main_table.costs(records, _COSTS)
    detectable = [*map(wrapped, filter(None, [notes.detectable_note(records)]))]
    legend = [*map(wrapped, _legend(records, detailed))]
    yield [*scores, cost, "", *legend, *detectable]
    yield [*scores, cost, "", *legend]
    yield [*scores, "", *legend, *detectable]
    yield [*scores, "", *legend]

    table, legend = compact(records, published), [*map(wrapped, _legend(records))]
    variants = _variants(records, published)
    others = {way: compact(records, published, way).grid() for way in variants if way in VARIANTS}
    of_others: _Parts = [
        part for way, grid in others.items() for part in ("", f"BLEU {way}:", grid)
    ]
    yield [table.grid(), *of_others, "", *legend]
    if variants:
        legend.append(_OTHERS)
    shorter = min(table.grid(), table.turned(), key=lambda grid: height([grid]))
    yield [shorter, cost, "", *legend]
    yield [shorter, "", *legend]


def _cut(records: Records, published: Sequence[Published], room: int) -> _Parts:
    """As many rows of the compact table as fit, one at least."""
    table = compact(records, published)
    turned = height([table.turned()]) < height([table.grid()])
    rows = len(table.cells if turned else table.kinds)

    def cut(most: int) -> _Parts:
        grid = table.turned(most) if turned else table.grid(most)
        more = f"{rows - most} more rows: bleuprint table --all"
        others = [_OTHERS] if _variants(records, published) else []
        return [grid, more, "", *map(wrapped, _legend(records)), *others]

    fitting = bisect_right(range(1, rows), room, key=lambda most: height(cut(most)))
    return cut(max(fitting, 1))


def _variants(records: Records, published: Sequence[Published]) -> list[str]:
    """The ways of scoring of published numbers that are not ours."""
    ways = literature.rows(records.cells, published).scored.unique()
    return [str(way) for way in ways if way != "sacrebleu"]


def _legend(records: Records, detailed: Grid | None = None) -> Iterator[str]:
    """How to read the detailed table, or without it the compact one."""
    seeds, baselines = records.cells.seed.nunique(), records.measures.baseline.dropna().unique()
    if detailed and seeds > 1:
        yield f"±: the standard deviation over {seeds} seeds."
    elif detailed:
        yield "In brackets: the 95 % bootstrap interval."
    if not len(baselines):
        return
    test = f"paired t-test over {seeds} seeds" if seeds > 1 else "paired bootstrap"
    yield (
        f"{'Difference' if detailed else 'In brackets: the difference'} from "
        f"{' or '.join(baselines)}; †: p below {SIGNIFICANT} ({test}); ‡: also after Holm's "
        f"correction; {'n.s.' if detailed else 'no mark'}: not significant."
    )
    if detailed and any(AGREE in column.label for column in filled_columns(detailed).columns):
        yield f"{AGREE}: the share of such differences in which people prefer the better system."
    if seeds == 1:
        yield "One seed: what is tested are these trainings, not what other seeds would give."
