"""What makes the results weak, by rules of thumb; the page and the terminal say it first."""

from collections.abc import Iterator

import pandas as pd

from bleuprint.config.corpus_files import EMBEDDED, Files
from bleuprint.config.paths import corpus_folder
from bleuprint.corpus.misalignment import describe_misfits
from bleuprint.corpus.set_findings import SetFindings
from bleuprint.report.notes import early_ends, file_warning_notes
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import Finding
from bleuprint.report.score_frame import bleu_rows, by_test_set, select_metric
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import list_first
from bleuprint.scoring.breakdown import COUNT_GROUP, WORD_ACCURACY
from bleuprint.scoring.metrics import ERROR_KEYS, METRICS
from bleuprint.scoring.output_errors import ANY_ERROR

# The page warns below these values of BLEU, sentence pairs to train on and test lines, and from
# these shares of lines with errors and of unseen words.
LOW, FEW_TRAINING_PAIRS, LINES, FAULTY, UNSEEN = 15.0, 10_000, 200, 0.1, 0.05
# Places that are named.
_MOST = 6


def cautions(context: ReportContext) -> Iterator[Finding]:
    """The warnings that apply, each with its evidence."""
    best = {}
    lines = {}
    unseen = {}
    for task, test, scores in by_test_set(context.scores):
        name = f"{task}, {test}"
        rows = bleu_rows(scores)
        best[name] = max(row.value for row in rows)
        lines[name] = int(rows[0].lines)
        unseen[name] = _unseen(scores[scores.row_name == rows[0].row_name])
    corpora = context.settings.corpora.items()
    in_sets = {
        name: SetFindings.read(corpus_folder(name, "test_stats", context.root))
        for name, _ in corpora
    }
    found = {
        "Lines that do not fit their translations: these scores measure the misalignment, too": [
            f"{name}, {set_name}: {describe_misfits(misfits)}"
            for name, findings in in_sets.items()
            for set_name, misfits in findings.misfits.items()
        ],
        "Test sentences in another held-out set: scores may be too high": [
            f"{overlap} ({name})"
            for name, findings in in_sets.items()
            for overlap in findings.overlaps
        ],
        "Translations that may not be sentences, or are copies": [
            note.removeprefix("Look at ").rstrip(".")
            for note in file_warning_notes(context.records)
        ],
        "Training runs that may have ended too early": [
            f"{run.system} on {run.corpus}, seed {run.seed}, {early_end}; {early_end.warning}"
            for run, early_end in early_ends(context.records.runs, context.root).items()
            if early_end.warning
        ],
        "Generated text: high scores here say nothing about real text": [
            name for name, of in corpora if _generated(of.files)
        ],
        f"Low scores, where a difference says little (best below {LOW:.0f} BLEU)": [
            f"{bleu:.1f} on {name}" for name, bleu in best.items() if bleu < LOW
        ],
        "Few test lines: only large differences show": [
            f"{count:,} of {name}" for name, count in lines.items() if count < LINES
        ],
        "Few sentence pairs to train on: which system is better may change with more": _few_pairs(
            context
        ),
        "Many lines with output errors": list(_faulty(context)),
        "Words of the references that the training text lacks": [
            f"{share:.0%} of {name}" for name, share in unseen.items() if share >= UNSEEN
        ],
        "Scores may be too high: no search for test sentences in the training text": [
            name for name, of in corpora if of.dedup.decontaminate == "none"
        ],
    }
    for title, places in found.items():
        if places:
            yield Finding(title, list_first(places, _MOST, separator="; "))


def _few_pairs(context: ReportContext) -> list[str]:
    try:
        kept = context.kept
    except UserError:  # a clone with a report and without data
        return []
    return [f"{of.left:,} of {name}" for name, of in kept.items() if of.left < FEW_TRAINING_PAIRS]


def _generated(files: Files) -> bool:
    """Whether all training texts are embedded: random symbols, or sentences of a grammar."""
    return all(file.url in EMBEDDED for text in files.train.values() for file in text.files)


def _faulty(context: ReportContext) -> Iterator[str]:
    """Yield the rows with many faulty lines, and their most frequent error."""
    for row in context.rows:
        of_row = context.scores[context.scores.row_name == row.row_name]
        of_row = of_row[(of_row.corpus == row.corpus) & (of_row.test == row.test)]
        counts = {}
        for error in ERROR_KEYS:
            for found in select_metric(of_row, error).itertuples():
                counts[error] = found.value
        share = counts.pop(ANY_ERROR, 0.0) / row.lines
        if share >= FAULTY:
            most = METRICS[max(counts, key=counts.__getitem__)].label
            yield f"{share:.0%} of {row.system} on {row.corpus}, {row.test}, mostly {most}"


def _unseen(scores: pd.DataFrame) -> float:
    """Return the share of the references' words that the training text lacks."""
    words = scores[scores.metric == WORD_ACCURACY]
    unseen = words[words.group == f"{COUNT_GROUP} 0"]
    return float(unseen.units.sum() / max(1, words.units.sum()))
