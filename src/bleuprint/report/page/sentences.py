"""The page's sentences: source, reference and outputs of each test set, differences marked."""

from collections.abc import Iterable, Iterator
from itertools import chain

from bleuprint.report.page.html import Entry, details, escape, paragraph, table
from bleuprint.report.page.lines import MOST, SetLines, lines_of_sets
from bleuprint.report.page.material import Material, Section
from bleuprint.report.word_diff import Kind, differences
from bleuprint.scoring.sentence_scores import sentence_chrf
from bleuprint.text.unicode import blank_unprinted

# What all lists of lines may take of the page together, in bytes: the page has 5 MB in all.
BUDGET = 2_500_000
# Characters of a line that are shown; the differences of a longer one are not marked.
_LONGEST = 1_500

_MARKS: dict[Kind, tuple[str, str]] = {
    "same": ("", ""),
    "added": ("<ins>", "</ins>"),
    "missing": ("<del>", "</del>"),
}

_LEGEND = (
    "Each output is held against its reference word by word: <ins>underlined</ins> is in the "
    "output alone, <del>struck through</del> in the reference alone. A word that is underlined is "
    "not always wrong: there is more than one good translation. The scores are of the single line "
    "(BLEU up to the longest n-grams it has, and chrF2): they help to find lines, and say little "
    "by themselves."
)


def sentences(material: Material) -> Section | None:
    """For each test set: how lines compare, the telling ones, and all as far as there is room."""
    sets = list(lines_of_sets(material))
    if not sets:
        return None
    seeds = material.settings.seeds
    seed = f" All outputs are of seed {seeds[0]}, the first." if len(seeds) > 1 else ""
    lists = _lists(sets)
    body = paragraph(_LEGEND + seed, "hint") + "".join(
        _test_set(lines, number, lists[number]) for number, lines in enumerate(sets)
    )
    return Section("sentences", "Translations", body, ("sentences.css", "sentences.js"))


def _test_set(lines: SetLines, number: int, articles: dict[int, str]) -> str:
    def some(chosen: Iterable[int]) -> str:
        return "".join(_article(lines, line) for line in chosen) or paragraph("No line.")

    source, target = map(escape, lines.languages)
    parts = [
        f"<h3>{escape(lines.corpus)}, test set {escape(lines.test)} ({source} to {target})</h3>\n"
    ]
    if lines.left_out:
        parts.append(paragraph(_left_out(lines), "hint"))
    parts.append(_overview(lines))
    if len(lines.outputs) > 1:
        most = lines.differing[:MOST]
        parts.append(details("Where systems differ most", some(most), opened=number == 0))
    for system in lines.outputs:
        for name, ranked in (("Best", lines.best(system)), ("Worst", lines.worst(system))):
            parts.append(details(f"{name} lines of {escape(system)}", some(ranked[:MOST])))
    parts.append(_all(lines, number, articles))
    return "".join(parts)


def _left_out(lines: SetLines) -> str:
    return (
        f"Outputs of {len(lines.outputs)} of {len(lines.outputs) + lines.left_out} systems are "
        "shown: the baseline, the best, and those that differ most surely from the baseline."
    )


def _overview(lines: SetLines) -> str:
    """A table: of how many lines a system's output is the reference, better, or worse."""
    base = lines.outputs[lines.baseline]
    name = escape(lines.baseline)
    several = len(lines.outputs) > 1
    heads = ["System", "Same as the reference"]
    heads += [f"{word} {name}" for word in ("Better than", "Worse than", "Same BLEU as")] * several
    rows = []
    for system, output in lines.outputs.items():
        pairs = zip(output.lines, lines.references, strict=True)
        counts: list[int | None] = [sum(one == other for one, other in pairs)]
        deltas = [one - other for one, other in zip(output.bleu, base.bleu, strict=True)]
        found = [sum(d > 0 for d in deltas), sum(d < 0 for d in deltas), deltas.count(0)]
        if several:
            counts += [None] * 3 if system == lines.baseline else found
        rows.append([Entry.text(system), *(Entry.number(n, f"{n or 0:,}") for n in counts)])
    return table(heads, rows, f"Lines, of {len(lines.sources):,}, by the BLEU of the line")


def _all(lines: SetLines, number: int, articles: dict[int, str]) -> str:
    """The list that a script filters and sorts."""
    total, here = len(lines.sources), len(articles)
    some = f"All {total:,} lines" if total > 1 else "The only line"
    note = ""
    if here < total:
        some = f"{here:,} of {total:,} lines"
        note = paragraph(
            f"The page has room for {some}: those where systems differ most, the best and worst, "
            "and an even sample of the rest.",
            "hint",
        )
    systems = "".join(f"<option>{escape(name)}</option>" for name in lines.outputs)
    return details(
        some,
        f'{note}<div class="lines" id="lines-{number}" data-baseline="{escape(lines.baseline)}">\n'
        f'<template><option value="">all systems</option>{systems}</template>\n'
        f"{''.join(articles[line] for line in sorted(articles))}</div>\n",
    )


def _lists(sets: list[SetLines]) -> list[dict[int, str]]:
    """The lines of each set as HTML; what one does not need of its share goes to larger ones."""
    found: list[dict[int, str]] = [{} for _ in sets]
    left = BUDGET
    order = sorted(range(len(sets)), key=lambda i: len("".join(sets[i].references)))
    for rank, number in enumerate(order):
        share = left // (len(order) - rank)
        used = 0
        for line in sets[number].by_interest():
            article = _article(sets[number], line)
            used += len(article.encode())
            if used > share:
                break
            found[number][line] = article
            left -= len(article.encode())
    return found


def _article(lines: SetLines, line: int) -> str:
    """A line: a paragraph each for the source, the reference and the outputs.

    <bdi> isolates, and finds the direction of, what is written from right to left.
    """
    source, target = map(escape, lines.languages)
    reference = lines.references[line]
    parts = [
        f'<article lang="{target}"><h4>{line + 1}</h4>\n'
        f'<p lang="{source}"><b>source</b> <bdi>{_plain(lines.sources[line])}</bdi></p>\n'
        f"<p><b>reference</b> <bdi>{_plain(reference)}</bdi></p>\n"
    ]
    for system, output in lines.outputs.items():
        text, bleu = output.lines[line], output.bleu[line]
        (chrf,) = sentence_chrf([text], [reference])
        scores = f'<i data-bleu="{bleu:.2f}">BLEU {bleu:.1f}, chrF {chrf:.1f}</i>'
        shown = "".join(_marked(text, reference))
        parts.append(f"<p><b>{escape(system)}</b> <bdi>{shown}</bdi> {scores}</p>\n")
    return "".join(chain(parts, ["</article>\n"]))


def _marked(text: str, reference: str) -> Iterator[str]:
    """A translation with its differences; spaces stay outside of marks."""
    if max(len(text), len(reference)) > _LONGEST:
        yield _plain(text)
        return
    for kind, piece in differences(blank_unprinted(text), blank_unprinted(reference)):
        before, after = _MARKS[kind]
        bare = piece.lstrip()
        space = " " if len(bare) < len(piece) else ""
        yield f"{space}{before}{escape(bare)}{after}" if bare else space


def _plain(text: str) -> str:
    cut = text[:_LONGEST] + " … (cut)" if len(text) > _LONGEST else text
    return escape(blank_unprinted(cut))
