"""The stage score: all metrics of a run's translations."""

from collections.abc import Collection, Iterator
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


def score_texts(texts: Texts, loss: ReferenceLoss | None = None) -> list[MetricValue]:
    """Every metric of a test set: over its lines, by document, and by bucket."""
    found = list[MetricValue]()
    for metric in METRICS.values():
        if (statistics := metric.count(texts)) is None:
            continue
        found += [evaluate_metric(metric, statistics, metric.signature(texts))]
        found += by_document(metric, statistics, texts)
        if metric.key == "bleu":
            found += by_length(metric, statistics, texts.description.source_tokens)
            found += below_floor(statistics)
    return [*found, *by_count(texts), *(loss_metrics(loss, texts.references) if loss else ())]


def by_document(metric: Metric, statistics: Floats, texts: Texts) -> Iterator[MetricValue]:
    """Yield a score with the interval of whole documents, whose lines are alike.

    It is about other documents of the same kind, where one by line is about other lines. A single
    document yields nothing: all its resamples are equal, and the interval would have no width.
    """
    if metric.kind != "score" or metric.group or len(texts.documents) < 2:
        return
    sums = np.stack([statistics[lines].sum(0) for lines in texts.documents])
    of_documents = replace(metric, is_share=False)  # which have more than 0 or 1
    yield evaluate_metric(of_documents, sums, metric.signature(texts), "document")


def score_files(
    sources: Path,
    references: Path,
    hypotheses: Path,
    corpus: Corpus,
    described: SetDescription,
    loss: ReferenceLoss | None,
    cut: Collection[int] = (),
    file: str | None = None,
) -> SetScores:
    """Score one file of translations.

    Args:
        sources: The sources of the test set.
        references: Its references.
        hypotheses: The translations.
        corpus: The settings of its corpus.
        described: Its lengths, word frequencies and documents.
        loss: The loss of the references, where a model computed it.
        cut: The lines that the maximum length cut, from 1.
        file: The file that was copied, which is checked for problems that make its scores wrong;
            None for translations that were made here.

    Raises:
        UserError: The translations are not parallel to the references.
    """
    expected, translated = zip(*read_pairs(references, hypotheses), strict=True)
    if len(described.source_tokens) != len(expected):
        raise UserError(
            f"{references}: has {len(expected)} lines, but data/test_stats describes "
            f"{len(described.source_tokens)}; {RERUN}"
        )
    given = list(read_lines(sources))
    if len(given) != len(expected):
        counts = f"has {len(given)} lines and {references} has {len(expected)}"
        raise UserError(f"{sources}: {counts}: not parallel; {RERUN}")
    texts = Texts(given, expected, translated, corpus, described, {*cut})
    metrics = score_texts(texts, loss)
    if file is not None:
        for warning in file_warnings(translated, given, expected, corpus):
            print_message(f"{file}: {warning['group']}", "note")
            metrics.append(warning)
    elif sha256_of(hypotheses) == sha256_of(references):  # which is rarely meant
        print_message(f"{hypotheses}: all translations are identical to the references", "note")
    return {
        "lines": len(expected),
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
        "scored_with": library_versions(),
        "metrics": metrics,
    }


def score_run(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a run's translations of all its test sets and write scores.json."""
    settings.check_scored(system, corpus, seed)
    entry = settings.corpus(corpus)
    texts = TextFolder(corpus_folder(corpus, "split", root), entry.source, entry.target)
    results = root / Run(system, corpus, seed).results_folder
    record = None
    if settings.is_trained(system):
        record = TranslationRecord.read(results / TRANSLATION)
    scores = {}
    for test in translated_test_sets(settings, system, corpus, texts):
        described = read_set_description(corpus_folder(corpus, "test_stats", root), test)
        sources, references = texts.files(f"test.{test}")
        scores[test] = score_files(
            sources,
            references,
            hypotheses=results / "hypotheses" / references.name,
            corpus=entry.language_pair_of_test(test),
            described=described,
            loss=record.losses.get(test) if record else None,
            cut=record.cut.get(test, ()) if record else (),
            file=settings.copied_file(system, corpus, test),
        )
    write_json(results / SCORES_FILE, scores)
    return scores
