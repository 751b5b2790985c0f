"""The data: what each stage and rule did to it, how long its sentences are, its vocabulary."""

from collections.abc import Iterator, Mapping
from typing import Any

from bleuprint.census import LONGEST, Census, Side
from bleuprint.characters import blank_unprinted
from bleuprint.files import read_object
from bleuprint.layout import CENSUS, folder, ledger
from bleuprint.page.chart import chart, line_styles
from bleuprint.page.html import Entry, details, escape, figure, paragraph, table
from bleuprint.page.material import Material, Section
from bleuprint.rules import CHECKS, EDITS

STAGES = ("download", "clean", "dedup", "filter", "split", "tokenize", "binarize")

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

_Account = Mapping[str, Any]


def corpora(material: Material) -> Section:
    """Every corpus: its funnel, overlap, lengths and vocabularies."""
    body = "".join("".join(_corpus(material, name)) for name in material.settings.corpora)
    return Section("data", "Data", body)


def _corpus(material: Material, name: str) -> Iterator[str]:
    corpus = material.settings.corpus(name)
    accounts = {stage: _accounts(material, name, stage) for stage in STAGES}
    yield f"<h3>{escape(name)} ({corpus.source} to {corpus.target})</h3>\n"
    yield paragraph(_in_short(accounts))
    yield table(
        ["Stage", "Rule", "What the rule does", "Pairs dropped", "Pairs changed", "Pairs left"],
        list(_funnel(accounts)),
        "Training pairs, stage by stage and rule by rule",
        left=3,
    )
    if samples := "".join(_samples(accounts, (corpus.source, corpus.target))):
        yield details("Samples of what the rules did", samples)
    yield paragraph(_overlap(corpus.dedup.overlap, accounts))
    census = Census.read(folder(name, "statistics", material.root) / CENSUS)
    yield f'<div class="charts">{"".join(_lengths(name, census))}</div>\n'
    yield table(
        [
            *("Set", "Language", "Sentences", "Words", "a sentence"),
            *("Units", "a word", "Uncut words", "Unknown", "Longest"),
        ],
        [
            _set_row(set_name, language, side)
            for set_name, sides in census.sets.items()
            for language, side in sides.items()
        ],
        "What the model reads and writes: words, and the units that they are cut into, in which "
        "the longest sentence is counted",
        left=2,
    )
    yield paragraph(_vocabulary(census))


def _accounts(material: Material, corpus: str, stage: str) -> Mapping[str, _Account]:
    sets: Mapping[str, _Account] = read_object(ledger(corpus, stage, material.root), ("sets",))[
        "sets"
    ]
    return sets


def _training(accounts: Mapping[str, Mapping[str, _Account]]) -> Iterator[tuple[str, _Account]]:
    """The accounts of the training text, a stage after the other; downloads come in parts."""
    for stage, sets in accounts.items():
        for name, account in sets.items():
            if name == "train" or name.startswith("train."):
                yield stage, account


def _in_short(accounts: Mapping[str, Mapping[str, _Account]]) -> str:
    """How many training pairs came in and were left, and what was dropped most."""
    training = list(_training(accounts))
    read = sum(account["pairs_in"] for stage, account in training if stage == "download")
    left = training[-1][1]["pairs_out"]
    dropped: dict[str, int] = {}
    for _, account in training:
        for rule, count in account["dropped"].items():
            dropped[rule] = dropped.get(rule, 0) + count
    most = sorted((rule for rule in dropped if dropped[rule]), key=lambda rule: -dropped[rule])
    share = f"{100 * left / read:.2f} %" if read else "none"
    text = f"<strong>{left:,} of {read:,} training pairs are trained on ({share}).</strong> "
    if not most:
        return text + "No rule dropped any."
    return text + "Dropped: " + ", ".join(f"{escape(r)} {dropped[r]:,}" for r in most) + "."


def _funnel(accounts: Mapping[str, Mapping[str, _Account]]) -> Iterator[list[Entry]]:
    """A row for each rule, and for each stage without rules."""
    for stage, account in _training(accounts):
        left, rows = account["pairs_in"], []
        for rule, count in account["changed"].items():
            rows.append((rule, None, count, left))
        for rule, count in account["dropped"].items():
            left -= count
            rows.append((rule, count, None, left))
        for rule, dropped, changed, left in rows or [("", None, None, account["pairs_out"])]:
            yield [
                Entry.text(stage),
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


def _samples(
    accounts: Mapping[str, Mapping[str, _Account]], languages: tuple[str, str]
) -> Iterator[str]:
    for stage, account in _training(accounts):
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


def _overlap(compared: str, accounts: Mapping[str, Mapping[str, _Account]]) -> str:
    """How much of the training text was in a held-out set, and what became of it."""
    if compared == "none":
        return (
            "Overlap of training text with validation and test sets was not looked for "
            "(<code>dedup.overlap: none</code>): scores may be too good."
        )
    how = {"exact": "as they are", "folded": "without regard to case, punctuation and spaces"}
    found = sum(
        account["dropped"].get(rule, 0) for _, account in _training(accounts) for rule in _OVERLAP
    )
    what = f"{found:,} training pairs held one, and were removed" if found else "none was found"
    return (
        f"Overlap: sentences of validation and test sets in the training text, compared "
        f"{how[compared]}: {what}."
    )


def _lengths(name: str, census: Census) -> Iterator[str]:
    """A histogram of sentence lengths for each language: training text as an area, others lines."""
    for language in census.vocabularies:
        title = f"How long the sentences of {name} are: {language}"
        shares = {
            set_name: [100 * count / sides[language].sentences for count in sides[language].lengths]
            for set_name, sides in census.sets.items()
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
            drawn.axes.legend(fontsize=8)
        most = max(map(len, shares.values()), default=0)
        more = f" The last step holds all beyond {LONGEST} words." if most > LONGEST + 1 else ""
        yield figure(drawn.svg(), f"{escape(title)}.{more}")


def _set_row(name: str, language: str, side: Side) -> list[Entry]:
    words, sentences = max(side.words, 1), max(side.sentences, 1)
    whole = 100 * side.pieces[0] / words
    return [
        Entry.text(name),
        Entry.text(language),
        Entry.number(side.sentences, f"{side.sentences:,}"),
        Entry.number(side.words, f"{side.words:,}"),
        Entry.number(0, f"{side.words / sentences:.1f}"),
        Entry.number(side.units, f"{side.units:,}"),
        Entry.number(0, f"{side.units / words:.2f}"),
        Entry.number(whole, f"{whole:.1f} %"),
        Entry.number(side.unknown, f"{side.unknown:,}"),
        Entry.number(side.longest, f"{side.longest:,}"),
    ]


def _vocabulary(census: Census) -> str:
    vocabularies = list(census.vocabularies.items())
    texts = [
        f"{language}: {units.size:,} units, of which {units.below_10:,} occur less than 10 times "
        f"and {units.below_100:,} less than 100 times in the training text"
        for language, units in (vocabularies[:1] if census.joint else vocabularies)
    ]
    if census.joint:
        texts = [texts[0].replace(f"{vocabularies[0][0]}:", "Both languages share one:", 1)]
    return f"Vocabularies. {'; '.join(texts)}."
