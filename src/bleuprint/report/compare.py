"""The command `bleuprint compare`: two systems, or the same ones at two revisions."""

from collections.abc import Iterator
from contextlib import ExitStack

from bleuprint.report import compare_tables
from bleuprint.report.compare_tables import Pair, Side
from bleuprint.report.compare_translations import translations
from bleuprint.report.grid import Grid
from bleuprint.report.revision import at
from bleuprint.runtime.errors import UserError


def compare(
    first: str, second: str, corpus: str | None = None, sentences: int = 10
) -> Iterator[str | Grid]:
    """Lines and tables on A and B, each SYSTEM, SYSTEM@REVISION or @REVISION.

    Without a system, that of the other side; without one on both sides, every system that both
    have. No revision, or an empty one, is the working tree. With a `corpus`, it alone is compared,
    and its translations, too. Raises UserError for what does not exist.
    """
    sides = [_parse(text) for text in (first, second)]
    with ExitStack() as stack:
        revisions = {
            name: stack.enter_context(at(name)) for name in dict.fromkeys(name for _, name in sides)
        }
        before, after = (revisions[name] for _, name in sides)
        systems = [system for system, _ in sides]
        if any(systems):
            named = [(systems[0] or systems[1], systems[1] or systems[0])]
        else:
            common = [name for name in before.settings.systems if name in after.settings.systems]
            if not common:
                raise UserError(f"{first} and {second}: no system of the same name")
            named = [(name, name) for name in common]
        for a, b in named:
            pair = Pair(Side(a, before), Side(b, after), corpus)
            for side in pair.sides:
                side.revision.fetch(pair.cells(side))
            yield from _overview(pair)
            if corpus:
                yield from translations(pair, sentences)


def _parse(text: str) -> tuple[str, str]:
    """The system and the revision of an argument."""
    system, at_sign, revision = text.partition("@")
    if not system and not at_sign:
        raise UserError(f"{text!r}: not SYSTEM, SYSTEM@REVISION or @REVISION")
    return system, revision


def _overview(pair: Pair) -> Iterator[str | Grid]:
    """Settings, fingerprints, data, training and scores, as far as they differ."""
    grids = {part: compare_tables.differing(pair, part) for part in compare_tables.PARTS}
    same = [title.lower() for title, grid in grids.items() if grid is None]
    if len(same) == len(grids) and compare_tables.same_scores(pair):
        yield f"{pair.first} and {pair.second}: nothing differs: {', '.join(same)}, scores"
        return
    yield f"{pair.first} and {pair.second}"
    for title, grid in grids.items():
        if grid is not None:
            yield f"\n{title}"
            yield grid
    yield "\nScores"
    yield from compare_tables.scores(pair)
    if same:
        yield f"the same: {', '.join(same)}"
    yield ""
