"""The section of data: what the stages and rules of preparation did, and the vocabularies."""

import unicodedata
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, corpus_folder
from bleuprint.corpus.steps.filter_stats import SAMPLE_CHARACTERS, PairSample
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.page.funnel import training_pairs_table, training_stage_counts
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import Section
from bleuprint.report.table import split_by_column, stack_tables


class RuleSamples(NamedTuple):
    """Sentence pairs that a rule of a stage changed or dropped."""

    stage: str
    rule: str
    samples: list[PairSample]


def data_section(report: ReportData) -> Section:
    """Return the section of data: training pairs, what the rules did, tokens and vocabularies.

    Args:
        report: The experiment and its results.
    """
    statistics = {}
    samples = {}
    for corpus in report.settings.corpora:
        statistics_folder = corpus_folder(corpus, "corpus_stats", report.root)
        statistics[corpus] = CorpusStatistics.read(statistics_folder / STATISTICS)
        samples[corpus] = _rule_samples(corpus, report.root)
    stage_table = training_pairs_table(report.settings.corpora, report.root)
    data = {
        "corpora": report.settings.corpora,
        "pair_counts": report.pair_counts,
        "statistics": statistics,
        "stages": stack_tables(split_by_column(stage_table, "Corpus")),
        "samples": samples,
        "visible": mark_unprintable,
        "composed": to_composed_form,
        "sample_characters": SAMPLE_CHARACTERS,
    }
    return Section("data", "Data", data)


def _rule_samples(corpus: str, root: Path) -> list[RuleSamples]:
    """Return the stored samples of each rule, in the order of the stages."""
    rule_samples = []
    for stage, _, counts in training_stage_counts(corpus, root):
        for rule, samples in counts.samples.items():
            rule_samples.append(RuleSamples(stage, rule, samples))
    return rule_samples


def to_composed_form(text: str) -> str:
    """Return a text in Unicode's composed form, so that equal characters have equal codes."""
    return unicodedata.normalize("NFC", text)


def mark_unprintable(text: str) -> Markup:
    """Return a text with each unprintable character replaced by its marked code point."""
    mark = Markup('<mark title="{}">U+{:04X}</mark>')
    parts: list[str] = []
    for character in text:
        if character.isprintable():
            parts.append(character)
        else:
            name = unicodedata.name(character, "control character").lower()
            parts.append(mark.format(name, ord(character)))
    return Markup("").join(parts)
