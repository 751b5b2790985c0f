"""The notes below the tables of scores: how to read them, and what makes them weak.

`all_notes` returns all of them; the terminal and the HTML report show some of them in other places.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import Run, corpus_folder
from bleuprint.report.accepted_notes import accepted_notes
from bleuprint.report.frame import Records
from bleuprint.report.paired import format_p_value
from bleuprint.report.pivot_tables import DOCUMENT_GROUP
from bleuprint.report.published import literature
from bleuprint.report.score_frame import (
    UNTRAINED_SUFFIX,
    ScoreRow,
    bleu_rows,
    by_test_set,
    display_name,
    score_frame,
    score_rows,
    select_metric,
)
from bleuprint.report.score_tables import measured_scores
from bleuprint.report.score_texts import is_significant
from bleuprint.report.tasks import task_names
from bleuprint.report.training_costs import one_row_per_training, trained_runs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted, join_with_and
from bleuprint.scoring import bleu_ceiling
from bleuprint.scoring.file_warnings import WARNING
from bleuprint.scoring.human_agreement import AGREEMENT_NOTE
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.minimum_for_test import (
    MIN_MATCHED_4_GRAMS,
    MIN_SENTENCES,
    TOO_FEW_MATCHES,
    TOO_FEW_SENTENCES,
)
from bleuprint.scoring.output_errors import CUT_OFF, CUT_OFF_NOTE
from bleuprint.scoring.power import POWER, detectable_difference, detectable_difference_over_seeds
from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL
from bleuprint.training.history import EarlyEnd, TrainingFacts


def all_notes(records: Records, root: Path | None = None) -> list[str]:
    """Return all notes on how to read the scores of a report, a sentence or two each.

    Args:
        records: The results of the experiment, as results.json stores them.
        root: The project's folder. Its files say which training runs ended early, what BLEU a
            perfect translation reaches, and which changes of code were accepted. If it is None, the
            notes on these are skipped.
    """
    lines = [
        "BLEU is sacreBLEU's default (signatures in results.json), on detokenized text; with "
        "tokenize: none, on the text as it is. FLOPs of training are counted from the shapes of "
        "the matrices."
    ]
    lines += legend_notes(records)
    scores = score_frame(records)
    scores_of_all_lines = scores[(scores.group == "") & scores.metric.isin(measured_scores(scores))]
    if scores_of_all_lines.agreement.notna().any():
        lines.append(AGREEMENT_NOTE)
    lines += _shared_test_set_notes(records.runs)
    lines += _untrained_system_notes(records.runs)
    lines += _decoding_notes(records.runs)
    lines += file_warning_notes(records)
    lines += literature.source_notes(records)
    lines += literature.difference_notes(records)
    detectable = detectable_note(records)
    if detectable:
        lines.append(detectable)
    if root is not None:
        lines += early_end_notes(records.runs, root)
        lines += bleu_ceiling_notes(records.runs, root)
        lines += accepted_notes(root)
    return lines


def legend_notes(records: Records) -> Iterator[str]:
    """Yield sentences that explain the signs in tables of scores, such as ±, brackets, Δ and †.

    Only signs that the tables of this experiment contain are explained.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    seeds = records.runs.seed.nunique()
    # An external system is not trained here. It has one file of translations for all seeds, and so
    # an interval in place of a deviation.
    has_external_systems = records.runs.training_sha256.isna().any()
    if seeds > 1:
        yield f"± gives the standard deviation over {seeds} seeds."
    if seeds == 1 or has_external_systems:
        yield "Brackets give the 95% confidence interval (95% CI, bootstrap)."
    baselines = records.metrics.baseline.dropna().unique()
    if len(baselines) == 0:  # No system is compared with another one.
        return
    test = f"paired t-test over {seeds} seeds" if seeds > 1 else "paired bootstrap, one tail"
    # If a system is not trained on all corpora, the other corpora have another baseline.
    baseline_names = ", on corpora without it from ".join(baselines)
    yield (
        f"Δ is the difference from {baseline_names}. † marks p below {SIGNIFICANCE_LEVEL} "
        f"({test}). ‡ marks p below {SIGNIFICANCE_LEVEL} after Holm's correction for the rows of "
        "the test set. n.s. means not significant."
    )
    yield from untested_notes(records)
    if seeds == 1:
        yield "With one seed, the test compares these training runs; other seeds may differ."


