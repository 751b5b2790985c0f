"""The gap to published numbers as text and tables."""

from collections.abc import Iterator, Sequence

from bleuprint.config.experiment import Settings
from bleuprint.config.published import Published
from bleuprint.report.grid import Column, Grid, Row, markdown
from bleuprint.report.published.gap import Gap

UNMEASURED = "not measured"
UNEXPLAINED = "other data, settings or program, chance, and what was not measured"
EXPLAINED = (
    "From our score, one thing after the other is done as for the published number, and its BLEU "
    "added. The rest is unexplained: other data, settings or program, chance, and what was "
    "not measured. The order matters a little, since the steps are not independent."
)


def heading(number: Published) -> str:
    return f"{number.system} against {number.name}: {number.corpus}, {number.test}"


def sentence(gap: Gap) -> str:
    """The gap in words; `source` is where the number was printed."""
    number = gap.published
    seeds = f" (mean of {gap.seeds} seeds)" if gap.seeds > 1 else ""
    scored = "scored otherwise" if number.scored == "otherwise" else f"scored {number.scored}"
    explained = "Nothing of it was measured."
    if gap.explained is not None:
        left = signed(gap.unexplained)
        explained = f"The measured steps add {signed(gap.explained)}; {left} is unexplained."
    return (
        f"Ours is {gap.ours:.2f}{seeds}, scored by sacreBLEU; {number.name} has {number.bleu:.2f}, "
        f"{scored} ({number.source}): a gap of {signed(gap.whole)}. {explained}"
    )


def steps(gap: Gap) -> Grid:
    """The sum: what, the BLEU it adds, the score after it, a note."""
    rows = [("ours", "", f"{gap.ours:.2f}", "sacreBLEU")]
    for step in gap.steps:
        added = UNMEASURED if step.bleu is None else signed(step.bleu)
        rows.append((step.what, added, f"{step.score:.2f}", step.note))
    published = f"{gap.published.bleu:.2f}"
    rows.append(("unexplained", signed(gap.unexplained), published, UNEXPLAINED))
    rows.append(("published", "", published, gap.published.source))
    columns = Column("Step", left=True), Column("BLEU"), Column("Score"), Column("Note", left=True)
    return Grid(columns, tuple(map(Row, rows)))


def signed(bleu: float) -> str:
    """With a sign, a true minus; 0.00 has none."""
    return f"{bleu:+.2f}".replace("-", "−") if bleu else "0.00"


def hints(settings: Settings, gaps: Sequence[Gap]) -> list[str]:
    """How to measure the gaps that were not: to the other numbers that name a system."""
    measured = [gap.published for gap in gaps]
    return [
        f"{heading(number)}: not measured. To measure it: bleuprint gap --system {number.system} "
        f"--corpus {number.corpus}; then: dvc repro --single-item --force report"
        for number in settings.published
        if number.system is not None and number not in measured
    ]


def parts(settings: Settings, gaps: Sequence[Gap]) -> Iterator[str | Grid]:
    """Lines and tables on every gap, and a line on each that is not measured."""
    for gap in gaps:
        yield heading(gap.published)
        yield sentence(gap)
        yield steps(gap)
        yield ""
    yield from hints(settings, gaps)


def markdown_of(settings: Settings, gaps: Sequence[Gap]) -> list[str]:
    """The parts of the report's section, none if no published number names a system."""
    parts = [EXPLAINED] if gaps else []
    for gap in gaps:
        parts += [f"### {heading(gap.published)}", sentence(gap), markdown(steps(gap))]
    parts += hints(settings, gaps)
    return ["## The gap to published numbers", *parts] if parts else []
