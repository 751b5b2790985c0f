"""How to read the scores: notes below the tables, a sentence or two each."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import Cell, folder
from bleuprint.config.published import Published
from bleuprint.report.frame import Records, trained
from bleuprint.report.grid import span
from bleuprint.report.published import literature
from bleuprint.report.system_results import OUTSIDE, SystemResult, by_test, system_results
from bleuprint.report.task import tasks_of
from bleuprint.runtime.counts import counted
from bleuprint.runtime.errors import UserError
from bleuprint.scoring import reachable
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.floor import MATCHES, SENTENCES, TOO_FEW, TOO_LOW
from bleuprint.scoring.human_agreement import AGREEMENT
from bleuprint.scoring.power import POWER, detectable, detectable_over_seeds
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.training.history import EarlyEnd, TrainingFacts

OTHERWISE = "BLEU (other variants)"


def notes(
    records: Records, published: Sequence[Published] = (), root: Path | None = None
) -> list[str]:
    """How to read the scores, a sentence or two each; with `root` also what it says of them."""
    numbers = literature.rows(records.cells, published)
    lines = [
        "BLEU is sacreBLEU's default (signatures in results.json), on detokenized text; with "
        "tokenize: none, on the text as it is. FLOPs of training are counted from the shapes of "
        "the matrices.",
        *legend(records),
    ]
    tested = (of for each in system_results(records) for of in each.differences.values())
    if any(of.agreement for of in tested):
        lines.append(AGREEMENT)
    lines += [*_of_tasks(records.cells), *_of_rows(records.cells), *file_warning_notes(records)]
    if (numbers.scored != "sacrebleu").any():
        lines.append(
            "Columns of other BLEU are for comparison with published numbers: published ones as "
            f"printed, ours scored in the same way. {OTHERWISE}: in ways not computed here."
        )
    lines += [*literature.notes(numbers), *published_differences(records, published)]
    lines += filter(None, [detectable_note(records)])
    if root is None:
        return lines
    return [*lines, *early_end_notes(records.cells, root), *reachable_notes(records.cells, root)]


def legend(records: Records) -> Iterator[str]:
    """What intervals, differences and their marks are."""
    seeds, baselines = records.cells.seed.nunique(), records.measures.baseline.dropna().unique()
    if seeds > 1:
        yield f"±: the standard deviation over {seeds} seeds."
    if seeds == 1 or records.cells.outside.notna().any():
        yield "In brackets: the 95 % bootstrap interval."
    if len(baselines):
        test = f"paired t-test over {seeds} seeds" if seeds > 1 else "paired bootstrap, one tail"
        of = ", on corpora without it from ".join(baselines)
        yield (
            f"Difference: from {of}; †: p below {SIGNIFICANT} ({test}); ‡: also after Holm's "
            "correction for the rows of the test set; n.s.: not significant."
        )
        yield from floor_notes(records)
        if seeds == 1:
            yield "One seed: what is tested are these trainings, not what other seeds would give."


def floor_notes(records: Records) -> Iterator[str]:
    """On which test sets systems are too low, or sentences too few, for a test."""
    for (task, test), results in by_test(system_results(records)).items():
        low = [each.label for each in results if each.floor == TOO_LOW]
        few = [each.label for each in results if each.floor == TOO_FEW]
        if low:
            baseline = next(each.baseline.label for each in results if each.baseline)
            yield (
                f"{task}, {test}: {' and '.join(low)} and {baseline} are {TOO_LOW}: they match "
                f"fewer than {MATCHES} 4-grams of the references."
            )
        if few:
            yield (
                f"{task}, {test}: {TOO_FEW}: {results[0].first.lines}, where a test needs "
                f"{SENTENCES}."
            )


def _of_tasks(cells: pd.DataFrame) -> Iterator[str]:
    """Which corpora have the same test sets."""
    for task in dict.fromkeys(tasks_of(cells).values()):
        if len(task.corpora) > 1:
            yield (
                f"{task.name}: {', '.join(task.corpora)} have the same test sets. Each row is a "
                "system on one of them, tested against the first system on the first of them."
            )


def _of_rows(cells: pd.DataFrame) -> Iterator[str]:
    """What sets some rows apart: other corpora, made elsewhere, ensembles, engines."""
    ours, of_others = trained(cells), cells[cells.outside.notna()]
    for (system, about), corpora in of_others.groupby(["system", "outside"], sort=False).corpus:
        text = " ".join(about.split())
        end = "" if text.endswith((".", "!", "?")) else "."
        yield f"{system} ({OUTSIDE}), {', '.join(corpora.unique())}: {text}{end}"
    if len(of_others):
        yield (
            f"Rows that were {OUTSIDE} are files of translations, scored in the same way; FLOPs "
            "and the like of their trainings are not known."
        )
        if cells.seed.nunique() > 1:
            yield (
                "Their p is the largest of the paired bootstraps against each seed of the "
                "baseline, or 1 if the seeds do not agree which is better."
            )
    for system, models in ours[ours.models > 1].groupby("system", sort=False).models:
        yield f"{system}: an ensemble of {models.max()} checkpoints of one training."
    engines = ours.groupby(["engine", "precision"], sort=False).system.unique()
    if len(engines) > 1:
        users = "; ".join(f"{' '.join(key)}: {', '.join(names)}" for key, names in engines.items())
        yield f"Not all systems translated with the same engine and precision. {users}."


def file_warning_notes(records: Records) -> Iterator[str]:
    """The warnings on files of translations that were not made here, each with its row."""
    for result in system_results(records):
        for measure, warning in result.rows:
            if measure == WARNING:
                yield f"Look at {result.name}, {result.corpus}, {result.test}: {warning}."


def reachable_notes(cells: pd.DataFrame, root: Path = Path()) -> Iterator[str]:
    """A note for each test set on which a perfect translation does not reach 100 BLEU."""
    for corpus, tests in cells.groupby("corpus", sort=False).test:
        yield from reachable.notes(folder(corpus, "statistics", root), corpus, tests.unique())


def early_ends(cells: pd.DataFrame, root: Path = Path()) -> dict[Cell, EarlyEnd]:
    """The trainings that patience ended, with the reason; without those that are not on disk."""
    found = {}
    for row in trained(cells).drop_duplicates(list(Cell._fields)).itertuples():
        cell = Cell(row.system, row.corpus, row.seed)
        path = root / cell.results / "training.json"
        if not path.exists():
            continue
        with suppress(UserError):  # the table shows what is recorded, whatever is on disk
            facts = TrainingFacts.read(path)
            if facts.early_end and facts.fingerprint == row.training_sha256:
                found[cell] = facts.early_end
    return found


def early_end_notes(
    cells: pd.DataFrame, root: Path = Path(), *, only_warnings: bool = False
) -> Iterator[str]:
    """A note for each training that patience ended; `only_warnings`: perhaps too early."""
    for cell, early_end in early_ends(cells, root).items():
        if early_end.warning or not only_warnings:
            warning = f"; {early_end.warning}" if early_end.warning else ""
            yield f"{cell.system} on {cell.corpus}, seed {cell.seed}, {early_end}{warning}."


def published_differences(records: Records, published: Sequence[Published]) -> Iterator[str]:
    """A line for each published number that names a system: its BLEU, counted alike, minus this."""
    results = {(e.system, e.corpus, e.test): e for e in system_results(records)}
    for number in published:
        result = results.get((str(number.system), number.corpus, number.test))
        variant = "bleu" if number.scored == "sacrebleu" else number.scored
        if result and (score := result.score(variant)):
            counted = "sacreBLEU's default" if variant == "bleu" else variant
            yield (
                f"{number.system} minus {number.name} (published), {number.corpus} {number.test}: "
                f"{score.mean - number.bleu:+z.1f} BLEU, {counted}."
            )


def detectable_note(records: Records) -> str:
    """The differences in BLEU that the test sets, and the seeds, show; empty if not known."""
    places, several = dict[str, list[str]](), len(trained(records.cells).seed.unique()) > 1
    for (corpus, test), results in by_test(system_results(records)).items():
        if text := _detectable(results):
            places.setdefault(text, []).append(f"{corpus}, {test}")
    if not places:
        return ""
    needed = "; ".join(
        text if len(places) == 1 else f"{text} ({'; '.join(of_text)})"
        for text, of_text in places.items()
    )
    return (
        f"Detectable: to be found significant in {POWER:.0%} of such experiments, a difference "
        f"from the baseline has to be {needed}. Smaller ones take more sentences or seeds."
        + ("" if several else " This is the noise of lines; that of trainings takes several seeds.")
    )


def _detectable(results: Sequence[SystemResult]) -> str:
    """The differences in BLEU that a test set shows; empty if not known."""
    tested = [of for result in results if (of := result.difference) and of.is_tested]
    lines = int(results[0].first.lines)
    parts = list[str]()
    errors = [detectable(each.error) for each in tested if each.error]
    if errors and lines >= SENTENCES:
        parts.append(f"{span(errors)} BLEU on {counted(lines, 'sentence')}")
    seeds = len(results[0].seeds)
    deviations = [each.deviation for each in tested if each.deviation]
    if errors and deviations:
        shown = [detectable_over_seeds(seeds, each) for each in deviations]
        unit = "" if parts else " BLEU"
        parts.append(f"{span(shown)}{unit} over {seeds} seeds")
    return " and ".join(parts)
