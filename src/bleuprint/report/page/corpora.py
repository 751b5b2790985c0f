"""The data: what each stage and rule did to it, how long its sentences are, its vocabulary."""

from collections.abc import Iterator, Mapping
from typing import Any

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.dataset.statistics import (
    MAX_SENTENCE_LENGTH,
    CorpusStatistics,
    SideStatistics,
)
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.funnel import Accounts, Kept, accounts, kept, training
from bleuprint.report.page.html import Entry, details, escape, figure, paragraph, table
from bleuprint.report.page.material import Material, Section
from bleuprint.rules import CHECKS, EDITS
from bleuprint.text.unicode import blank_unprinted

# What rules do that are no files of rules/.
_RULES = {
    "empty_side": "A side is empty once it is cleaned.",
    "duplicate_pair": "The same pair came before.",
    "same_source": "The same source came before.",
    "same_target": "The same target came before.",
    "source_held_out": "The source is one of a validation or test set: overlap, removed.",
    "target_held_out": "The target is one of a validation or test set: overlap, removed.",
    "drawn_for_valid": "Drawn to be validated on.",
    "drawn_for_test": "Drawn to be tested on.",
}
_OVERLAP = ("source_held_out", "target_held_out")


def corpora(material: Material) -> Section:
    """Every corpus: its funnel, overlap, lengths and vocabularies."""
    body = "".join("".join(_corpus(material, name)) for name in material.settings.corpora)
    return Section("data", "Data", body)


def _corpus(material: Material, name: str) -> Iterator[str]:
    corpus = material.settings.corpus(name)
    found = accounts(material, name)
    pairs = kept(found)
    yield f"<h3>{escape(name)} ({corpus.source} to {corpus.target})</h3>\n"
    yield paragraph(_in_short(pairs))
    yield table(
        ["Stage", "Rule", "What the rule does", "Pairs dropped", "Pairs changed", "Pairs left"],
        list(_funnel(found)),
        "Training pairs, stage by stage and rule by rule",
        left=3,
    )
    if samples := "".join(_samples(found, (corpus.source, corpus.target))):
        yield details("Samples of what the rules did", samples)
    yield paragraph(_overlap(corpus.dedup.decontaminate, pairs.dropped))
    statistics = CorpusStatistics.read(folder(name, "statistics", material.root) / STATISTICS)
    yield f'<div class="charts">{"".join(_lengths(name, statistics))}</div>\n'
    yield table(
        [
            *("Set", "Language", "Sentences", "Words", "a sentence"),
            *("Tokens", "a word", "Unsplit words", "Unknown", "Longest"),
        ],
        [
            _set_row(set_name, language, side)
            for set_name, sides in statistics.sets.items()
            for language, side in sides.items()
        ],
        "What the model reads and writes: words, and the tokens that they are split into, in which "
        "the longest sentence is counted; a token that the vocabulary lacks counts as a word",
        left=2,
    )
    yield paragraph(_vocabulary(statistics))


def _in_short(found: Kept) -> str:
    """How many training pairs were read and are left, and what was dropped most."""
    share = f"{100 * found.left / found.read:.2f} %" if found.read else "none"
    pairs = f"{found.left:,} of {found.read:,} training pairs are trained on ({share})."
    text = f"<strong>{pairs}</strong> "
    dropped = ", ".join(map(escape, found.most()))
    return text + (f"Dropped: {dropped}." if dropped else "No rule dropped any.")


def _funnel(found: Accounts) -> Iterator[list[Entry]]:
    """A row for each rule, and for each stage (or downloaded part) without rules."""
    for stage, name, account in training(found):
        left, rows = account["pairs_in"], []
        for rule, count in account["changed"].items():
            rows.append((rule, None, count, left))
        for rule, count in account["dropped"].items():
            left -= count
            rows.append((rule, count, None, left))
        part = name.removeprefix("train").removeprefix(".")
        for rule, dropped, changed, left in rows or [("", None, None, account["pairs_out"])]:
            yield [
                Entry.text(f"{stage} {part}".strip()),
                Entry.text(rule),
                Entry(f'<span class="hint explained">{_explained(rule)}</span>'),
                Entry.number(dropped, f"{dropped or 0:,}"),
                Entry.number(changed, f"{changed or 0:,}"),
                Entry.number(left, f"{left:,}"),
            ]


def _explained(rule: str) -> str:
    """What a rule does, in the words of its own file."""
    kind = EDITS.get(rule) or CHECKS.get(rule)
    text = (kind.__doc__ or "").partition("\n\n")[0] if kind else _RULES.get(rule, "")
    return escape(" ".join(text.replace("`", "").split()))


