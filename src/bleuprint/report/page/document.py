"""The whole page: its head, a list of its sections, and the sections."""

from collections.abc import Callable
from importlib.resources import files

from bleuprint.report.page.attention import attention
from bleuprint.report.page.corpora import corpora
from bleuprint.report.page.cost import cost
from bleuprint.report.page.curves import curves
from bleuprint.report.page.funnel import accounts, kept
from bleuprint.report.page.gap import gap_section
from bleuprint.report.page.html import counted, escape, paragraph
from bleuprint.report.page.material import Material, Section
from bleuprint.report.page.provenance import provenance
from bleuprint.report.page.reconciliation import reconciliation
from bleuprint.report.page.scores import scores
from bleuprint.report.page.sentences import sentences
from bleuprint.report.page.summary import summary

# What the page shows, in this order; a section that has nothing to show is None.
SECTIONS: tuple[Callable[[Material], Section | None], ...] = (
    summary,
    scores,
    reconciliation,
    gap_section,
    sentences,
    attention,
    curves,
    corpora,
    cost,
    provenance,
)

# So many systems are named below the heading.
_NAMED = 6


def document(material: Material) -> str:
    """The page as one text: styles and scripts are in it, and nothing is asked of a network."""
    sections = [found for make in SECTIONS if (found := make(material)) is not None]
    assets = dict.fromkeys(name for one in sections for name in one.assets)
    styles, scripts = (
        "".join(map(_asset, (f"page.{kind}", *(name for name in assets if name.endswith(kind)))))
        for kind in ("css", "js")
    )
    links = "".join(f'<li><a href="#{one.anchor}">{one.title}</a></li>' for one in sections)
    name = escape(material.settings.experiment)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name} – bleuprint</title>\n"
        f"<style>\n{styles}</style>\n</head>\n<body>\n"
        f"<header><h1>{name}</h1>\n{_about(material)}</header>\n<nav><ul>{links}</ul></nav>\n<main>\n"
        + "".join(map(_html, sections))
        + f"</main>\n<script>\n{scripts}</script>\n</body>\n</html>\n"
    )


def _about(material: Material) -> str:
    """What this page is of, in a few lines."""
    settings = material.settings
    corpora = [
        f"{escape(name)} ({one.source} to {one.target}, "
        f"{counted(kept(accounts(material, name)).left, 'pair')} to train on)"
        for name, one in settings.corpora.items()
    ]
    systems = counted(len(settings.systems), "system")
    shown = ", ".join(map(escape, [*settings.systems][:_NAMED]))
    more = ", …" if len(settings.systems) > _NAMED else ""
    seeds = "seed" if len(settings.seeds) == 1 else "seeds"
    return paragraph(
        f"An experiment in machine translation: {systems} ({shown}{more}), each trained with "
        f"{seeds} {', '.join(map(str, settings.seeds))} on {'; '.join(corpora)}. This page is "
        "written by bleuprint from the outputs of its stages.",
        "hint",
    )


def _html(section: Section) -> str:
    return f'<section id="{section.anchor}">\n<h2>{section.title}</h2>\n{section.body}</section>\n'


def _asset(name: str) -> str:
    return files("bleuprint.report.page").joinpath(name).read_text(encoding="utf-8")
