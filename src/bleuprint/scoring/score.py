"""The stage score: all metrics of a run's translations.

`score_run` is the stage. metrics.py lists the metrics, and record.py defines the file of scores.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.test_sets import SetDescription, read_set_description
from bleuprint.decoding.translation_record import TRANSLATION, ReferenceLoss, TranslationRecord
from bleuprint.runtime.code import library_versions
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.file_errors import RERUN
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.breakdown import by_length, by_training_count
from bleuprint.scoring.file_warnings import file_warnings
from bleuprint.scoring.metric import Floats, Metric, MetricValue, TranslatedSet
from bleuprint.scoring.metrics import METRICS, own_metrics
from bleuprint.scoring.minimum_for_test import matched_4_grams_if_few
from bleuprint.scoring.record import SCORES_FILE, SetScores
from bleuprint.scoring.reference_loss import loss_metrics
from bleuprint.scoring.significance import evaluate_metric
from bleuprint.scoring.translated_files import files_of_test_sets
from bleuprint.text.parallel import read_lines, read_pairs


def score_run(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score the translations of one system in all metrics, and write scores.json.

    All test sets that the system has translated are scored.

    Args:
        settings: The settings of the experiment.
        system: The name of the system.
        corpus: The name of the corpus that it was trained on.
        seed: The seed of the training.
        root: The project's folder.

    Returns:
        What is written, by the name of the test set.

    Raises:
        UserError: Translations are missing, damaged, or not parallel to the test set; or a metric
            of own code cannot be used.
    """
    settings.check_scored(system, corpus, seed)
    further_metrics = own_metrics(settings.metrics)
    run = Run(system, corpus, seed)
    results = root / run.results_folder
    # When a model translates, it records two things for each test set: the loss of the references,
    # and the lines whose translations were cut off. Translations that are copied from a file have
    # no such record.
    losses: Mapping[str, ReferenceLoss | None] = {}
    cut_lines: Mapping[str, list[int]] = {}
    if settings.is_trained(system):
        record = TranslationRecord.read(results / TRANSLATION)
        losses = record.losses
        cut_lines = record.cut
    scores = {}
    for test, files in files_of_test_sets(settings, run, root).items():
        description = read_set_description(corpus_folder(corpus, "test_stats", root), test)
        scores[test] = score_files(
            files.sources,
            files.references,
            files.hypotheses,
            corpus=settings.corpus(corpus).language_pair_of_test(test),
            description=description,
            loss=losses.get(test),
            cut=cut_lines.get(test, ()),
            copied_file=settings.copied_file(system, corpus, test),
            further_metrics=further_metrics,
        )
    write_json(results / SCORES_FILE, scores)
    return scores


def score_files(
    sources: Path,
    references: Path,
    hypotheses: Path,
    corpus: Corpus,
    description: SetDescription,
    loss: ReferenceLoss | None,
    cut: Collection[int] = (),
    copied_file: str | None = None,
    further_metrics: Sequence[Metric] = (),
) -> SetScores:
    """Score one file of translations in all metrics.

    If the translations were copied from a file of the user, problems such as empty lines or
    subwords are printed as notes and recorded next to the scores. For translations of a model, a
    note is printed if they are identical to the references.

    Args:
        sources: The sources of the test set.
        references: Its references.
        hypotheses: The translations.
        corpus: The settings of its corpus.
        description: Its lengths, word frequencies and documents.
        loss: The loss of the references under the model; None if no model was trained here.
        cut: The lines, from 1, whose translations ended at the maximum length of an output.
        copied_file: The file that the translations were copied from; None for a system that was
            trained here.
        further_metrics: The metrics that are not built in.

    Returns:
        The values of all metrics, with the hashes of the files.

    Raises:
        UserError: Sources, references and translations differ in their number of lines; or a
            metric of own code fails.
    """
    test_set = _read_test_set(sources, references, hypotheses, corpus, description, cut)
    metrics = score_test_set(test_set, loss, further_metrics)
    if copied_file is not None:
        warnings = file_warnings(test_set.hypotheses, test_set.sources, test_set.references, corpus)
        for warning in warnings:
            print_message(f"{copied_file}: {warning['group']}", "note")
            metrics.append(warning)
    elif sha256_of(hypotheses) == sha256_of(references):
        # A model hardly ever translates so well; probably the files were mixed up.
        print_message(f"{hypotheses}: all translations are identical to the references", "note")
    return {
        "lines": len(test_set.references),
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
        "scored_with": library_versions(),
        "metrics": metrics,
    }