def untested_notes(records: Records) -> Iterator[str]:
    """Yield the reasons why differences on some test sets are not tested for significance.

    There are two: the translations match so few 4-grams of the references that their BLEU depends
    on chance, or the test set has too few sentences (scoring/minimum_for_test.py). Both may apply
    to one test set, for different systems.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    for task, test, scores in by_test_set(score_frame(records)):
        rows = bleu_rows(scores)
        rows_too_low = [row for row in rows if row.why_untested == TOO_FEW_MATCHES]
        if rows_too_low:
            systems = join_with_and(row.row_name for row in rows_too_low)
            baseline = rows_too_low[0].baseline  # The same for all systems on a test set.
            yield (
                f"{task}, {test}: {systems} and {baseline} are {TOO_FEW_MATCHES}: they match "
                f"fewer than {MIN_MATCHED_4_GRAMS} 4-grams of the references."
            )
        if any(row.why_untested == TOO_FEW_SENTENCES for row in rows):
            sentences = rows[0].lines
            yield (
                f"{task}, {test}: {TOO_FEW_SENTENCES}: {sentences}, where a test needs "
                f"{MIN_SENTENCES}."
            )


def _shared_test_set_notes(runs: pd.DataFrame) -> Iterator[str]:
    """Yield a note for each table that shows systems on several corpora.

    Corpora with the same test sets share a table, such as two versions of one corpus that are
    cleaned in different ways.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    corpora_by_task: dict[str, list[str]] = {}
    for corpus, task in task_names(runs).items():
        corpora_by_task.setdefault(task, []).append(corpus)
    for task, corpora in corpora_by_task.items():
        if len(corpora) > 1:
            yield (
                f"{task}: {', '.join(corpora)} have the same test sets. Each row is a system on "
                "one of them, tested against the first system on the first of them."
            )


def _untrained_system_notes(runs: pd.DataFrame) -> Iterator[str]:
    """Yield a description of each external system, then how they are scored and tested.

    An external system is not trained here: params.yaml names files with its translations, and
    describes it in a text, which is in the column `about`.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    untrained = runs[runs.training_sha256.isna()]
    if untrained.empty:
        return
    for (system, about), corpora in untrained.groupby(["system", "about"], sort=False).corpus:
        description = " ".join(about.split())  # Line breaks become spaces.
        if not description.endswith((".", "!", "?")):
            description += "."
        yield f"{system}{UNTRAINED_SUFFIX}, {', '.join(corpora.unique())}: {description}"
    yield (
        "External systems are files of translations, scored in the same way; the cost of their "
        "training is not known."
    )
    if runs.seed.nunique() > 1:
        yield (
            "The p of an external system is the largest of the paired bootstraps against each seed "
            "of the baseline, or 1 if the seeds do not agree which is better."
        )


def _decoding_notes(runs: pd.DataFrame) -> Iterator[str]:
    """Yield notes on how systems translate, if this makes them less comparable.

    The notes name ensembles of several checkpoints, and systems that translate with different
    engines, such as PyTorch, or precisions, such as bfloat16.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
    """
    trained = trained_runs(runs)
    ensembles = trained[trained.models > 1]
    for system, models in ensembles.groupby("system", sort=False).models:
        yield f"{system}: an ensemble of {models.max()} checkpoints of one training."
    systems_by_engine = trained.groupby(["engine", "precision"], sort=False).system.unique()
    if len(systems_by_engine) > 1:
        engine_texts = []
        for (engine, precision), systems in systems_by_engine.items():
            engine_texts.append(f"{engine} {precision}: {', '.join(systems)}")
        yield (
            "Not all systems translated with the same engine and precision. "
            f"{'; '.join(engine_texts)}."
        )


def file_warning_notes(records: Records) -> Iterator[str]:
    """Yield the warnings on the translations of external systems.

    These come as files from elsewhere, and may be the wrong ones. Scoring warns, for example, if
    many translations equal their source.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    scores = score_frame(records)
    for row in score_rows(scores[scores.metric == WARNING]):
        # results.json stores a warning as a score, with the text of the warning as its group of
        # lines (scoring/file_warnings.py).
        yield f"Look at {display_name(row)}, {row.corpus}, {row.test}: {row.group}."


def bleu_ceiling_notes(runs: pd.DataFrame, root: Path = Path()) -> Iterator[str]:
    """Yield a note for each test set on which even a perfect translation does not reach 100 BLEU.

    A system can only output tokens of its vocabulary, and some characters of the references may be
    lost when they are split into tokens and joined again. The BLEU of the references after this
    round trip is the highest BLEU that a system can reach, its ceiling.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
        root: The project's folder; test sets whose statistics it does not contain have no note.
    """
    for corpus, tests in runs.groupby("corpus", sort=False).test:
        statistics_folder = corpus_folder(corpus, "corpus_stats", root)
        yield from bleu_ceiling.ceiling_notes(statistics_folder, corpus, tests.unique())


