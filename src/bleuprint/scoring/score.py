"""The stage score: all metrics of a run's translations."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.corpus.test_sets import SetDescription, read_set_description, translated_test_sets
from bleuprint.decoding.translation_record import TRANSLATION, ReferenceLoss, TranslationRecord
from bleuprint.runtime.code import library_versions
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import RERUN, sha256_of, write_json
from bleuprint.scoring.breakdown import by_count, by_length
from bleuprint.scoring.file_warnings import file_warnings
from bleuprint.scoring.floor import below_floor
from bleuprint.scoring.metric import Floats, Metric, MetricValue, Texts
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.record import SCORES_FILE, SetScores
from bleuprint.scoring.reference_loss import loss_metrics
from bleuprint.scoring.significance import evaluate_metric
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs


def score_run(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a run's translations of all its test sets and write scores.json.

    Args:
        settings: The settings of the experiment.
        system: The system of the run.
        corpus: The corpus of the run.
        seed: The seed of the run.
        root: The project's folder.

    Returns:
        What is written, by test set.

    Raises:
        UserError: Translations are missing, damaged, or not parallel to the test set.
    """
    settings.check_scored(system, corpus, seed)
    corpus_settings = settings.corpus(corpus)
    split_folder = corpus_folder(corpus, "split", root)
    texts = TextFolder(split_folder, corpus_settings.source, corpus_settings.target)
    results = root / Run(system, corpus, seed).results_folder
    losses: Mapping[str, ReferenceLoss | None] = {}
    cut_lines: Mapping[str, list[int]] = {}
    if settings.is_trained(system):
        record = TranslationRecord.read(results / TRANSLATION)
        losses = record.losses
        cut_lines = record.cut
    scores = {}
    for test in translated_test_sets(settings, system, corpus, texts):
        description = read_set_description(corpus_folder(corpus, "test_stats", root), test)
        sources, references = texts.files(f"test.{test}")
        scores[test] = score_files(
            sources,
            references,
            hypotheses=results / "hypotheses" / references.name,
            corpus=corpus_settings.language_pair_of_test(test),
            description=description,
            loss=losses.get(test),
            cut=cut_lines.get(test, ()),
            copied_file=settings.copied_file(system, corpus, test),
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
) -> SetScores:
    """Score one file of translations.

    Args:
        sources: The sources of the test set.
        references: Its references.
        hypotheses: The translations.
        corpus: The settings of its corpus.
        description: Its lengths, word frequencies and documents.
        loss: The loss of the references, where a model computed it.
        cut: The lines that the maximum length cut, from 1.
        copied_file: The file of an external system that was copied, which is checked for problems
            that make its scores wrong; None for translations of a system that was trained here.

    Raises:
        UserError: The translations are not parallel to the references.
    """
    reference_lines = []
    translations = []
    for reference, translation in read_pairs(references, hypotheses):
        reference_lines.append(reference)
        translations.append(translation)
    if len(description.source_tokens) != len(reference_lines):
        raise UserError(
            f"{references}: has {len(reference_lines)} lines, but data/test_stats describes "
            f"{len(description.source_tokens)}; {RERUN}"
        )
    source_lines = list(read_lines(sources))
    if len(source_lines) != len(reference_lines):
        counts = f"has {len(source_lines)} lines and {references} has {len(reference_lines)}"
        raise UserError(f"{sources}: {counts}: not parallel; {RERUN}")
    texts = Texts(source_lines, reference_lines, translations, corpus, description, frozenset(cut))
    metrics = score_texts(texts, loss)
    if copied_file is not None:
        for warning in file_warnings(translations, source_lines, reference_lines, corpus):
            print_message(f"{copied_file}: {warning['group']}", "note")
            metrics.append(warning)
    elif sha256_of(hypotheses) == sha256_of(references):  # This is rarely intended.
        print_message(f"{hypotheses}: all translations are identical to the references", "note")
    return {
        "lines": len(reference_lines),
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
        "scored_with": library_versions(),
        "metrics": metrics,
    }


def score_texts(texts: Texts, loss: ReferenceLoss | None = None) -> list[MetricValue]:
    """Compute every metric of a test set: over its lines, by document, and by bucket.

    Args:
        texts: The test set with its translations.
        loss: The loss of the references, where a model computed it.
    """
    values: list[MetricValue] = []
    for metric in METRICS.values():
        statistics = metric.count(texts)
        if statistics is None:
            continue
        values.append(evaluate_metric(metric, statistics, metric.signature(texts)))
        values += by_document(metric, statistics, texts)
        if metric.key == "bleu":
            values += by_length(metric, statistics, texts.description.source_tokens)
            values += below_floor(statistics)
    values += by_count(texts)
    if loss is not None:
        values += loss_metrics(loss, texts.references)
    return values


def by_document(metric: Metric, statistics: Floats, texts: Texts) -> Iterator[MetricValue]:
    """Yield a score with the interval of whole documents, whose lines are alike.

    It is about other documents of the same kind, where the interval by line is about other lines. A
    single document yields nothing: all its resamples are equal, and the interval would have no
    width.

    Args:
        metric: The metric; only scores are computed by document.
        statistics: Its counts, (lines, counts).
        texts: The test set, for its documents.
    """
    if metric.kind != "score" or metric.group or len(texts.documents) < 2:
        return
    document_sums = np.stack([statistics[rows].sum(0) for rows in texts.documents])
    # The sums of a document exceed 0 and 1.
    metric_of_documents = replace(metric, is_share=False)
    signature = metric.signature(texts)
    yield evaluate_metric(metric_of_documents, document_sums, signature, "document")
