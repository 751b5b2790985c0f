"""The command `bleuprint diff`: two systems, or the same ones at two revisions."""

import difflib
from collections.abc import Iterator
from contextlib import ExitStack

from bleuprint.report import diff_tables
from bleuprint.report.diff_tables import Pair, Side
from bleuprint.report.grid import Grid
from bleuprint.report.records import verified
from bleuprint.report.revision import Revision, at
from bleuprint.runtime.errors import UserError

_PARTS = {
    "Settings": diff_tables.settings,
    "Fingerprints": diff_tables.fingerprints,
    "Data": diff_tables.funnel,
    "Training": diff_tables.curves,
}


def diff(first: str, second: str) -> Iterator[str | Grid]:
    """Lines and tables on A and B, each SYSTEM, SYSTEM@REVISION or @REVISION.

    Without a system, the other's; without one in both, all that both have. No revision, or an empty
    one, is what lies here. Raises UserError for what is not there.
    """
    named = [_parted(text) for text in (first, second)]
    with ExitStack() as stack:
        names = dict.fromkeys(revision for _, revision in named)
        revisions = {name: stack.enter_context(at(name)) for name in names}
        one, other = (revisions[revision] for _, revision in named)
        systems = [system for system, _ in named]
        if not any(systems):
            common = [name for name in one.settings.systems if name in other.settings.systems]
            if not common:
                raise UserError(f"{first} and {second}: no system of the same name")
            chosen = [(name, name) for name in common]
        else:
            chosen = [(systems[0] or systems[1], systems[1] or systems[0])]
        for a, b in chosen:
            yield from _of_pair(Pair(_side(a, one), _side(b, other)))


def _parted(text: str) -> tuple[str, str]:
    system, at_sign, revision = text.partition("@")
    if not system and not at_sign:
        raise UserError(f"{text!r}: not SYSTEM, SYSTEM@REVISION or @REVISION")
    return system, revision


def _side(system: str, revision: Revision) -> Side:
    """The side, once it is sure that there is one."""
    known = revision.settings.systems
    if system not in known:
        near = difflib.get_close_matches(system, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        where = f" at {revision.name}" if revision.name else ""
        raise UserError(f"no system {system!r}{where}; there are: {', '.join(known)}{hint}")
    return Side(system, revision)


def _of_pair(pair: Pair) -> Iterator[str | Grid]:
    if pair.first == pair.second:
        raise UserError(f"{pair.first}: compared with itself")
    if not pair.corpora:
        raise UserError(f"{pair.first} and {pair.second}: no corpus in common")
    for side in pair.sides:
        side.revision.fetch(cells := pair.cells(side))
        for cell in cells:
            verified(side.revision.settings, cell, side.revision.root)
    grids = {title: make(pair) for title, make in _PARTS.items()}
    same = [title.lower() for title, grid in grids.items() if grid is None]
    if len(same) == len(grids) and diff_tables.same_scores(pair):
        yield f"{pair.first} and {pair.second}: nothing differs: {', '.join(same)}, scores"
        return
    yield f"{pair.first} and {pair.second}"
    for title, grid in grids.items():
        if grid is not None:
            yield f"\n{title}"
            yield grid
    yield "\nScores"
    yield from diff_tables.scores(pair)
    if same:
        yield f"the same: {', '.join(same)}"
    yield ""
