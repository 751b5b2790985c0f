"""How to read the scores: notes below the tables, a sentence or two each."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.paths import Run, corpus_folder
from bleuprint.report.frame import Records, task_names, trained_runs
from bleuprint.report.paired import p_text
from bleuprint.report.published import literature
from bleuprint.report.score_frame import (
    NOT_TRAINED,
    bleu_rows,
    by_test_set,
    display_name,
    is_significant,
    score_frame,
    select_metric,
)
from bleuprint.report.score_tables import DOCUMENT
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted, join_with_and
from bleuprint.scoring import bleu_ceiling
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.floor import MIN_MATCHES, MIN_SENTENCES, TOO_FEW, TOO_LOW
from bleuprint.scoring.human_agreement import AGREEMENT_NOTE
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS
from bleuprint.scoring.output_errors import CUT_OFF, CUT_OFF_NOTE
from bleuprint.scoring.power import POWER, detectable_difference, detectable_difference_over_seeds
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL
from bleuprint.training.history import EarlyEnd, TrainingFacts


def notes(records: Records, root: Path | None = None) -> list[str]:
    """Return how to read the scores, a sentence or two each.

    Args:
        records: The records of the experiment.
        root: The project, if the notes shall also say what its files say of trainings and texts.
    """
    scores = score_frame(records)
    lines = [
        "BLEU is sacreBLEU's default (signatures in results.json), on detokenized text; with "
        "tokenize: none, on the text as it is. FLOPs of training are counted from the shapes of "
        "the matrices.",
        *legend(records),
    ]
    of_lines = scores[(scores.group == "") & scores.metric.isin(SCORE_KEYS)]
    if of_lines.agreement.notna().any():
        lines.append(AGREEMENT_NOTE)
    lines += _of_tasks(records.runs)
    lines += _of_rows(records.runs)
    lines += file_warning_notes(records)
    lines += literature.notes(records)
    lines += literature.differences(records)
    detectable_text = detectable_note(records)
    if detectable_text:
        lines.append(detectable_text)
    if root is not None:
        lines += early_end_notes(records.runs, root)
        lines += bleu_ceiling_notes(records.runs, root)
    return lines


def legend(records: Records) -> Iterator[str]:
    """What intervals, differences and their marks are."""
    seeds, baselines = records.runs.seed.nunique(), records.metrics.baseline.dropna().unique()
    if seeds > 1:
        yield f"± gives the standard deviation over {seeds} seeds."
    if seeds == 1 or records.runs.training_sha256.isna().any():
        yield "Brackets give the 95% confidence interval (95% CI, bootstrap)."
    if len(baselines):
        test = f"paired t-test over {seeds} seeds" if seeds > 1 else "paired bootstrap, one tail"
        of = ", on corpora without it from ".join(baselines)
        yield (
            f"Δ is the difference from {of}. † marks p below {SIGNIFICANCE_LEVEL} ({test}). ‡ "
            f"marks p below {SIGNIFICANCE_LEVEL} after Holm's correction for the rows of the test "
            "set. n.s. means not significant."
        )
        yield from floor_notes(records)
        if seeds == 1:
            yield "With one seed, the test compares these training runs; other seeds may differ."


def floor_notes(records: Records) -> Iterator[str]:
    """Yield a note for each test set on which no significance can be tested, with the reason.

    Either systems match too few n-grams of the references, or the test set has too few sentences.
    """
    for task, test_set, scores in by_test_set(score_frame(records)):
        bleu_scores = bleu_rows(scores)
        too_low = [score for score in bleu_scores if score.why_untested == TOO_LOW]
        if too_low:
            systems = join_with_and(score.row_name for score in too_low)
            yield (
                f"{task}, {test_set}: {systems} and {too_low[0].baseline} are {TOO_LOW}: they "
                f"match fewer than {MIN_MATCHES} 4-grams of the references."
            )
        if any(score.why_untested == TOO_FEW for score in bleu_scores):
            sentences = bleu_scores[0].lines
            yield f"{task}, {test_set}: {TOO_FEW}: {sentences}, where a test needs {MIN_SENTENCES}."


def _of_tasks(runs: pd.DataFrame) -> Iterator[str]:
    """Yield which corpora have the same test sets."""
    corpora_of: dict[str, list[str]] = {}
    for corpus, task in task_names(runs).items():
        corpora_of.setdefault(task, []).append(corpus)
    for task, corpora in corpora_of.items():
        if len(corpora) > 1:
            yield (
                f"{task}: {', '.join(corpora)} have the same test sets. Each row is a system on "
                "one of them, tested against the first system on the first of them."
            )


def _of_rows(runs: pd.DataFrame) -> Iterator[str]:
    """What sets some rows apart: other corpora, made elsewhere, ensembles, engines."""
    ours = trained_runs(runs)
    of_others = runs[runs.training_sha256.isna()]
    for (system, about), corpora in of_others.groupby(["system", "about"], sort=False).corpus:
        text = " ".join(about.split())
        end = "" if text.endswith((".", "!", "?")) else "."
        yield f"{system}{NOT_TRAINED}, {', '.join(corpora.unique())}: {text}{end}"
    if len(of_others):
        yield (
            "External systems are files of translations, scored in the same way; the cost of their "
            "training is not known."
        )
        if runs.seed.nunique() > 1:
            yield (
                "The p of an external system is the largest of the paired bootstraps against each "
                "seed of the baseline, or 1 if the seeds do not agree which is better."
            )
    for system, models in ours[ours.models > 1].groupby("system", sort=False).models:
        yield f"{system}: an ensemble of {models.max()} checkpoints of one training."
    engines = ours.groupby(["engine", "precision"], sort=False).system.unique()
    if len(engines) > 1:
        users = "; ".join(f"{' '.join(key)}: {', '.join(names)}" for key, names in engines.items())
        yield f"Not all systems translated with the same engine and precision. {users}."


def file_warning_notes(records: Records) -> Iterator[str]:
    """Yield the warnings on files of translations that were not made here, each with its row."""
    scores = score_frame(records)
    for row in scores[scores.metric == WARNING].itertuples():
        yield f"Look at {display_name(row)}, {row.corpus}, {row.test}: {row.group}."


def bleu_ceiling_notes(runs: pd.DataFrame, root: Path = Path()) -> Iterator[str]:
    """A note for each test set on which a perfect translation does not reach 100 BLEU."""
    for corpus, tests in runs.groupby("corpus", sort=False).test:
        yield from bleu_ceiling.ceiling_notes(
            corpus_folder(corpus, "corpus_stats", root), corpus, tests.unique()
        )


def early_ends(runs: pd.DataFrame, root: Path = Path()) -> dict[Run, EarlyEnd]:
    """The trainings that patience ended, with the reason; without those that are not on disk."""
    found = {}
    for row in trained_runs(runs).drop_duplicates(list(Run._fields)).itertuples():
        run = Run(row.system, row.corpus, row.seed)
        path = root / run.results_folder / "training.json"
        if not path.exists():
            continue
        with suppress(UserError):  # the table shows what is recorded, whatever is on disk
            facts = TrainingFacts.read(path)
            if facts.early_end and facts.fingerprint == row.training_sha256:
                found[run] = facts.early_end
    return found


def early_end_notes(
    runs: pd.DataFrame, root: Path = Path(), *, only_warnings: bool = False
) -> Iterator[str]:
    """A note for each training that patience ended; `only_warnings`: perhaps too early."""
    for run, early_end in early_ends(runs, root).items():
        if early_end.warning or not only_warnings:
            warning = f"; {early_end.warning}" if early_end.warning else ""
            yield f"{run.system} on {run.corpus}, seed {run.seed}, {early_end}{warning}."


def document_notes(records: Records) -> Iterator[str]:
    """Yield for each test set how much wider the interval of BLEU is by document.

    And each system whose difference is significant by line only.
    """
    for task, test, scores in by_test_set(score_frame(records)):
        of_dbleu = select_metric(scores, "dbleu", DOCUMENT)
        if of_dbleu.empty:
            continue
        where = f"{task}, test set {test}"
        documents = int(of_dbleu.units.iloc[0])
        lines_of = {row.row_name: row for row in select_metric(scores, "bleu").itertuples()}
        rows = list(select_metric(scores, "bleu", DOCUMENT).itertuples())
        times = []
        for row in rows:
            width_by_line = lines_of[row.row_name].ci_width
            if documents > 1 and width_by_line:
                times.append(row.ci_width / width_by_line)
        if times:
            yield (
                f"{where}, {documents:,} documents: by document the interval of BLEU is "
                f"{span(times)} times as wide as by line."
            )
        for row in rows:
            by_line = lines_of[row.row_name]
            is_significant_by_document = is_significant(row.difference, row.p)
            if by_line.mark and pd.notna(row.difference) and not is_significant_by_document:
                yield (
                    f"{where}: the difference of {row.row_name} from {row.baseline} in BLEU is "
                    f"significant by line ({p_text(by_line.p)}), not by document ({p_text(row.p)})."
                )


def error_notes(records: Records) -> list[str]:
    """Return what is said of errors below their table that few experiments have."""
    return [CUT_OFF_NOTE] if (records.metrics.metric == CUT_OFF).any() else []


def signatures(records: Records) -> Iterator[str]:
    """Yield each signature once; BLEU's depends on the target language, through the tokenizer."""
    scores = score_frame(records)
    signed = scores[(scores.signature != "") & scores.metric.isin([*SCORE_KEYS, "dbleu"])]
    groups = signed.groupby(["metric", "signature"], sort=False).target.unique()
    for (metric, signature), targets in groups.items():
        languages = f" ({', '.join(targets)})" if metric == "bleu" else ""
        yield f"{METRICS[metric].label}{languages}: `{signature}`"


