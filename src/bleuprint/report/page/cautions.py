"""The warnings before the results: what makes an experiment weak, by rules of thumb.

The HTML report shows each warning with its evidence, and the terminal their titles.
"""

from collections.abc import Iterator

import pandas as pd

from bleuprint.config.corpus_files import Files
from bleuprint.config.embedded_texts import EMBEDDED
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
# The largest number of cases, such as test sets, that a warning names.
_MAX_CASES = 6


def cautions(report: ReportData) -> Iterator[Finding]:
    """Yield the warnings of the report: what makes the results of an experiment less reliable.

    A warning is a title with the cases that it applies to, for example `Few test lines` with the
    names of two test sets. Warnings without a case are skipped.

    Args:
        report: The settings and the results of the experiment.
    """
    cases_by_title = {
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
    for title, cases in cases_by_title.items():
        if cases:
            yield Finding(title, list_first(cases, _MAX_CASES, separator="; "))


def _set_findings(report: ReportData) -> dict[str, SetFindings]:
    """Read what the stage test_stats found in the training, validation and test sets.

    The stage looks for lines that do not fit their translations, and for sentences that are in both
    the validation set and a test set, or in two test sets.

    Returns:
        The findings by corpus.
    """
    findings = {}
    for corpus in report.settings.corpora:
        findings[corpus] = SetFindings.read(corpus_folder(corpus, "test_stats", report.root))
    return findings


def _misaligned_sets(report: ReportData) -> list[str]:
    """Return a description of each set with lines that do not fit their translations.

    A set is the training, validation or test text of a corpus. For example, if one of its two files
    lacks a line, all later lines stand next to the wrong translation.
    """
    cases = []
    for corpus, findings in _set_findings(report).items():
        for set_name, misfits in findings.misfits.items():
            cases.append(f"{corpus}, {set_name}: {describe_misfits(misfits)}")
    return cases


def _overlapping_sets(report: ReportData) -> list[str]:
    """Return a description of each pair of validation or test sets that share sentences.

    Training may keep the checkpoint that is best on the validation set. If this set contains test
    sentences, the scores may be too high.
    """
    cases = []
    for corpus, findings in _set_findings(report).items():
        for overlap in findings.overlaps:
            cases.append(f"{overlap} ({corpus})")
    return cases


def _suspicious_files(report: ReportData) -> list[str]:
    """Return the warnings on the files of translations of external systems.

    A note below the tables says `Look at online-a (external), …: many copies.`; in the list of
    cases, it becomes `online-a (external), …: many copies`.
    """
    cases = []
    for sentence in file_warning_notes(report.records):
        cases.append(sentence.removeprefix("Look at ").rstrip("."))
    return cases


def _early_ends(report: ReportData) -> list[str]:
    """Return a description of each training run that probably ended too early.

    The setting `patience` ends a run if validation does not improve for some time. The run then
    stores a warning if, for example, its validation loss was still falling.
    """
    cases = []
    for run, early_end in early_ends(report.records.runs, report.root).items():
        if early_end.warning:
            cases.append(
                f"{run.system} on {run.corpus}, seed {run.seed}, {early_end}; {early_end.warning}"
            )
    return cases


def _generated_corpora(report: ReportData) -> list[str]:
    """Return the names of the corpora whose training text is generated, not natural."""
    corpora = report.settings.corpora
    return [name for name, corpus in corpora.items() if _is_generated(corpus.files)]


def _is_generated(files: Files) -> bool:
    """Return whether all training texts of a corpus are generated by this package.

    Such texts, random symbols or sentences of a grammar, test the pipeline. In place of a URL,
    their files have one of the special addresses in `EMBEDDED`.

    Args:
        files: The files of a corpus.
    """
    for text in files.train.values():
        for file in text.files:
            if file.url not in EMBEDDED:
                return False
    return True


def _low_scores(report: ReportData) -> list[str]:
    """Return a description of each test set on which even the best system has a low BLEU."""
    cases = []
    for task, test, scores in by_test_set(report.scores):
        best_bleu = max(row.value for row in bleu_rows(scores))
        if best_bleu < LOW_BLEU:
            cases.append(f"{best_bleu:.1f} on {task}, {test}")
    return cases


def _short_test_sets(report: ReportData) -> list[str]:
    """Return a description of each test set with few lines, such as `100 of wmt14, newstest2014`.

    Few lines show only large differences between systems.
    """
    cases = []
    for task, test, scores in by_test_set(report.scores):
        # All systems translate the same lines, so any of them tells their number.
        any_system = bleu_rows(scores)[0]
        if any_system.lines < FEW_TEST_LINES:
            cases.append(f"{any_system.lines:,} of {task}, {test}")
    return cases


def _small_corpora(report: ReportData) -> list[str]:
    """Return a description of each corpus with few sentence pairs to train on.

    The numbers of pairs come from the filtering statistics, which the preparation writes.
    """
    try:
        pair_counts = report.pair_counts
    except UserError:
        # A clone of the project may contain the report without the data and its statistics.
        return []
    cases = []
    for corpus, counts in pair_counts.items():
        if counts.kept < FEW_TRAINING_PAIRS:
            cases.append(f"{counts.kept:,} of {corpus}")
    return cases


def _systems_with_many_errors(report: ReportData) -> list[str]:
    """Return a description of each system with many output errors, with the most frequent one.

    Output errors, such as repeated words, are found without a reference.
    """
    cases = []
    for row in report.bleu_rows:
        lines_by_error = _lines_by_error(report.scores, row)
        # One of the metrics counts the lines with any error. After it is removed, only the kinds of
        # errors remain, and the text names the most frequent one.
        lines_with_any_error = lines_by_error.pop(ANY_ERROR, 0.0)
        share = lines_with_any_error / row.lines
        if share >= MANY_ERRORS_SHARE:
            most_frequent = max(lines_by_error, key=lambda error: lines_by_error[error])
            label = METRICS[most_frequent].label
            cases.append(f"{share:.0%} of {row.system} on {row.corpus}, {row.test}, mostly {label}")
    return cases


def _lines_by_error(scores: pd.DataFrame, system: ScoreRow) -> dict[str, float]:
    """Return how many translations of a system have each output error, such as repeated words.

    Args:
        scores: All scores of the report. Numbers of errors are stored like scores.
        system: Any score of the system on the test set; it names both.

    Returns:
        The number of lines by the key of the error.
    """
    is_system = scores.row_name == system.row_name
    is_test_set = (scores.corpus == system.corpus) & (scores.test == system.test)
    scores_of_system = scores[is_system & is_test_set]
    lines_by_error = {}
    for error in ERROR_KEYS:
        # Older results may lack an error, which then has no row here; otherwise there is one.
        for row in score_rows(select_metric(scores_of_system, error)):
            lines_by_error[error] = row.value
    return lines_by_error


def _unseen_words(report: ReportData) -> list[str]:
    """Return a description of each test set with many words that the training text lacks.

    The words are those of the references.
    """
    cases = []
    for task, test, scores in by_test_set(report.scores):
        # References and training text are the same for all systems, so any system will do.
        first_system = bleu_rows(scores)[0].row_name
        share = _unseen_share(scores[scores.row_name == first_system])
        if share >= MANY_UNSEEN_SHARE:
            cases.append(f"{share:.0%} of {task}, {test}")
    return cases


def _unseen_share(scores: pd.DataFrame) -> float:
    """Return the share of the reference words that the training text lacks, from 0 to 1.

    The words are not counted again: word recall is measured for groups of words, by how often the
    training text contains them, and each of its scores stores in `units` how many words its group
    has. One of the groups contains the words that occur 0 times.

    Args:
        scores: The scores of one system on one test set.
    """
    word_recall = scores[scores.metric == WORD_ACCURACY]
    unseen_words = word_recall[word_recall.group == f"{COUNT_GROUP} 0"]
    word_count = word_recall.units.sum()
    if word_count == 0:  # Word recall is not measured, for example for Chinese.
        return 0.0
    return float(unseen_words.units.sum() / word_count)


def _corpora_without_decontamination(report: ReportData) -> list[str]:
    """Return the names of the corpora whose training text may contain test sentences.

    Decontamination removes training pairs that validation or test sets contain. The setting
    `dedup.decontaminate: none` turns it off.
    """
    corpora = report.settings.corpora
    return [name for name, corpus in corpora.items() if corpus.dedup.decontaminate == "none"]
