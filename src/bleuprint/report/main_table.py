"""The table: systems down the side, corpora across the top, BLEU and training cost in the cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report import (
    cost_columns,
    document_tables,
    fault_tables,
    score_tables,
)
from bleuprint.report.frame import REPORTS, RESULTS, trained
from bleuprint.report.grid import NONE, Column, Grid, Number, Row, latex
from bleuprint.report.published import literature
from bleuprint.report.system_results import METRICS, OUTSIDE, SystemResult, system_results
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT
from bleuprint.scoring.significance import SIGNIFICANT

BY_TIME = "FLOPs, by time"
OTHERWISE = "BLEU (other variants)"
Costs = Mapping[str, Callable[[pd.DataFrame], str]]
COSTS: Costs = {"FLOPs": cost_columns.counted_flops}


class _Filled(NamedTuple):
    """A column with its cells by row; `best`: the systems with the best score."""

    column: Column
    cells: dict[str, str]
    best: Sequence[str] = ()


def scores(
    records: pd.DataFrame,
    metrics: Sequence[str] = ("bleu",),
    costs: Costs = COSTS,
    published: Sequence[Published] = (),
    alone: Sequence[str] = (),
) -> Grid:
    """The scores of every system on every test set, the best of each marked, and `costs`.

    With each come the differences from the baseline, but for metrics that stand `alone`; with BLEU
    published numbers.
    """
    numbers = literature.rows(records, published)
    if "bleu" not in metrics:
        numbers = numbers[:0]
    results, filled = system_results(records), list[_Filled]()
    for corpus, of_corpus in records.groupby("corpus", sort=False):
        printed = numbers[numbers.corpus == corpus]
        of_results = [result for result in results if result.corpus == corpus]
        filled += _score_columns(of_corpus, of_results, metrics, printed, alone)
        filled += _cost_columns(of_corpus, costs, printed)
    kinds = dict.fromkeys(_names(numbers), "published") | _kinds(results)
    heads = Column("System", left=True), *(each.column for each in filled)
    return Grid(heads, tuple(_row(name, kind, filled) for name, kind in kinds.items()))


def costs(records: pd.DataFrame, measured: bool = True) -> Grid:
    """The cost of each training: counted on the left, measured on the right; means over seeds."""
    columns = [Column("System", left=True), Column("Corpus", left=True)]
    columns += [Column(label, "counted") for label in cost_columns.COUNTED]
    cells = cost_columns.COUNTED
    if measured:
        columns += [Column(label, "measured") for label in cost_columns.MEASURED]
        columns += [Column(label, "measured", left=True) for label in cost_columns.TEXTS]
        cells = {**cells, **cost_columns.MEASURED, **cost_columns.TEXTS}
    trainings = trained(records).drop_duplicates(Cell._fields)
    rows = [
        Row((*place, *(cell(seeds) for cell in cells.values())))
        for place, seeds in trainings.groupby(["system", "corpus"], sort=False)
    ]
    return Grid(tuple(columns), tuple(rows))


def parts(records: pd.DataFrame, published: Sequence[Published] = ()) -> Iterator[str | Grid]:
    """The tables and their notes for the terminal, and the files with more."""
    yield scores(records, published=published)
    if records.comet.notna().any():
        yield scores(records, ["comet"], {})
    yield score_tables.losses(records, published)
    yield score_tables.LOSSES
    yield costs(records)
    yield cost_columns.DASH
    yield ""
    yield from notes(records, published, Path())
    yield ""
    yield from document_tables.parts(records)
    yield from fault_tables.parts(records)
    yield f"More: {REPORTS / 'index.html'} (everything, on one page), {REPORTS / 'table.md'},"
    yield f"{RESULTS} (scores, signatures and fingerprints of every cell), and the runs"
    yield "side by side in MLflow: make ui"


def summary(settings: Settings, records: pd.DataFrame) -> Iterator[str | Grid]:
    """The scores with the cost of training, and where the rest is."""
    costs = {**COSTS, "Time": cost_columns.MEASURED["Time"]}
    yield scores(records, costs=costs, published=settings.published)
    yield ""
    yield from score_tables.reachable_notes(records)
    yield f"page of all results: {REPORTS / 'index.html'}; all tables: bleuprint table"


def notes(
    records: pd.DataFrame, published: Sequence[Published] = (), root: Path | None = None
) -> list[str]:
    """How to read the scores, a sentence or two each; with `root` also what it says of them."""
    seeds, baselines = records.seed.unique(), records.baseline.dropna().unique()
    lines = [
        "BLEU is sacreBLEU's default (signatures in results.json), on detokenized text; on text "
        "with tokenize: none unchanged. FLOPs of training are counted from the "
        "shapes of the matrices; those of publications are seconds x devices x sustained FLOPS."
    ]
    if len(seeds) > 1:
        lines.append(
            f"Mean ± standard deviation over the seeds {', '.join(map(str, seeds))}; "
            "the interval of each seed's score is in table.csv."
        )
        test = f", the mean over seeds; p: paired t-test across the {len(seeds)} seeds."
    else:
        lines.append("In brackets the 95 % interval of 1,000 bootstrap resamples.")
        test = (
            "; p: paired bootstrap over the lines of the test set. Where approximate randomization "
            "decides otherwise, its p follows; both are in table.csv."
        )
    if len(baselines):
        lines += [
            f"Difference: the score minus that of {', or without it of '.join(baselines)}{test}",
            f"†: p below {SIGNIFICANT}; ‡: also after Holm's correction for the systems of the "
            f"column; n.s.: not significant (p of {SIGNIFICANT} or more).",
            AGREEMENT,
        ]
    ours, of_others = trained(records), records[records.outside.notna()]
    cells = ours.drop_duplicates(["system", "corpus"])
    if len(cells) < ours.system.nunique() * records.corpus.nunique():
        lines.append(f"{NONE}: params.yaml trains the system on other corpora only.")
    lines += [*_outside_notes(of_others, len(seeds)), *_identical_notes(records)]
    for system, models in ours[ours.models > 1].groupby("system", sort=False).models:
        lines.append(f"{system}: an ensemble of {models.max()} checkpoints of one training.")
    engines = ours.groupby(["engine", "precision"], sort=False).system.unique()
    if len(engines) > 1:
        users = "; ".join(f"{' '.join(key)}: {', '.join(names)}" for key, names in engines.items())
        lines.append(f"Not all systems translated with the same engine and precision. {users}.")
    numbers = literature.rows(records, published)
    if (numbers.scored != "sacrebleu").any():
        lines.append(
            "Columns of other BLEU are for comparison with published numbers: published ones as "
            f"printed, ours scored in the same way. {OTHERWISE}: in ways not computed here."
        )
    lines += [*literature.notes(numbers), *score_tables.published_differences(records, published)]
    return lines if root is None else [*lines, *score_tables.reachable_notes(records, root)]


def _outside_notes(records: pd.DataFrame, seeds: int) -> Iterator[str]:
    """What the rows from outside are, and how they are tested."""
    for (system, about), corpora in records.groupby(["system", "outside"], sort=False).corpus:
        text = " ".join(about.split())
        end = "" if text.endswith((".", "!", "?")) else "."
        yield f"{system} ({OUTSIDE}), {', '.join(corpora.unique())}: {text}{end}"
    if len(records):
        yield (
            f"Rows that were {OUTSIDE} are files of translations, scored in the same way; "
            f"{NONE}: their trainings, and so FLOPs and the like, are not known, or there is no "
            "file of that test set."
        )
    if len(records) and seeds > 1:
        yield (
            "They have one set of translations and the interval of its score. Their p is the "
            "largest of the paired bootstraps against each seed of the baseline, or 1 if the seeds "
            "do not agree which is better."
        )


def _identical_notes(records: pd.DataFrame) -> Iterator[str]:
    """The rows from outside whose file is that of the references, or of another row."""
    for (corpus, test), rows in records.groupby(["corpus", "test"], sort=False):
        for row in rows[rows.outside.notna()].drop_duplicates("system").itertuples():
            same = rows[(rows.hypotheses_sha256 == row.hypotheses_sha256)]
            others = [name for name in same.system.unique() if name != row.system]
            if row.hypotheses_sha256 == row.references_sha256:
                others = ["the references", *others]
            if others:
                yield f"{row.system} on {corpus}, {test}: the same text as {', '.join(others)}."


def _score_columns(
    records: pd.DataFrame,
    results: Sequence[SystemResult],
    metrics: Sequence[str],
    numbers: pd.DataFrame,
    alone: Sequence[str],
) -> Iterator[_Filled]:
    """The columns of each test set of a corpus."""
    group, tests = _group(records), records.test.unique()
    for test in tests:
        column = [result for result in results if result.test == test]
        end = f" {test}" if len(tests) > 1 else ""
        for metric in metrics:
            scores = {e.system: e.scores[metric] for e in column if metric in e.scores}
            if not scores:  # in results.json of an earlier version
                continue
            means = [score.mean for score in scores.values()]
            top = min(means) if metric == "ter" else max(means)
            best = [name for name, score in scores.items() if score.mean == top and len(column) > 1]
            cells: dict[str, str] = {
                name: Number(score, score.mean) for name, score in scores.items()
            }
            if metric == "bleu":
                printed = numbers[numbers.test == test]
                default = printed.scored == "sacrebleu"
                cells |= _printed(printed[default], "bleu")
                yield from _as_published(records[records.test == test], printed[~default], end)
            yield _Filled(Column(METRICS[metric] + end, group), cells, best)
            if metric not in alone:
                yield from _difference_columns(column, metric, group, end)


def _difference_columns(
    results: Sequence[SystemResult], metric: str, group: str, end: str
) -> Iterator[_Filled]:
    """The differences in a metric, and the share of pairs in which people would agree."""
    tested = {e.system: e.differences[metric] for e in results if metric in e.differences}
    if not tested:
        return
    cells: dict[str, str] = {name: Number(each, each.value) for name, each in tested.items()}
    named = "" if metric == "bleu" else f"{METRICS[metric]} "
    yield _Filled(Column(f"{named}difference{end}", group, follows=True), cells)
    agreement: dict[str, str] = {
        name: Number(each.agreement_text, each.agreement)
        for name, each in tested.items()
        if each.agreement is not None and each.significant
    }
    if any(each.agreement is not None for each in tested.values()):
        yield _Filled(Column(f"{named}{AGREE}{end}", group, follows=True), agreement)


def _as_published(records: pd.DataFrame, numbers: pd.DataFrame, end: str) -> Iterator[_Filled]:
    """A column for each variant of BLEU of the published numbers; ours are scored in the same way.

    Our rows are empty for variants that are not computed here.
    """
    means = score_tables.variant_means(records)
    for variant, printed in numbers.groupby("scored", sort=False):
        scores = means.reindex(columns=[variant])[variant].dropna()
        ours = {place[0]: Number(f"{mean:.1f}", mean) for place, mean in scores.items()}
        top = [name for name, score in ours.items() if score.value == max(scores) and len(ours) > 1]
        label = f"BLEU {variant}" if variant in VARIANTS else OTHERWISE
        cells = {**ours, **_printed(printed, "bleu")}
        yield _Filled(Column(label + end, _group(records)), cells, top)


def _cost_columns(records: pd.DataFrame, costs: Costs, numbers: pd.DataFrame) -> Iterator[_Filled]:
    seeds = trained(records).drop_duplicates(["system", "seed"])
    trainings = seeds.groupby("system", sort=False)
    for label, cell in costs.items():
        cells = {system: cell(seeds) for system, seeds in trainings}
        yield _Filled(Column(label, _group(records)), cells)
    if costs and not numbers.training_flops_by_time.isna().all():
        printed = _printed(numbers, "training_flops_by_time")
        yield _Filled(Column(BY_TIME, _group(records)), printed)


def _group(records: pd.DataFrame) -> str:
    """A corpus, with its language pair if its name does not have it."""
    first = records.iloc[0]
    pair = f"{first.source}-{first.target}"
    return str(first.corpus) if pair in first.corpus else f"{first.corpus} ({pair})"


def _names(numbers: pd.DataFrame) -> list[str]:
    return [f"{name} (published)" for name in numbers.system]


def _printed(numbers: pd.DataFrame, column: str) -> dict[str, str]:
    """The cells of published numbers, as printed."""
    known = numbers.dropna(subset=column)
    return {
        name: Number(text, float(text))
        for name, text in zip(_names(known), known[column], strict=True)
    }


def _kinds(results: Sequence[SystemResult]) -> dict[str, str]:
    """The kind of each system's row."""
    kinds = {result.system: "outside" if result.outside else "" for result in results}
    return kinds | {each.difference.baseline: "baseline" for each in results if each.difference}


def _row(name: str, kind: str, filled: Sequence[_Filled]) -> Row:
    cells = (column.cells.get(name, Number(NONE, None)) for column in filled)
    best = (place for place, column in enumerate(filled, 1) if name in column.best)
    mark = {"baseline": "baseline", "outside": OUTSIDE}.get(kind)
    head = f"{name} ({mark})" if mark else name
    return Row((head, *cells), kind, frozenset(best))


def tex(settings: Settings, records: pd.DataFrame, root: Path = Path()) -> str:
    """The scores and the training cost as two LaTeX tables."""
    experiment, published = settings.experiment, settings.published
    caption = f"Results of {experiment}. {' '.join(notes(records, published, root))}"
    best = "Bold: the best of ours."
    if records.outside.notna().any():
        best = "Bold: the best of those scored here."
    return (
        "% Needs \\usepackage{booktabs,graphicx}.\n"
        + latex(scores(records, published=published), f"{caption} {best}")
        + "\n"
        + latex(costs(records, measured=False), f"Training cost of {experiment}.")
    )
