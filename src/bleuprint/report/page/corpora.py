"""The section of data: what each stage and rule did, sentence lengths, vocabularies."""

from collections.abc import Iterable, Iterator
from typing import Any

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.dataset.statistics import MAX_SENTENCE_LENGTH, CorpusStatistics
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import kept, training_counts
from bleuprint.report.page.section import Section
from bleuprint.rules import CHECKS, EDITS
from bleuprint.text.unicode import blank_unprinted

# Reasons to drop a pair that are not rules of rules/.
_RULES = {
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
    """Every corpus: its funnel, overlap, lengths and vocabularies."""
    parts = [_corpus(context, name) for name in context.settings.corpora]
    return Section("data", "Data", {"corpora": parts, "printed": blank_unprinted})


def _corpus(context: ReportContext, name: str) -> dict[str, Any]:
    statistics = CorpusStatistics.read(folder(name, "statistics", context.root) / STATISTICS)
    by_stage = list(training_counts(name, context.root))
    pairs = kept(name, context.root)
    return {
        "name": name,
        "settings": context.settings.corpus(name),
        "pairs": pairs,
        "funnel": list(_funnel(by_stage)),
        "samples": [
            (stage, rule, samples)
            for stage, _, counts in by_stage
            for rule, samples in counts.samples.items()
        ],
        "overlap": sum(pairs.dropped.get(rule, 0) for rule in _OVERLAP),
        "charts": list(_charts(name, statistics)),
        "statistics": statistics,
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


def _charts(name: str, statistics: CorpusStatistics) -> Iterator[tuple[Markup, str]]:
    """A histogram of sentence lengths per language: training text as an area, others as lines."""
    for language in statistics.vocabularies:
        title = f"Sentence lengths of {name}: {language}"
        shares = {
            set_name: [
                100 * count / sides[language].sentences
                for count in sides[language].sentence_lengths
            ]
            for set_name, sides in statistics.sets.items()
            if sides[language].sentences
        }
        styles = line_styles(list(shares))
        with chart(f"lengths-{name}-{language}", title, width=5.2, height=3.0) as drawing:
            for label, values in shares.items():
                area = label == "train"
                look: Any = {"fill": True, "alpha": 0.3} if area else {"linewidth": 1.4}
                drawing.axes.stairs(values, label=label, **styles[label], **look)
            drawing.axes.set_xlabel("words")
            drawing.axes.set_ylabel("% of the sentences")
            drawing.axes.legend(fontsize=9)
        beyond = max(map(len, shares.values()), default=0) > MAX_SENTENCE_LENGTH + 1
        more = f" The last step holds all beyond {MAX_SENTENCE_LENGTH} words." if beyond else ""
        yield drawing.svg, f"{title}.{more}"