def _samples(found: Accounts, languages: tuple[str, str]) -> Iterator[str]:
    for stage, _, account in training(found):
        for rule, samples in account["samples"].items():
            items = "".join(f"<li>{_sample(one, languages)}</li>\n" for one in samples)
            yield f"<h4>{stage}: {escape(rule)}</h4>\n<ul>\n{items}</ul>\n"


def _sample(sample: Mapping[str, Any], languages: tuple[str, str]) -> str:
    """A pair before the rule, and after it if it was changed."""
    lines = [f"pair {sample['pair']:,}"]
    for side, language in zip(("source", "target"), languages, strict=True):
        text = _bidi(sample[side], language)
        if (new := sample.get(f"new_{side}", sample[side])) != sample[side]:
            text += f" → {_bidi(new, language)}"
        lines.append(text)
    return "<br>".join(lines)


def _bidi(text: str, language: str) -> str:
    return f'<bdi lang="{language}">{escape(blank_unprinted(text))}</bdi>'


def _overlap(compared: str, dropped: Mapping[str, int]) -> str:
    """How much of the training text was in a held-out set, and what became of it."""
    if compared == "none":
        return (
            "Overlap of training text with validation and test sets was not looked for "
            "(<code>dedup.decontaminate: none</code>): scores may be too good."
        )
    how = {"exact": "as they are", "normalized": "without regard to case, punctuation and spaces"}
    found = sum(dropped.get(rule, 0) for rule in _OVERLAP)
    what = f"{found:,} training pairs held one, and were removed" if found else "none was found"
    return (
        f"Overlap: sentences of validation and test sets in the training text, compared "
        f"{how[compared]}: {what}."
    )


def _lengths(name: str, statistics: CorpusStatistics) -> Iterator[str]:
    """A histogram of sentence lengths for each language: training text as an area, others lines."""
    for language in statistics.vocabularies:
        title = f"How long the sentences of {name} are: {language}"
        shares = {
            set_name: [
                100 * count / sides[language].sentences
                for count in sides[language].sentence_lengths
            ]
            for set_name, sides in statistics.sets.items()
            if sides[language].sentences
        }
        styles = line_styles(list(shares))
        with chart(f"lengths-{name}-{language}", title, width=5.2, height=3.0) as drawn:
            for label, values in shares.items():
                area = label == "train"
                look: Any = {"fill": True, "alpha": 0.3} if area else {"linewidth": 1.4}
                drawn.axes.stairs(values, label=label, **styles[label], **look)
            drawn.axes.set_xlabel("words")
            drawn.axes.set_ylabel("% of the sentences")
            drawn.axes.legend(fontsize=9)
        most = max(map(len, shares.values()), default=0)
        more = (
            f" The last step holds all beyond {MAX_SENTENCE_LENGTH} words."
            if most > MAX_SENTENCE_LENGTH + 1
            else ""
        )
        yield figure(drawn.svg(), f"{escape(title)}.{more}")


def _set_row(name: str, language: str, side: SideStatistics) -> list[Entry]:
    words, sentences = max(side.words, 1), max(side.sentences, 1)
    whole = 100 * side.tokens_per_word[0] / words
    return [
        Entry.text(name),
        Entry.text(language),
        Entry.number(side.sentences, f"{side.sentences:,}"),
        Entry.number(side.words, f"{side.words:,}"),
        Entry.number(0, f"{side.words / sentences:.1f}"),
        Entry.number(side.tokens, f"{side.tokens:,}"),
        Entry.number(0, f"{side.tokens / words:.2f}"),
        Entry.number(whole, f"{whole:.1f} %"),
        Entry.number(side.unk, f"{side.unk:,}"),
        Entry.number(side.max_tokens, f"{side.max_tokens:,}"),
    ]


def _vocabulary(statistics: CorpusStatistics) -> str:
    vocabularies = list(statistics.vocabularies.items())
    shown = vocabularies[:1] if statistics.joint else vocabularies
    texts = [
        f"{language}: {vocabulary.size:,} tokens, of which {vocabulary.below_10:,} occur less than "
        f"10 times and {vocabulary.below_100:,} less than 100 times in the training text"
        for language, vocabulary in shown
    ]
    if statistics.joint:
        texts = [texts[0].replace(f"{vocabularies[0][0]}:", "Both languages share one:", 1)]
    return f"Vocabularies. {'; '.join(texts)}."