def detectable_note(records: Records) -> str:
    """Return the differences in BLEU that the test sets, and the seeds, show; empty if unknown."""
    places: dict[str, list[str]] = {}
    for task, test, scores in by_test_set(score_frame(records)):
        text = _detectable(bleu_rows(scores))
        if text:
            places.setdefault(text, []).append(f"{task}, {test}")
    if not places:
        return ""
    needed = []
    for text, of_text in places.items():
        needed.append(text if len(places) == 1 else f"{text} ({'; '.join(of_text)})")
    note = (
        f"Minimum detectable difference ({POWER:.0%} power): {'; '.join(needed)}. Detecting "
        "smaller differences requires more sentences or more seeds."
    )
    if trained_runs(records.runs).seed.nunique() > 1:
        return note
    return (
        f"{note} This covers the sampling error of the test set; seed variance requires several "
        "seeds."
    )


def _detectable(rows: Sequence[Any]) -> str:
    """Return the differences in BLEU that a test set shows; empty if they are not known."""
    tested = [row for row in rows if pd.notna(row.p)]
    errors = [detectable_difference(row.standard_error) for row in tested if row.standard_error]
    if not errors:
        return ""
    parts = []
    if rows[0].lines >= MIN_SENTENCES:
        parts.append(f"{span(errors)} BLEU on {counted(int(rows[0].lines), 'sentence')}")
    seeds = int(rows[0].seeds)
    deviations = [row.difference_deviation for row in tested if row.difference_deviation > 0]
    if deviations:
        shown = [detectable_difference_over_seeds(seeds, each) for each in deviations]
        unit = "" if parts else " BLEU"
        parts.append(f"{span(shown)}{unit} over {seeds} seeds")
    return join_with_and(parts)


def span(values: Sequence[float]) -> str:
    """Return the lowest to the highest number, or the only one."""
    low = f"{min(values):.1f}"
    high = f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"
