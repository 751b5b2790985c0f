"""The gap to published numbers as text: for the report, and what the page says in HTML."""

from collections.abc import Iterator, Sequence

from bleuprint.config.experiment import Settings
from bleuprint.config.published import Published
from bleuprint.report.grid import Column, Grid, Row, markdown
from bleuprint.report.published.gap import Change, Gap, unmeasured

UNMEASURED = "not measured"
UNEXPLAINED = "other data, settings or program, chance, and what was not measured"
EXPLAINED = (
    "From our score, one thing after the other is done as for the published number, and its BLEU "
    "counted. What is left is unexplained: other data, settings or program, chance, and what was "
    "not measured. The order matters a little, since the steps are not independent."
)
CHANGES = (
    "The same trained model, with one thing changed at a time; BLEU is sacreBLEU's. A star marks "
    "what the system has."
)


def heading(gap: Gap) -> str:
    return _heading(gap.published)


def _heading(number: Published) -> str:
    return f"{number.system} against {number.name}: {number.corpus}, {number.test}"


def sentence(gap: Gap) -> str:
    """The gap in words; `source` is where the number was printed."""
    number = gap.published
    seeds = f" (mean of {gap.seeds} seeds)" if gap.seeds > 1 else ""
    scored = "scored otherwise" if number.scored == "otherwise" else f"scored {number.scored}"
    return (
        f"Ours is {gap.ours:.2f}{seeds}, scored by sacreBLEU; {number.name} has {number.bleu:.2f}, "
        f"{scored} ({number.source}): a gap of {signed(gap.whole)}. {_explained(gap)}"
    )


def _explained(gap: Gap) -> str:
    if gap.explained is None:
        return "Nothing of it was measured: all of it is unexplained."
    left = signed(gap.unexplained)
    return f"What was measured makes {signed(gap.explained)}; {left} is left, unexplained."


def steps(gap: Gap) -> Iterator[tuple[str, str, str, str]]:
    """Each line of the sum: what, BLEU it adds, the score after it, a note."""
    yield "ours", "", f"{gap.ours:.2f}", "sacreBLEU"
    for step in gap.steps:
        added = UNMEASURED if step.bleu is None else signed(step.bleu)
        yield step.what, added, f"{step.score:.2f}", step.note
    left = gap.published.bleu
    yield "unexplained", signed(gap.unexplained), f"{left:.2f}", UNEXPLAINED
    yield "published", "", f"{left:.2f}", gap.published.source


def signed(bleu: float) -> str:
    """With a sign, a true minus; 0.00 has none."""
    return f"{bleu:+.2f}".replace("-", "−") if bleu else "0.00"


def hint(number: Published) -> str:
    """How to measure the gap to a number."""
    return (
        f"{_heading(number)}: not measured. To measure it: bleuprint gap --system {number.system} "
        f"--corpus {number.corpus}; then: dvc repro --single-item --force report"
    )


def parts(
    settings: Settings, found: Sequence[tuple[Gap, Sequence[Change]]]
) -> Iterator[str | Grid]:
    """Lines and tables on every gap, and a line on each that is not measured."""
    for gap, changes in found:
        yield heading(gap)
        yield sentence(gap)
        yield _steps(gap)
        yield f"\n{CHANGES}"
        yield _changes(changes)
        yield ""
    yield from map(hint, unmeasured(settings, found))


def markdown_of(settings: Settings, found: Sequence[tuple[Gap, Sequence[Change]]]) -> list[str]:
    """The parts of the report's section, none if no published number names a system."""
    hints = list(map(hint, unmeasured(settings, found)))
    if not found and not hints:
        return []
    parts = ["## The gap to published numbers", *([EXPLAINED] if found else [])]
    for gap, changes in found:
        parts += [f"### {heading(gap)}", sentence(gap), markdown(_steps(gap))]
        parts += [CHANGES, markdown(_changes(changes))]
    return [*parts, *hints]


def _steps(gap: Gap) -> Grid:
    columns = Column("Step", left=True), Column("BLEU"), Column("Score"), Column("Note", left=True)
    return Grid(columns, tuple(Row(cells) for cells in steps(gap)))


def _changes(changes: Sequence[Change]) -> Grid:
    columns = Column("Changed", left=True), Column("To", left=True), Column("BLEU"), Column("±")
    return Grid(columns, tuple(Row(texts(change)) for change in changes))


def texts(change: Change) -> tuple[str, str, str, str]:
    """A change in words: what, to what, BLEU, and how much more that is."""
    to = f"{change.to} *" if change.own else change.to
    if change.bleu is None or change.difference is None:
        return change.what, to, UNMEASURED, ""
    return change.what, to, f"{change.bleu:.2f}", signed(change.difference)
