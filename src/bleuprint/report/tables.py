"""Tables of all measures: below each test set a row a system, with a column a measure or bucket.

With several seeds, figures are means over them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from statistics import fmean

from bleuprint.config.published import Published
from bleuprint.report.arranged import stacked
from bleuprint.report.frame import Records
from bleuprint.report.grid import NONE, Grid, Number, Row, grid, span
from bleuprint.report.paired import p_text
from bleuprint.report.published import literature
from bleuprint.report.system_results import PLACE, SystemResult, by_test, system_results
from bleuprint.report.task import tasks_of
from bleuprint.scoring.breakdown import COUNT, COUNTS, LENGTH, LENGTHS, WORD_ACCURACY
from bleuprint.scoring.measures import FAULT_KEYS, MEASURES, SCORES
from bleuprint.scoring.output_faults import ANY, CUT, CUT_NOTE
from bleuprint.scoring.reference_loss import LOSSES

DOCUMENT = "document"
LOSS_NOTE = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)
Form = Callable[[SystemResult, str, str], str]
Size = Callable[[SystemResult, float], float]


def table(
    results: Sequence[SystemResult],
    columns: Mapping[str, tuple[str, str]],
    form: Form,
    sizes: tuple[str, Size] | None = None,
    above: Mapping[tuple[str, str], Sequence[Row]] | None = None,
) -> Grid | None:
    """The columns, by head a measure and a group of lines, that have a value; None if none has.

    `sizes`: what is counted beside the name of each test set, and the number by the first system
    that has the column, and the units of its score; `above`: rows above those of a test set.
    """
    shown = {head: of for head, of in columns.items() if any(of in r.rows for r in results)}
    tables, beside = dict[str, Grid](), dict[str, dict[str, Number]]()
    for place, of_test in by_test(results).items():
        name = ", ".join(place)
        if sizes:
            noun, size = sizes
            units = {
                head: next((size(r, r.rows[of][0].units) for r in of_test if of in r.rows), nan)
                for head, of in shown.items()
            }
            known = {head: n for head, n in units.items() if not isnan(n)}
            name += f" ({noun})" if known else ""
            beside[name] = {head: Number.of(n, "{:,.0f}".format) for head, n in known.items()}
        rows = ((r.name, *(form(r, *of) for of in shown.values())) for r in of_test)
        ours = grid(["System"], list(shown), rows)
        tables[name] = replace(ours, rows=(*(above or {}).get(place, ()), *ours.rows))
    return stacked(tables, beside) if shown else None


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
    numbers = literature.rows(records.cells, published).dropna(subset="test_perplexity")
    tasks, of_others = tasks_of(records.cells), dict[tuple[str, str], list[Row]]()
    # those of one system that differ in scoring have one perplexity
    for row in numbers.drop_duplicates(PLACE).itertuples():
        cells = f"{row.system} (published)", f"{row.test_loss:.3f}", f"{row.test_perplexity:.2f}"
        place = tasks[row.corpus].name, row.test
        of_others.setdefault(place, []).append(Row((*cells, Number(NONE, None)), "published"))
    columns = {measure.label: (measure.key, "") for measure in LOSSES}
    results = [each for each in system_results(records) if not each.outside]
    return table(results, columns, value, above=of_others)


def by_length(records: Records) -> Grid | None:
    """BLEU by source length, and the length ratio."""
    columns = {bucket: ("bleu", f"{LENGTH} {bucket}") for bucket in LENGTHS}
    ratio = {"Length ratio": ("length_ratio", "")}
    return table(system_results(records), columns | ratio, value, ("lines", _units))


def by_count(records: Records) -> Grid | None:
    """Percentage of words found, by training frequency; None if no corpus has words."""
    columns = {bucket: (WORD_ACCURACY, f"{COUNT} {bucket}") for bucket in COUNTS}
    return table(system_results(records), columns, value, ("words", _units))


def _by_document(records: Records) -> list[SystemResult]:
    """The results on test sets that say their documents."""
    return [each for each in system_results(records) if ("dbleu", DOCUMENT) in each.rows]


def documents(records: Records) -> Grid | None:
    """Scores with intervals and tests by document; None if no test set says its documents."""
    columns = {MEASURES[key].label: (key, DOCUMENT) for key in ("dbleu", *SCORES)}
    return table(_by_document(records), columns, full, ("documents", _units))


def document_findings(records: Records) -> Iterator[str]:
    """A sentence on each test set: how much wider the interval of BLEU is by document.

    And on each system whose difference is significant by line only.
    """
    for (corpus, test), results in by_test(_by_document(records)).items():
        where = f"{corpus}, test set {test}"
        number = int(results[0].rows["dbleu", DOCUMENT][0].units)
        times = []
        for result in results:
            width_by_line = _width(result, "")
            if number > 1 and width_by_line:
                times.append(_width(result, DOCUMENT) / width_by_line)
        if times:
            yield (
                f"{where}, {number:,} documents: by document the interval of BLEU is "
                f"{span(times)} times as wide as by line."
            )
        for result in results:
            by_line, by_document = result.difference, result.difference_in("bleu", DOCUMENT)
            if by_line and by_document and by_line.significant and not by_document.significant:
                yield (
                    f"{where}: the difference of {result.label} from {by_line.baseline} in BLEU "
                    f"is significant by line ({p_text(by_line.p)}), not by document "
                    f"({p_text(by_document.p)})."
                )


def faults(records: Records) -> Grid | None:
    """The lines with each fault that occurs, and how many references have it."""
    results = system_results(records)

    def occurs(name: str) -> bool:
        """Whether a translation has it, or a reference, whose line then does not count."""
        rows = ((row, r.first.lines) for r in results for row in r.rows.get((name, ""), ()))
        return any(row.value > 0 or row.units < lines for row, lines in rows)

    def references(result: SystemResult, units: float) -> float:
        return float(result.first.lines - units) or nan  # of any fault, all lines count

    names = [name for name in FAULT_KEYS if name == ANY or occurs(name)]
    columns = {MEASURES[name].label: (name, "") for name in names}
    return table(results, columns, full, ("references", references))


def fault_notes(records: Records) -> list[str]:
    """What is said of faults below their table that few experiments have."""
    return [CUT_NOTE] if (records.measures.measure == CUT).any() else []


def signatures(records: Records) -> Iterator[str]:
    """Each signature once; BLEU's depends on the target language, through the tokenizer."""
    frame = records.frame()
    frame = frame[(frame.signature != "") & frame.measure.isin([*SCORES, "dbleu"])]
    groups = frame.groupby(["measure", "signature"], sort=False).target.unique()
    for (measure, signature), targets in groups.items():
        languages = f" ({', '.join(targets)})" if measure == "bleu" else ""
        yield f"{MEASURES[measure].label}{languages}: `{signature}`"


def _units(_: SystemResult, units: float) -> float:
    return units


def _width(result: SystemResult, group: str) -> float:
    """That of the interval of BLEU, the mean over seeds."""
    return fmean(row.high - row.low for row in result.rows["bleu", group])