def early_ends(runs: pd.DataFrame, root: Path = Path()) -> dict[Run, EarlyEnd]:
    """Return the training runs that ended early because validation no longer improved.

    The setting `patience` ends them, and the file training.json of a run says why. A clone of the
    project may lack these files, so runs without a usable file are skipped.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
        root: The project's folder.

    Returns:
        The early end of each such run.
    """
    early_ends_by_run = {}
    for row in one_row_per_training(runs).itertuples():
        run = Run(row.system, row.corpus, row.seed)
        path = root / run.results_folder / "training.json"
        if not path.exists():
            continue
        try:
            training = TrainingFacts.read(path)
        except UserError:  # The file is damaged.
            continue
        # After a change of settings, the file may be of a newer training than the report.
        is_training_of_report = training.fingerprint == row.training_sha256
        if training.early_end and is_training_of_report:
            early_ends_by_run[run] = training.early_end
    return early_ends_by_run


def early_end_notes(
    runs: pd.DataFrame, root: Path = Path(), *, skips_runs_without_warning: bool = False
) -> Iterator[str]:
    """Yield a note for each training run that ended early because validation no longer improved.

    The note contains a warning if the run may have ended too early.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
        root: The project's folder.
        skips_runs_without_warning: Whether only runs with a warning get a note.
    """
    for run, early_end in early_ends(runs, root).items():
        if skips_runs_without_warning and not early_end.warning:
            continue
        warning = f"; {early_end.warning}" if early_end.warning else ""
        yield f"{run.system} on {run.corpus}, seed {run.seed}, {early_end}{warning}."


def document_notes(records: Records) -> Iterator[str]:
    """Yield notes on how intervals and tests change if documents are resampled in place of lines.

    Lines of one document resemble each other, so resampling single lines underestimates how much
    BLEU varies. An interval by document is wider than one by line, and a difference that is
    significant by line may not be significant by document.

    Args:
        records: The results of the experiment, as results.json stores them. It contains the BLEU of
            each system with an interval by line, and again with one by document.
    """
    for task, test, scores in by_test_set(score_frame(records)):
        # Document BLEU exists for every test set that says where its documents begin.
        document_bleu = score_rows(select_metric(scores, "dbleu", DOCUMENT_GROUP))
        if not document_bleu:
            continue
        name = f"{task}, test set {test}"
        rows_by_document = score_rows(select_metric(scores, "bleu", DOCUMENT_GROUP))
        row_by_line = {row.row_name: row for row in score_rows(select_metric(scores, "bleu"))}
        document_count = int(document_bleu[0].units)
        width_ratios = _interval_width_ratios(rows_by_document, row_by_line)
        if document_count > 1 and width_ratios:
            yield (
                f"{name}, {document_count:,} documents: by document the interval of BLEU is "
                f"{format_range(width_ratios)} times as wide as by line."
            )
        for by_document in rows_by_document:
            by_line = row_by_line[by_document.row_name]
            if _is_significant_only_by_line(by_line, by_document):
                yield (
                    f"{name}: the difference of {by_document.row_name} from "
                    f"{by_document.baseline} in BLEU is significant by line "
                    f"({format_p_value(by_line.p)}), not by document "
                    f"({format_p_value(by_document.p)})."
                )


def _interval_width_ratios(
    rows_by_document: Sequence[ScoreRow], row_by_line: Mapping[str, ScoreRow]
) -> list[float]:
    """Return how many times as wide each system's interval is by document as by line.

    Args:
        rows_by_document: The BLEU of each system, with intervals from resampled documents.
        row_by_line: The BLEU with intervals from resampled lines, by the name of the row.
    """
    ratios = []
    for by_document in rows_by_document:
        width_by_line = row_by_line[by_document.row_name].ci_width
        if width_by_line > 0:  # For example, a perfect translation has the interval [100, 100].
            ratios.append(by_document.ci_width / width_by_line)
    return ratios


def _is_significant_only_by_line(by_line: ScoreRow, by_document: ScoreRow) -> bool:
    """Return whether a difference is significant if lines are resampled, but not with documents.

    Args:
        by_line: The score of a system, tested by resampling lines.
        by_document: The same score, tested by resampling documents; it may lack a difference.
    """
    is_significant_by_line = by_line.mark != ""
    has_difference_by_document = pd.notna(by_document.difference)
    if is_significant_by_line and has_difference_by_document:
        return not is_significant(by_document.difference, by_document.p)
    return False


