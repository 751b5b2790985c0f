"""The section of the gap to published numbers, split into measured steps."""

from markupsafe import Markup

from bleuprint.report.page.chart import chart
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import Gap, measured, unmeasured

_TOTAL, _MORE, _LESS, _LEFT = "#555555", "#0072B2", "#D55E00", "#999999"


def gap_section(context: ReportContext) -> Section | None:
    """A part for each published number that names a system of ours."""
    gaps = measured(context.settings, context.records, context.root)
    hints = [gap_tables.hint(number) for number in unmeasured(context.settings, gaps)]
    if not gaps and not hints:
        return None
    parts = [
        {
            "heading": gap_tables.heading(gap.published),
            "sentence": gap_tables.sentence(gap),
            "chart": _waterfall(gap, f"gap{number}"),
            "steps": gap_tables.steps(gap),
            "changes": gap_tables.change_table(gap),
        }
        for number, gap in enumerate(gaps)
    ]
    data = {
        "explained": gap_tables.EXPLAINED,
        "changes_caption": gap_tables.CHANGES,
        "parts": parts,
        "hints": hints,
    }
    return Section("gap", "Why not the published score?", data)


def _waterfall(gap: Gap, name: str) -> Markup:
    """Bars from our score, step by step, to the published number."""
    steps = [step for step in gap.steps if step.bleu]
    last = gap.published.bleu
    labels = ["ours", *(step.what for step in steps), "unexplained", "published"]
    ends = [gap.ours, *(step.score for step in steps), last, last]
    starts = [0.0, gap.ours, *(step.score for step in steps), 0.0]
    inner = [_MORE if step.bleu and step.bleu > 0 else _LESS for step in steps]
    colors = [_TOTAL, *inner, _LEFT, _TOTAL]
    texts = [f"{gap.ours:.2f}", *(gap_tables.signed(step.bleu or 0) for step in steps)]
    texts += [gap_tables.signed(gap.unexplained), f"{last:.2f}"]
    low, high = min(ends), max(ends)
    room = max(0.25 * (high - low), 0.5)
    with chart(name, gap_tables.sentence(gap), 4.8, 0.6 + 0.42 * len(labels)) as drawing:
        axes = drawing.axes
        widths = [end - start for start, end in zip(starts, ends, strict=True)]
        axes.barh(range(len(labels)), widths, left=starts, color=colors, height=0.6)
        for row, text in enumerate(texts):
            axes.text(max(starts[row], ends[row]) + room / 20, row, text, va="center")
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.set_xlim(max(0.0, low - room), high + room)
        axes.set_xlabel("BLEU")
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
    return drawing.svg
