"""The warnings before the results: what makes an experiment weak, by rules of thumb.

The HTML report shows each warning with its evidence, and the terminal their titles.
"""

from collections.abc import Iterator

import pandas as pd

from bleuprint.config.corpus_files import EMBEDDED, Files
from bleuprint.config.paths import corpus_folder
from bleuprint.corpus.misalignment import describe_misfits
from bleuprint.corpus.set_findings import SetFindings
from bleuprint.report.notes import early_ends, file_warning_notes
from bleuprint.report.page.findings import Finding
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.score_frame import (
    ScoreRow,
    bleu_rows,
    by_test_set,
    score_rows,
    select_metric,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first
from bleuprint.scoring.breakdown import COUNT_GROUP, WORD_ACCURACY
from bleuprint.scoring.metrics import ERROR_KEYS, METRICS
from bleuprint.scoring.output_errors import ANY_ERROR

# A warning is given if all systems have a lower BLEU than this,
LOW_BLEU = 15.0
# for fewer sentence pairs to train on,
FEW_TRAINING_PAIRS = 10_000
# for fewer lines in a test set,
FEW_TEST_LINES = 200
# from this share of translations with an output error on,
MANY_ERRORS_SHARE = 0.1
# and from this share of reference words on that the training text lacks.
MANY_UNSEEN_SHARE = 0.05
# The largest number of places that a warning names.
_MAX_PLACES = 6


def cautions(report: ReportData) -> Iterator[Finding]:
    """Yield the warnings that apply, each with the places where it does.

    Args:
        report: The experiment and its results.
    """
    places_by_title = {
        "Lines that do not fit their translations: these scores measure the misalignment, too": (
            _misaligned_sets(report)
        ),
        "Test sentences in another held-out set: scores may be too high": (
            _overlapping_sets(report)
        ),
        "Translations that may not be sentences, or are copies": _suspicious_files(report),
        "Training runs that may have ended too early": _early_ends(report),
        "Generated text: high scores here say nothing about real text": (
            _generated_corpora(report)
        ),
        f"Low scores, where a difference says little (best below {LOW_BLEU:.0f} BLEU)": (
            _low_scores(report)
        ),
        "Few test lines: only large differences show": _short_test_sets(report),
        "Few sentence pairs to train on: which system is better may change with more": (
            _small_corpora(report)
        ),
        "Many lines with output errors": _systems_with_many_errors(report),
        "Words of the references that the training text lacks": _unseen_words(report),
        "Scores may be too high: no search for test sentences in the training text": (
            _corpora_without_decontamination(report)
        ),
    }
    for title, places in places_by_title.items():
        if places:
            yield Finding(title, list_first(places, _MAX_PLACES, separator="; "))


def _set_findings(report: ReportData) -> dict[str, SetFindings]:
    """Return what the stage test_stats found in the sets of each corpus."""
    findings = {}
    for corpus in report.settings.corpora:
        findings[corpus] = SetFindings.read(corpus_folder(corpus, "test_stats", report.root))
    return findings


def _misaligned_sets(report: ReportData) -> list[str]:
    """Return the sets with lines that do not fit their translations."""
    places = []
    for corpus, findings in _set_findings(report).items():
        for set_name, misfits in findings.misfits.items():
            places.append(f"{corpus}, {set_name}: {describe_misfits(misfits)}")
    return places


def _overlapping_sets(report: ReportData) -> list[str]:
    """Return the held-out sets that share sentences."""
    places = []
    for corpus, findings in _set_findings(report).items():
        for overlap in findings.overlaps:
            places.append(f"{overlap} ({corpus})")
    return places


def _suspicious_files(report: ReportData) -> list[str]:
    """Return the warnings on the translation files of external systems."""
    places = []
    for note in file_warning_notes(report.records):
        places.append(note.removeprefix("Look at ").rstrip("."))
    return places


def _early_ends(report: ReportData) -> list[str]:
    """Return the training runs that patience probably ended too early."""
    places = []
    for run, early_end in early_ends(report.records.runs, report.root).items():
        if early_end.warning:
            places.append(
                f"{run.system} on {run.corpus}, seed {run.seed}, {early_end}; {early_end.warning}"
            )
    return places


def _generated_corpora(report: ReportData) -> list[str]:
    """Return the corpora whose training text is generated."""
    corpora = report.settings.corpora
    return [name for name, corpus in corpora.items() if _is_generated(corpus.files)]


def _is_generated(files: Files) -> bool:
    """Return whether all training texts are embedded: random symbols, or sentences of a grammar."""
    for text in files.train.values():
        for file in text.files:
            if file.url not in EMBEDDED:
                return False
    return True


def _low_scores(report: ReportData) -> list[str]:
    """Return the test sets on which even the best system has a low BLEU."""
    places = []
    for task, test, scores in by_test_set(report.scores):
        best_bleu = max(row.value for row in bleu_rows(scores))
        if best_bleu < LOW_BLEU:
            places.append(f"{best_bleu:.1f} on {task}, {test}")
    return places


def _short_test_sets(report: ReportData) -> list[str]:
    """Return the test sets with few lines."""
    places = []
    for task, test, scores in by_test_set(report.scores):
        lines = bleu_rows(scores)[0].lines
        if lines < FEW_TEST_LINES:
            places.append(f"{lines:,} of {task}, {test}")
    return places


def _small_corpora(report: ReportData) -> list[str]:
    """Return the corpora with few sentence pairs to train on."""
    try:
        pair_counts = report.pair_counts
    except UserError:  # A clone may have a report, but no data.
        return []
    places = []
    for corpus, counts in pair_counts.items():
        if counts.kept < FEW_TRAINING_PAIRS:
            places.append(f"{counts.kept:,} of {corpus}")
    return places


def _systems_with_many_errors(report: ReportData) -> list[str]:
    """Return the systems with many output errors, and their most frequent error."""
    places = []
    for row in report.bleu_rows:
        error_lines = _lines_by_error(report.scores, row)
        share = error_lines.pop(ANY_ERROR, 0.0) / row.lines
        if share >= MANY_ERRORS_SHARE:
            most_frequent = max(error_lines, key=lambda error: error_lines[error])
            label = METRICS[most_frequent].label
            places.append(
                f"{share:.0%} of {row.system} on {row.corpus}, {row.test}, mostly {label}"
            )
    return places


def _lines_by_error(scores: pd.DataFrame, system: ScoreRow) -> dict[str, float]:
    """Return the number of lines with each output error that was measured of a system."""
    is_system = scores.row_name == system.row_name
    is_test_set = (scores.corpus == system.corpus) & (scores.test == system.test)
    scores_of_system = scores[is_system & is_test_set]
    error_lines = {}
    for error in ERROR_KEYS:
        for row in score_rows(select_metric(scores_of_system, error)):
            error_lines[error] = row.value
    return error_lines


def _unseen_words(report: ReportData) -> list[str]:
    """Return the test sets with many reference words that the training text lacks."""
    places = []
    for task, test, scores in by_test_set(report.scores):
        # The words are the same for all systems of a corpus.
        first_system = bleu_rows(scores)[0].row_name
        share = _unseen_share(scores[scores.row_name == first_system])
        if share >= MANY_UNSEEN_SHARE:
            places.append(f"{share:.0%} of {task}, {test}")
    return places


def _unseen_share(scores: pd.DataFrame) -> float:
    """Return the share of the reference words that the training text lacks."""
    words = scores[scores.metric == WORD_ACCURACY]
    unseen_words = words[words.group == f"{COUNT_GROUP} 0"]
    return float(unseen_words.units.sum() / max(1, words.units.sum()))


def _corpora_without_decontamination(report: ReportData) -> list[str]:
    """Return the corpora whose training text was not searched for test sentences."""
    corpora = report.settings.corpora
    return [name for name, corpus in corpora.items() if corpus.dedup.decontaminate == "none"]
