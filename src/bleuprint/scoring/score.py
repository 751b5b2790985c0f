"""The stage score: all metrics of a cell's translations."""

from pathlib import Path
from typing import TypedDict

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.corpus.test_sets import Description, names_of_test_sets, read_description
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import read_object, sha256_of, write_json
from bleuprint.scoring import metrics
from bleuprint.scoring.bleu_variants import BleuVariant, bleu_variants
from bleuprint.scoring.breakdown import ByCount, ByLength, bleu_by_length, word_accuracy
from bleuprint.text.parallel import TextFolder, read_pairs
from bleuprint.text.tokenizers import tokenizer_for


class SetScores(TypedDict):
    """The content of scores.json for one test set.

    `by_count` is None if tokens are characters. The last three are SHA-256 of files.
    """

    lines: int
    bleu: metrics.BleuScore
    chrf: metrics.Score
    ter: metrics.Score
    reconciliation: list[BleuVariant]
    by_length: list[ByLength]
    by_count: list[ByCount] | None
    sources: str
    references: str
    hypotheses: str


def read_scores(path: Path) -> dict[str, SetScores]:
    """scores.json, by test set; raises UserError if it is damaged or of another version."""
    content = read_object(path)
    for scores in content.values():
        if not (isinstance(scores, dict) and SetScores.__required_keys__ <= scores.keys()):
            raise UserError(f"{path}: was not written by this version; run: dvc repro")
    return content


def score_files(
    sources: Path, references: Path, hypotheses: Path, corpus: Corpus, described: Description
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
    target, by_count = corpus.target, None
    if described.training_counts is not None:
        tokenizer = tokenizer_for(target, corpus.tokenize)
        translated_tokens = [tokenizer.tokenize(line) for line in translated]
        expected_tokens = [line.split() for line in described.reference_tokens]
        by_count = word_accuracy(translated_tokens, expected_tokens, described.training_counts)
    return {
        "lines": len(pairs),
        "bleu": metrics.bleu(translated, expected, target),
        "chrf": metrics.chrf(translated, expected),
        "ter": metrics.ter(translated, expected),
        "reconciliation": bleu_variants(translated, expected, target),
        "by_length": bleu_by_length(translated, expected, described.source_tokens, target),
        "by_count": by_count,
        "sources": sha256_of(sources),
        "references": sha256_of(references),
        "hypotheses": sha256_of(hypotheses),
    }


def score_cell(
    settings: Settings, system: str, corpus: str, seed: int, root: Path = Path()
) -> dict[str, SetScores]:
    """Score a cell's translations of all test sets and write scores.json.

    Raises UserError if the translations or their settings differ from those in translation.json.
    """
    decode = settings.system_on(system, corpus).decode
    if seed not in settings.seeds:
        raise UserError(f"params.yaml: no seed {seed}; seeds are {list(settings.seeds)}")
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
            record.check(record_path, decode, hypotheses)
        scores[test] = score_files(sources, references, hypotheses, entry, described)
        if scores[test]["hypotheses"] == scores[test]["references"]:
            say(f"{hypotheses}: every translation is the reference, to the letter", "note")
    write_json(cell / "scores.json", scores)
    return scores
