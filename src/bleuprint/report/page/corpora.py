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
    """Examples of the sentence pairs that a cleaning rule changed or dropped, for the report.

    Attributes:
        stage: The stage of the pipeline that applied the rule, such as `clean`.
        rule: The name of the rule, such as `length`.
        samples: The sentence pairs.
    """

    stage: str
    rule: str
    samples: list[PairSample]


def data_section(report: ReportData) -> Section:
    """Return the report's section on the corpora and their vocabularies.

    It shows how many sentence pairs each stage of preparation dropped or changed, with examples,
    and how the texts are split into tokens.

    Args:
        report: The settings and the results of the experiment.
    """
    statistics_by_corpus = {}
    samples_by_corpus = {}
    for corpus in report.settings.corpora:
        statistics_folder = corpus_folder(corpus, "corpus_stats", report.root)
        statistics_by_corpus[corpus] = CorpusStatistics.read(statistics_folder / STATISTICS)
        samples_by_corpus[corpus] = _rule_samples(corpus, report.root)
    stage_table = training_pairs_table(report.settings.corpora, report.root)
    # The last three let the template show the examples: two functions and a limit.
    data = {
        "corpora": report.settings.corpora,
        "pair_counts": report.pair_counts,
        "statistics": statistics_by_corpus,
        "stages": stack_tables(split_by_column(stage_table, "Corpus")),
        "samples": samples_by_corpus,
        "visible": mark_unprintable,
        "composed": to_composed_form,
        "sample_characters": SAMPLE_CHARACTERS,
    }
    return Section("data", "Data", data)


def _rule_samples(corpus: str, root: Path) -> list[RuleSamples]:
    """Return examples of the sentence pairs that each cleaning rule changed or dropped.

    The stages of preparation store a few examples next to their counts. The result is in the order
    in which the stages run.

    Args:
        corpus: The name of the corpus.
        root: The project's folder.
    """
    rule_samples = []
    for stage, _, counts in training_stage_counts(corpus, root):
        for rule, samples in counts.samples.items():
            rule_samples.append(RuleSamples(stage, rule, samples))
    return rule_samples


def to_composed_form(text: str) -> str:
    """Return a text in Unicode's composed form, so that equal characters have equal codes."""
    return unicodedata.normalize("NFC", text)


def mark_unprintable(text: str) -> Markup:
    """Return a text as HTML in which unprintable characters are visible.

    Each of them is replaced by its highlighted code, such as U+200E. The name of the character
    appears when the reader points at the code.
    """
    mark = Markup('<mark title="{}">U+{:04X}</mark>')
    parts: list[str] = []
    for character in text:
        if character.isprintable():
            parts.append(character)
        else:
            # Control characters have no name in Unicode.
            name = unicodedata.name(character, "control character").lower()
            parts.append(mark.format(name, ord(character)))
    # `Markup.join` escapes the parts that are plain text, and keeps those that are Markup.
    return Markup("").join(parts)
