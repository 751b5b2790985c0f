"""Tables of all measures: a row for each system on a test set, a column for each measure or bucket.

With several seeds, figures are means over them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from statistics import fmean

from bleuprint.config.published import Published
from bleuprint.report.frame import Records
from bleuprint.report.grid import NONE, Grid, Number, Row, grid
from bleuprint.report.paired import p_text
from bleuprint.report.published import literature
from bleuprint.report.system_results import PLACE, SystemResult, by_test, system_results
from bleuprint.scoring.bleu_variants import COMPOUND_SPLIT, PAPERS_ONLY, VARIANTS
from bleuprint.scoring.breakdown import COUNT, COUNTS, LENGTH, LENGTHS, WORD_ACCURACY
from bleuprint.scoring.measures import FAULT_KEYS, MEASURES, SCORES
from bleuprint.scoring.output_faults import ANY
from bleuprint.scoring.reference_loss import LOSSES
from bleuprint.scoring.significance import SIGNIFICANT

HEADS = ("System", "Corpus", "Test set")
DOCUMENT = "document"
# Of fewer documents, an interval is a tenth or more too narrow: the normal distribution's in place
# of Student's, and a deviation that is divided by n in place of n - 1.
FEW = 20
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)

# The measure and the group of lines of a column, by its head.
Columns = Mapping[str, tuple[str, str]]
Form = Callable[[SystemResult, str, str], str]


def table(
    results: Sequence[SystemResult],
    columns: Columns,
    form: Form,
    sizes: tuple[str, Callable[[SystemResult, float], float]] | None = None,
) -> Grid | None:
    """The columns that have a value; None if none has.

    `sizes`: the name of a row above those of each test set, with a number by the first system that
    has the column, and the units of its score.
    """
    shown = {
        head: of for head, of in columns.items() if any(of in result.rows for result in results)
    }
    rows = list[tuple[str, ...]]()
    for test, of_test in by_test(results).items():
        if sizes:
            name, size = sizes
            first = [next((r for r in of_test if of in r.rows), None) for of in shown.values()]
            units = [
                nan if result is None else size(result, result.rows[of][0].units)
                for result, of in zip(first, shown.values(), strict=True)
            ]
            cells = [Number.of(each, "{:,.0f}".format) for each in units]
            rows.append((f"({name})", *test, *cells))
        for result in of_test:
            rows.append((result.name, *test, *(form(result, *of) for of in shown.values())))
    return grid(HEADS, list(shown), rows) if shown else None


def full(result: SystemResult, measure: str, group: str) -> Number:
    """The value with its interval or deviation, and the mark of its difference."""
    score, tested = result.score(measure, group), result.difference_in(measure, group)
    if score is None:
        return Number(NONE, None)
    return Number(f"{score}{tested.mark if tested else ''}", score.mean)


def value(result: SystemResult, measure: str, group: str) -> Number:
    score = result.score(measure, group)
    return Number(NONE, None) if score is None else Number(score.number, score.mean)


def measured_scores(records: Records) -> list[str]:
    """The scores that have a table: all but COMET without a model."""
    return [key for key in SCORES if (records.measures.measure == key).any()]


def losses(records: Records, published: Sequence[Published] = ()) -> Grid | None:
    """Loss and perplexity of the references, below those of the published systems."""
    results = [each for each in system_results(records) if not each.outside]
    columns = {measure.label: (measure.key, "") for measure in LOSSES}
    ours = table(results, columns, value)
    numbers = literature.rows(records.cells, published).dropna(subset="test_perplexity")
    of_others = [
        Row(
            (
                *(f"{row.system} (published)", row.corpus, row.test),
                *(f"{row.test_loss:.3f}", f"{row.test_perplexity:.2f}", NONE),
            ),
            "published",
        )
        # those of one system that differ in scoring have one perplexity
        for row in numbers.drop_duplicates(PLACE).itertuples()
    ]
    return ours and Grid(ours.columns, (*of_others, *ours.rows))


def variants(records: Records) -> Grid | None:
    """BLEU as the headline and in all VARIANTS, with the difference from the headline."""
    labels = {v: f"{v} ({PAPERS_ONLY})" if v == COMPOUND_SPLIT else v for v in VARIANTS}

    def form(result: SystemResult, measure: str, group: str) -> Number:
        score = result.score(measure, group)
        if measure == "bleu" or score is None:
            return value(result, measure, group)
        return Number(f"{score.number} ({score.mean - result.bleu.mean:+z.1f})", score.mean)

    columns = {"BLEU": ("bleu", "")} | {label: (v, "") for v, label in labels.items()}
    return table(system_results(records), columns, form)


def by_length(records: Records) -> Grid | None:
    """BLEU by source length, and the length ratio."""
    columns = {bucket: ("bleu", f"{LENGTH} {bucket}") for bucket in LENGTHS}
    ratio = {"Length ratio": ("length_ratio", "")}
    return table(system_results(records), columns | ratio, value, ("lines", _units))


def by_count(records: Records) -> Grid | None:
    """Percentage of words found, by training frequency; None if no corpus has words."""
    columns = {bucket: (WORD_ACCURACY, f"{COUNT} {bucket}") for bucket in COUNTS}
    return table(system_results(records), columns, value, ("words", _units))


def documents(records: Records) -> Grid | None:
    """Scores with intervals and tests by document; None if no test set says its documents."""
    results = [each for each in system_results(records) if ("dbleu", DOCUMENT) in each.rows]
    columns = {MEASURES[key].label: (key, DOCUMENT) for key in ("dbleu", *SCORES)}
    return table(results, columns, full, ("documents", _units))


def document_findings(records: Records) -> Iterator[str]:
    """A sentence on each test set: how much wider the interval of BLEU is by document.

    And on each system whose difference is significant by line only.
    """
    results = [each for each in system_results(records) if ("dbleu", DOCUMENT) in each.rows]
    for (corpus, test), of_test in by_test(results).items():
        where = f"{corpus}, test set {test}"
        widths = [[_width(r, group) for group in (DOCUMENT, "")] for r in of_test]
        times = [by_document / by_line for by_document, by_line in widths if by_line]
        documents = int(of_test[0].rows["dbleu", DOCUMENT][0].units)
        if times and documents > 1:
            low, high = (f"{each:.1f}" for each in (min(times), max(times)))
            few = f" Of fewer than {FEW} documents, it is rather too narrow."
            yield (
                f"{where}, {documents:,} documents: by document the interval of BLEU is "
                f"{low if low == high else f'{low} to {high}'} times as wide as by "
                f"line.{few if documents < FEW else ''}"
            )
        for result in of_test:
            by_line, by_document = result.difference, result.difference_in("bleu", DOCUMENT)
            if by_line and by_document and by_line.significant and not by_document.significant:
                yield (
                    f"{where}: the difference of {result.system} from {by_line.baseline} in BLEU "
                    f"is significant by line ({p_text(by_line.p)}), not by document "
                    f"({p_text(by_document.p)})."
                )


def faults(records: Records) -> Grid | None:
    """The lines with each fault that occurs, and how many references have it."""
    results = system_results(records)
    occurs = [
        name
        for name in FAULT_KEYS
        if name == ANY
        or any(
            row.value > 0 or row.units < result.first.lines
            for result in results
            for row in result.rows.get((name, ""), ())
        )
    ]

    def references(result: SystemResult, units: float) -> float:
        return float(result.first.lines - units) or nan  # of any fault, all lines count

    columns = {MEASURES[name].label: (name, "") for name in occurs}
    return table(results, columns, full, ("references", references))


def fault_findings(records: Records) -> list[str]:
    """The significant differences from the baseline, a sentence each, by p."""
    found = []
    for result in system_results(records):
        for name in FAULT_KEYS:
            tested, score = result.difference_in(name), result.score(name)
            if tested and score and tested.p < SIGNIFICANT:
                other = score.mean - tested.value
                times = f", {score.mean / other:.1f} times as many" if other > 0 else ""
                text = (
                    f"{result.corpus}, {result.test}: {result.name} has {score.mean:.3g} lines "
                    f"with {name!r}, {tested.baseline} {other:.3g}{times}: {p_text(tested.p)}"
                )
                found.append((tested.p, f"{text}{tested.mark}"))
    return [text for _, text in sorted(found, key=lambda each: each[0])]


def _units(_: SystemResult, units: float) -> float:
    return units


def _width(result: SystemResult, group: str) -> float:
    """That of the interval of BLEU, the mean over seeds."""
    rows = result.rows["bleu", group]
    return fmean(row.high - row.low for row in rows)
