"""The section of translations: source, reference and outputs, with their differences marked."""

from typing import Any

from markupsafe import Markup

from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import SetLines, lines_of_sets
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.word_diff import Kind, differences
from bleuprint.text.unicode import replace_unprintable

# Bytes that all lists of lines together may take of the page: the page has 5 MB in all.
BUDGET = 2_500_000
# Lines of each short list: those where systems differ most, and the worst.
MOST = 5
# Characters of a line that are shown; the differences of a longer one are not marked.
_LONGEST = 1_500

_LINE = TEMPLATES.get_template("line.html.j2")


def sentences(context: ReportContext) -> Section:
    """For each test set: the most different and the worst lines, and as many as fit."""
    sets = list(lines_of_sets(context))
    data = {
        "sets": [_test_set(lines, BUDGET // len(sets)) for lines in sets],
        "seeds": context.settings.seeds,
    }
    return Section("sentences", "Translations", data)


def _test_set(lines: SetLines, room: int) -> dict[str, Any]:
    differing, worst = lines.differing(), lines.worst()
    listed: dict[int, Markup] = {}
    for line in dict.fromkeys((*differing, *worst[:MOST], *range(len(worst)))):
        article = _article(lines, line)
        room -= len(article.encode())
        if room < 0:
            break
        listed[line] = article
    short = {"Where systems differ most": differing, "Worst lines": worst}
    return {
        "lines": lines,
        "total": len(lines.sources),
        "short": {
            title: [_article(lines, line) for line in ranked[:MOST]]
            for title, ranked in short.items()
            if ranked
        },
        "listed": [listed[line] for line in sorted(listed)],
    }


def _article(lines: SetLines, line: int) -> Markup:
    reference = lines.references[line]
    outputs = [
        (system, _marked(translations[line], reference), lines.bleu[system][line])
        for system, translations in lines.outputs.items()
    ]
    texts = {"source": _plain(lines.sources[line]), "reference": _plain(reference)}
    shown = _LINE.render(number=line + 1, languages=lines.languages, outputs=outputs, **texts)
    return Markup(shown)


def _marked(text: str, reference: str) -> list[tuple[Kind, str, str]]:
    """Pieces of a translation: kind, the space before it, and the piece without that.

    Empty if it is the reference.
    """
    if text == reference:
        return []
    if max(len(text), len(reference)) > _LONGEST:
        return [("same", "", _plain(text))]
    found = []
    for kind, piece in differences(replace_unprintable(text), replace_unprintable(reference)):
        bare = piece.lstrip()
        found.append((kind, " " if len(bare) < len(piece) else "", bare))
    return found


def _plain(text: str) -> str:
    return replace_unprintable(text[:_LONGEST] + " … (cut)" if len(text) > _LONGEST else text)