def _read_test_set(
    sources: Path,
    references: Path,
    hypotheses: Path,
    corpus: Corpus,
    description: SetDescription,
    cut: Collection[int],
) -> TranslatedSet:
    """Read a test set and its translations, and check that all have the same number of lines.

    Args:
        sources: The sources of the test set.
        references: Its references.
        hypotheses: The translations.
        corpus: The settings of its corpus.
        description: Its lengths, word frequencies and documents.
        cut: The lines, from 1, whose translations ended at the maximum length of an output.

    Raises:
        UserError: The files have different numbers of lines, or the description is of another
            number of lines.
    """
    reference_lines = []
    translations = []
    for reference, translation in read_pairs(references, hypotheses):
        reference_lines.append(reference)
        translations.append(translation)
    if len(description.source_tokens) != len(reference_lines):
        raise UserError(
            f"{references} has {len(reference_lines)} lines, but data/test_stats describes "
            f"{len(description.source_tokens)}. {RERUN}"
        )
    source_lines = list(read_lines(sources))
    if len(source_lines) != len(reference_lines):
        raise UserError(
            f"{sources} has {len(source_lines)} lines, but {references} has "
            f"{len(reference_lines)}. They must be parallel. {RERUN}"
        )
    return TranslatedSet(
        sources=source_lines,
        references=reference_lines,
        hypotheses=translations,
        corpus=corpus,
        description=description,
        cut=frozenset(cut),
    )


def score_test_set(
    test_set: TranslatedSet,
    loss: ReferenceLoss | None = None,
    further_metrics: Sequence[Metric] = (),
) -> list[MetricValue]:
    """Compute all metrics of the translations of a test set.

    Each metric is computed over all lines, and scores also with documents as units. BLEU is also
    computed for short and for long lines, and word accuracy for rare and for frequent words.

    Args:
        test_set: The test set with its translations.
        loss: The loss of the references under the model; None if no model was trained here.
        further_metrics: The metrics that are not built in.
    """
    values: list[MetricValue] = []
    for metric in [*METRICS.values(), *further_metrics]:
        statistics = metric.count(test_set)
        if statistics is None:
            # The metric does not apply to this test set.
            continue
        values.append(evaluate_metric(metric, statistics, metric.signature(test_set)))
        values += by_document(metric, statistics, test_set)
        if metric.key == "bleu":
            values += by_length(metric, statistics, test_set.description.source_tokens)
            values += matched_4_grams_if_few(statistics)
    values += by_training_count(test_set)
    if loss is not None:
        values += loss_metrics(loss, test_set.references)
    return values


def by_document(
    metric: Metric, statistics: Floats, test_set: TranslatedSet
) -> Iterator[MetricValue]:
    """Yield a score whose interval and tests resample whole documents instead of lines.

    The lines of a document resemble each other. So an interval from resampled lines is too narrow
    if one asks for the score on new documents. Nothing is yielded for figures that are not scores,
    and for a single document: all its samples are equal, and the interval would have no width.

    Args:
        metric: The metric.
        statistics: What it counts on each line, (lines, counts).
        test_set: The test set, for its documents.
    """
    is_score_of_lines = metric.kind == "score" and not metric.group
    if not is_score_of_lines or len(test_set.documents) < 2:
        return
    sums_by_document = []
    for line_indices in test_set.documents:
        sums_by_document.append(statistics[line_indices].sum(0))
    # `is_share` means that a unit counts 0 or 1, for which there is a special interval. The sums of
    # a document may be larger.
    metric_of_documents = replace(metric, is_share=False)
    yield evaluate_metric(
        metric_of_documents,
        np.stack(sums_by_document),
        metric.signature(test_set),
        group="document",
    )
