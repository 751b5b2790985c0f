"""The section of data: what each stage and rule did, and the vocabularies."""

import unicodedata
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.corpus.steps.ledger import SAMPLE_CHARACTERS, SetCounts
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import kept, training_counts
from bleuprint.report.page.section import Section
from bleuprint.rules import CHECKS, EDITS

# Reasons to drop a pair that are not rules of rules/.
_RULES = {
    "1-0": "A source sentence without a translation.",
    "0-1": "A target sentence that translates none.",
    "2-1": "Two source sentences, joined, with one translation.",
    "1-2": "A source sentence with two translations, joined.",
    "2-2": "Two sentences, joined, that are translated together.",
    "empty_side": "A side is empty after cleaning.",
    "duplicate_pair": "The same pair came before.",
    "same_source": "The same source came before.",
    "same_target": "The same target came before.",
    "source_held_out": "The source is in a validation or test set: overlap, removed.",
    "target_held_out": "The target is in a validation or test set: overlap, removed.",
    "drawn_for_valid": "Drawn for the validation set.",
    "drawn_for_test": "Drawn for a test set.",
}
_OVERLAP = ("source_held_out", "target_held_out")


def corpora(context: ReportContext) -> Section:
    """Every corpus: its funnel, overlap and vocabularies."""
    data = {
        "corpora": [_corpus(context, name) for name in context.settings.corpora],
        "visible": visible,
        "composed": partial(unicodedata.normalize, "NFC"),
        "cut": SAMPLE_CHARACTERS,
    }
    return Section("data", "Data", data)


def visible(text: str) -> Markup:
    """The text with each character that does not print as its marked code point."""
    mark = Markup('<mark title="{}">U+{:04X}</mark>')
    return Markup("").join(
        c
        if c.isprintable()
        else mark.format(unicodedata.name(c, "control character").lower(), ord(c))
        for c in text
    )


def _corpus(context: ReportContext, name: str) -> dict[str, Any]:
    by_stage = list(training_counts(name, context.root))
    funnel = list(_funnel(by_stage))
    idle = [row for row in funnel if row[1] and not any(row[3:5])]
    pairs = kept(name, context.root)
    described = folder(name, "statistics", context.root)
    return {
        "name": name,
        "settings": context.settings.corpus(name),
        "pairs": pairs,
        "funnel": [row for row in funnel if row not in idle],
        "idle": [f"{stage}: {rule}" for stage, rule, *_ in idle],
        "samples": [
            (stage, rule, samples)
            for stage, _, counts in by_stage
            for rule, samples in counts.samples.items()
        ],
        "overlap": sum(pairs.dropped.get(rule, 0) for rule in _OVERLAP),
        "statistics": CorpusStatistics.read(described / STATISTICS),
    }


def _funnel(
    by_stage: Iterable[tuple[str, str, SetCounts]],
) -> Iterator[tuple[str, str, str, int | None, int | None, int]]:
    """Stage, rule, what it does, pairs dropped, changed and left.

    A row per rule, and one per stage (or downloaded part) without rules.
    """
    for stage, name, counts in by_stage:
        left = counts.pairs_in
        part = f"{stage} {name.removeprefix('train').removeprefix('.')}".strip()
        for rule, changed in counts.changed.items():
            yield part, rule, _description(rule), None, changed, left
        for rule, dropped in counts.dropped.items():
            left -= dropped
            yield part, rule, _description(rule), dropped, None, left
        if not counts.changed and not counts.dropped:
            yield part, "", "", None, None, counts.pairs_out


def _description(rule: str) -> str:
    """The first paragraph of the rule's docstring."""
    kind = EDITS.get(rule) or CHECKS.get(rule)
    text = (kind.__doc__ or "").partition("\n\n")[0] if kind else _RULES.get(rule, "")
    return " ".join(text.split())