def error_notes(records: Records) -> list[str]:
    """Return the explanations of rare output errors, for experiments in which they occur.

    So far, there is one such error: outputs that are cut off at the maximum length.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    has_cut_off_outputs = (records.metrics.metric == CUT_OFF).any()
    return [CUT_OFF_NOTE] if has_cut_off_outputs else []


def signature_notes(records: Records) -> Iterator[str]:
    """Yield the signature of each metric, as an item of a Markdown list.

    A signature, as sacreBLEU prints it with each score, names the version and the options of the
    metric. BLEU may have several signatures, since its tokenizer depends on the target language; so
    its items also name the language.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    scores = score_frame(records)
    is_score = scores.metric.isin([*measured_scores(scores), "dbleu"])
    signed_scores = scores[(scores.signature != "") & is_score]
    targets = signed_scores.groupby(["metric", "signature"], sort=False).target.unique()
    for (metric, signature), target_languages in targets.items():
        languages = f" ({', '.join(target_languages)})" if metric == "bleu" else ""
        yield f"{METRICS[metric].label}{languages}: `{signature}`"


def detectable_note(records: Records) -> str:
    """Return a note on the smallest difference in BLEU that each test set can detect.

    A test set of few sentences detects only large differences: even if a system is really a little
    better, the difference is then probably not significant. The note is empty if no difference is
    tested.

    Args:
        records: The results of the experiment, as results.json stores them.
    """
    # Test sets with the same text are named together.
    test_sets_by_difference: dict[str, list[str]] = {}
    for task, test, scores in by_test_set(score_frame(records)):
        difference = _detectable_difference_text(bleu_rows(scores))
        if difference:
            test_sets_by_difference.setdefault(difference, []).append(f"{task}, {test}")
    if not test_sets_by_difference:
        return ""
    differences = []
    for difference, test_sets in test_sets_by_difference.items():
        if len(test_sets_by_difference) == 1:
            differences.append(difference)
        else:
            differences.append(f"{difference} ({'; '.join(test_sets)})")
    note = (
        f"Minimum detectable difference ({POWER:.0%} power): {'; '.join(differences)}. Detecting "
        "smaller differences requires more sentences or more seeds."
    )
    if trained_runs(records.runs).seed.nunique() > 1:
        return note
    return (
        f"{note} This covers the sampling error of the test set; seed variance requires several "
        "seeds."
    )


def _detectable_difference_text(rows: Sequence[ScoreRow]) -> str:
    """Return the smallest difference in BLEU that a test set can detect, as text.

    An example is `0.8 to 1.1 BLEU on 3,003 sentences and 0.5 over 3 seeds`. The first number is for
    tests that resample sentences, the second one for tests over seeds. It is a range, since each
    pair of systems has its own difference.

    Args:
        rows: The BLEU of each system on the test set.

    Returns:
        The text; empty if no system's difference is tested.
    """
    differences_over_sentences = []
    differences_over_seeds = []
    for row in rows:
        is_tested = pd.notna(row.p)
        if is_tested and row.standard_error:
            differences_over_sentences.append(detectable_difference(row.standard_error))
        # With one seed, the deviation is NaN, which is not larger than 0.
        if is_tested and row.difference_deviation > 0:
            differences_over_seeds.append(
                detectable_difference_over_seeds(row.seeds, row.difference_deviation)
            )
    if not differences_over_sentences:
        return ""
    lines = rows[0].lines
    parts = []
    if lines >= MIN_SENTENCES:  # On fewer sentences, nothing is tested by resampling them.
        sentences = counted(int(lines), "sentence")
        parts.append(f"{format_range(differences_over_sentences)} BLEU on {sentences}")
    if differences_over_seeds:
        unit = "" if parts else " BLEU"  # The first part has named the unit.
        parts.append(f"{format_range(differences_over_seeds)}{unit} over {rows[0].seeds} seeds")
    return join_with_and(parts)


def format_range(numbers: Sequence[float]) -> str:
    """Return the lowest and highest of some numbers: `1.2 to 3.4`, or `1.2` if both round to it.

    Args:
        numbers: At least one number.
    """
    lowest = f"{min(numbers):.1f}"
    highest = f"{max(numbers):.1f}"
    return lowest if lowest == highest else f"{lowest} to {highest}"
