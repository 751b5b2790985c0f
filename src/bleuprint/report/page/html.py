"""Pieces of HTML. Whatever comes from outside goes through `escape`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Entry", "counted", "details", "escape", "figure", "paragraph", "table"]


@dataclass(frozen=True)
class Entry:
    """A cell of a table: its HTML, and the number or text by which it is sorted."""

    html: str
    key: float | str | None = None

    @classmethod
    def text(cls, text: str) -> "Entry":
        return cls(escape(text), text)

    @classmethod
    def number(cls, value: float | None, shown: str) -> "Entry":
        """`value` sorts; None (shown as a dash) comes last."""
        return cls(escape(shown) if value is not None else "–", value)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Entry]],
    caption: str,
    *,
    left: int = 1,
    sortable: bool = False,
    marks: Sequence[str] = (),
) -> str:
    """A table in a box that scrolls. `heads` and `caption` are HTML; the first `left` columns hold
    text, the others numbers; `marks` are classes of the rows.
    """
    kinds = ["text" if i < left else "number" for i in range(len(heads))]
    head = "".join(
        f'<th scope="col" class="{kind}">{name}</th>'
        for name, kind in zip(heads, kinds, strict=True)
    )
    lines = []
    for index, row in enumerate(rows):
        mark = f' class="{marks[index]}"' if index < len(marks) and marks[index] else ""
        cells = "".join(_cell(cell, kind, sortable) for cell, kind in zip(row, kinds, strict=True))
        lines.append(f"<tr{mark}>{cells}</tr>\n")
    kind = ' class="sortable"' if sortable else ""
    label = re.sub("<[^>]*>", "", caption).replace('"', "&quot;") or "Table"
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table{kind}>\n'
        f"<caption><span>{caption}</span></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody></table></div>\n"
    )


def counted(number: int, noun: str) -> str:
    """1 sentence; 1,000 sentences."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def paragraph(html: str, kind: str = "") -> str:
    return f'<p class="{kind}">{html}</p>\n' if kind else f"<p>{html}</p>\n"


def details(summary: str, body: str, *, opened: bool = False) -> str:
    """What is folded away below a line; both are HTML."""
    mark = " open" if opened else ""
    return f"<details{mark}><summary>{summary}</summary>\n{body}</details>\n"


def figure(svg: str, caption: str) -> str:
    return f"<figure>\n{svg}<figcaption>{caption}</figcaption></figure>\n"


def _cell(cell: Entry, kind: str, sortable: bool) -> str:
    key = "" if cell.key is None else escape(str(cell.key))
    sort = f' data-key="{key}"' if sortable else ""
    return f'<td class="{kind}"{sort}>{cell.html}</td>'
