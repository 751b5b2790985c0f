"""Why a score is not the published one: the gap, split into what was measured."""

from bleuprint.report.page.chart import chart
from bleuprint.report.page.html import Entry, details, escape, figure, paragraph, table
from bleuprint.report.page.material import Material, Section
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import Change, Gap, measured, unmeasured

_CAPTION = "From our score to the published number. The axis does not begin at 0."
# So many gaps are shown in full; of more, the tables of single changes are folded away.
_OPENED = 2
_TOTAL, _MORE, _LESS, _LEFT = "#555555", "#0072B2", "#D55E00", "#999999"


def gap_section(material: Material) -> Section | None:
    """A part for each published number that names a system of ours."""
    found = measured(material.settings, material.records, material.root)
    hints = [gap_tables.hint(number) for number in unmeasured(material.settings, found)]
    if not found and not hints:
        return None
    parts = [paragraph(escape(gap_tables.EXPLAINED))] if found else []
    for number, (gap, varied) in enumerate(found):
        parts.append(f"<h3>{escape(gap_tables.heading(gap))}</h3>\n")
        parts.append(paragraph(escape(gap_tables.sentence(gap))))
        parts.append(figure(_waterfall(gap, f"gap{number}"), _CAPTION))
        parts.append(_steps(gap))
        opened = len(found) <= _OPENED
        parts.append(details("With one thing changed", _changes(varied), opened=opened))
    parts += [paragraph(escape(text)) for text in hints]
    return Section("gap", "Why not the published score?", "".join(parts))


def _steps(gap: Gap) -> str:
    rows = [
        [Entry.text(what), Entry(escape(bleu)), Entry(escape(score)), Entry.text(note)]
        for what, bleu, score, note in gap_tables.steps(gap)
    ]
    # notes are text, and stand first for that
    rows = [[what, note, bleu, score] for what, bleu, score, note in rows]
    heads = "Step", "What was compared", "BLEU", "Score after it"
    return table(heads, rows, "The steps add up to the published number.", left=2)


def _changes(varied: list[Change]) -> str:
    rows = [[Entry(escape(text)) for text in gap_tables.texts(change)] for change in varied]
    heads = "Changed", "To", "BLEU", "More than ours"
    return table(heads, rows, escape(gap_tables.CHANGES), left=2)


def _waterfall(gap: Gap, name: str) -> str:
    """Bars that hang where the score stands: from ours, step by step, to the published number."""
    steps = [step for step in gap.steps if step.bleu]
    last = gap.published.bleu
    labels = ["ours", *(step.what for step in steps), "unexplained", "published"]
    ends = [gap.ours, *(step.score for step in steps), last, last]
    starts = [0.0, gap.ours, *(step.score for step in steps), 0.0]
    inner = [_MORE if step.bleu and step.bleu > 0 else _LESS for step in steps]
    colours = [_TOTAL, *inner, _LEFT, _TOTAL]
    texts = [f"{gap.ours:.2f}", *(gap_tables.signed(step.bleu or 0) for step in steps)]
    texts += [gap_tables.signed(gap.unexplained), f"{last:.2f}"]
    low, high = min(ends), max(ends)
    room = max(0.25 * (high - low), 0.5)
    title = gap_tables.sentence(gap)
    with chart(name, title, 4.8, 0.6 + 0.42 * len(labels)) as drawn:
        axes = drawn.axes
        for row, (start, end, colour, text) in enumerate(
            zip(starts, ends, colours, texts, strict=True)
        ):
            axes.barh(row, end - start, left=start, color=colour, height=0.6)
            axes.text(max(start, end) + room / 20, row, text, va="center")
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.set_xlim(max(0.0, low - room), high + room)
        axes.set_xlabel("BLEU")
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
    return drawn.svg()
