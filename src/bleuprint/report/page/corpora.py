"""The section of data: what each stage and rule did, sentence lengths, vocabularies."""

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.dataset.statistics import MAX_SENTENCE_LENGTH, CorpusStatistics
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.funnel import Accounts, accounts, kept, training
from bleuprint.report.page.material import Material
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


def corpora(material: Material) -> Section:
    """Every corpus: its funnel, overlap, lengths and vocabularies."""
    parts = [_corpus(material, name) for name in material.settings.corpora]
    return Section("data", "Data", {"corpora": parts, "printed": blank_unprinted})


def _corpus(material: Material, name: str) -> dict[str, Any]:
    by_stage = accounts(material, name)
    pairs = kept(by_stage)
    statistics = CorpusStatistics.read(folder(name, "statistics", material.root) / STATISTICS)
    return {
        "name": name,
        "settings": material.settings.corpus(name),
        "pairs": pairs,
        "funnel": list(_funnel(by_stage)),
        "samples": [
            (stage, rule, samples)
            for stage, _, account in training(by_stage)
            for rule, samples in account["samples"].items()
        ],
        "overlap": sum(pairs.dropped.get(rule, 0) for rule in _OVERLAP),
        "charts": list(_charts(name, statistics)),
        "statistics": statistics,
    }


def _funnel(
    by_stage: Accounts,
) -> Iterator[tuple[str, str, str, int | None, int | None, int]]:
    """Stage, rule, what it does, pairs dropped, changed and left.

    A row per rule, and one per stage (or downloaded part) without rules.
    """
    for stage, name, account in training(by_stage):
        left = account["pairs_in"]
        where = f"{stage} {name.removeprefix('train').removeprefix('.')}".strip()
        for rule, changed in account["changed"].items():
            yield where, rule, _description(rule), None, changed, left
        for rule, dropped in account["dropped"].items():
            left -= dropped
            yield where, rule, _description(rule), dropped, None, left
        if not account["changed"] and not account["dropped"]:
            yield where, "", "", None, None, account["pairs_out"]


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
        with chart(f"lengths-{name}-{language}", title, width=5.2, height=3.0) as made:
            for label, values in shares.items():
                area = label == "train"
                look: Any = {"fill": True, "alpha": 0.3} if area else {"linewidth": 1.4}
                made.axes.stairs(values, label=label, **styles[label], **look)
            made.axes.set_xlabel("words")
            made.axes.set_ylabel("% of the sentences")
            made.axes.legend(fontsize=9)
        beyond = max(map(len, shares.values()), default=0) > MAX_SENTENCE_LENGTH + 1
        more = f" The last step holds all beyond {MAX_SENTENCE_LENGTH} words." if beyond else ""
        yield made.svg, f"{title}.{more}"
