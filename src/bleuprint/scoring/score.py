"""The stage score: all metrics of a cell's translations."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import Description, names_of_test_sets, read_description
from bleuprint.decoding.translation_record import TRANSLATION, ReferenceLoss, TranslationRecord
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import read_object, reading, sha256_of, write_json
from bleuprint.runtime.versions import versions
from bleuprint.scoring import metrics
from bleuprint.scoring.bleu_variants import BleuVariant, bleu_variants, own_tokens
from bleuprint.scoring.breakdown import ByCount, ByLength, bleu_by_length, word_accuracy
from bleuprint.scoring.document_scores import ByDocument, document_scores
from bleuprint.scoring.output_faults import Fault, output_faults
from bleuprint.text.parallel import TextFolder, read_lines, read_pairs
from bleuprint.text.tokenizers import tokenizer_for


class Loss(TypedDict):
    """The cross-entropy of the references, in nats per token, and its exponentials.

    `word_perplexity` is per word of the text, separated by white space. The EOS of a reference
    counts as a token, and as a word.
    """

    loss: float
    perplexity: float
    word_perplexity: float


class FastScores(TypedDict):
    """All scores of one test set but TER, which takes longer to compute than the others.

    `chrfpp` is missing in files of earlier versions, `by_document` unless the test set says its
    documents; `loss` is None if a sentence is longer than
    the model's `max_positions`, `by_count` if tokens are characters.
    """

    lines: int
    bleu: metrics.BleuScore
    chrf: metrics.Score
    chrfpp: NotRequired[metrics.Score]
    loss: Loss | None
    bleu_variants: list[BleuVariant]
    by_length: list[ByLength]
    by_count: list[ByCount] | None
    by_document: NotRequired[ByDocument]


class SetScores(FastScores):
    """The content of scores.json for one test set; the SHA-256 are of files.

    `faults` and `scored_with`, the versions of libraries, are missing in files of earlier versions.
    """

    ter: metrics.Score
    sources: str
    references: str
    hypotheses: str
    faults: NotRequired[list[Fault]]
    scored_with: NotRequired[str]


def read_scores(path: Path) -> dict[str, SetScores]:
    """scores.json, by test set; raises UserError if it is damaged or of another version."""
    content = read_object(path)
    for scores in content.values():
        if not (isinstance(scores, dict) and SetScores.__required_keys__ <= scores.keys()):
            raise UserError(f"{path}: was not written by this version; run: dvc repro")
        with reading(path):
            for metric in (scores[name] for name in metrics.METRICS if name in scores):
                _ = [float(metric[name]) for name in ("score", "low", "high")]
    return content


def score_files(
    sources: Path,
    references: Path,
    hypotheses: Path,
    corpus: Corpus,
    described: Description,
    loss: ReferenceLoss | None,
) -> SetScores:
    """Score one file of translations.

    Raises UserError if it is not parallel to the references, or if sources or references have
    changed since the test set was described.
    """
    described.check(sources, references)
    pairs = list(read_pairs(references, hypotheses))
    if not pairs:
        raise UserError(f"{references}: is empty: nothing to score")
    expected, translated = zip(*pairs, strict=True)
    return {
        **fast_scores(translated, expected, corpus, described, loss),
        "ter": metrics.ter(translated, expected),
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
        "faults": output_faults(list(read_lines(sources)), expected, translated, corpus),
        "scored_with": versions(),
    }


def fast_scores(
    translated: Sequence[str],
    expected: Sequence[str],
    corpus: Corpus,
    described: Description,
    loss: ReferenceLoss | None,
) -> FastScores:
    """Score the lines of a test set."""
    target, by_count = corpus.target, None
    tokenizer = tokenizer_for(target, corpus.tokenize)
    in_tokens = own_tokens(translated, tokenizer), described.reference_tokens
    if described.training_counts is not None:
        translation, reference = ([line.split() for line in side] for side in in_tokens)
        by_count = word_accuracy(translation, reference, described.training_counts)
    scores: FastScores = {
        "lines": len(translated),
        "bleu": metrics.bleu(translated, expected, target),
        "chrf": metrics.chrf(translated, expected),
        "chrfpp": metrics.chrf(translated, expected, word_order=2),
        "loss": loss and _loss(loss, sum(len(line.split()) + 1 for line in expected)),
        "bleu_variants": bleu_variants(translated, expected, target, in_tokens),
        "by_length": bleu_by_length(translated, expected, described.source_tokens, target),
        "by_count": by_count,
    }
    if described.documents:
        documents = described.documents
        scores["by_document"] = document_scores(translated, expected, target, documents)
    return scores


def score_cell(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a cell's translations of all test sets and write scores.json.

    Raises UserError if the translations or their settings differ from those in translation.json.
    """
    row = settings.system_on(system, corpus)
    settings.check_seed(seed)
    entry = settings.corpus(corpus)
    texts = TextFolder(folder(corpus, "split", root), entry.source, entry.target)
    cell = root / Cell(system, corpus, seed).results
    tests = names_of_test_sets(entry, texts)
    record = TranslationRecord.read(record_path := cell / TRANSLATION)
    scores = {}
    for test in tests:
        described = read_description(folder(corpus, "tests", root), test)
        sources, references = texts.files(f"test.{test}")
        hypotheses = cell / "hypotheses" / references.name
        if hypotheses.exists():  # else score_files raises
            record.check(record_path, row, hypotheses)
        loss = record.losses.get(test)
        scores[test] = score_files(sources, references, hypotheses, entry, described, loss)
        if scores[test]["hypotheses"] == scores[test]["references"]:
            say(f"{hypotheses}: all translations are identical to the references", "note")
    write_json(cell / "scores.json", scores)
    return scores


def _loss(loss: ReferenceLoss, words: int) -> Loss:
    per_token, per_word = loss["nats"] / loss["tokens"], loss["nats"] / words
    # of a diverged model, exp would overflow
    perplexity, word_perplexity = (math.exp(min(nats, 700.0)) for nats in (per_token, per_word))
    return {
        "loss": round(per_token, metrics.DIGITS),
        "perplexity": round(perplexity, metrics.DIGITS),
        "word_perplexity": round(word_perplexity, metrics.DIGITS),
    }
