"""The section of translations: source, reference and outputs, with their differences marked."""

from typing import Any, NamedTuple

from markupsafe import Markup

from bleuprint.report.page.lines import SetLines, lines_of_sets
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.word_diff import Kind, diff_words
from bleuprint.text.unicode import replace_unprintable

# The bytes that all lines together may take of the HTML report, which may have 5 MB.
BUDGET = 2_500_000
# The number of lines in each short list: where systems differ most, and the worst lines.
SHORT_LIST = 5
# The largest number of characters of a line that are shown. The words of a longer line are not
# compared with the reference, which would take long.
_MAX_CHARACTERS = 1_500

_LINE_TEMPLATE = TEMPLATES.get_template("line.html.j2")


class MarkedPiece(NamedTuple):
    """Some words of an output, as line.html.j2 shows them.

    Attributes:
        kind: Whether the output, the reference, or both contain the words.
        space: The space before the words, which is not marked.
        text: The words.
    """

    kind: Kind
    space: str
    text: str


def sentences_section(report: ReportData) -> Section:
    """Return the section of translations: on each test set, as many lines as there is room for.

    Args:
        report: The experiment and its results.
    """
    sets = list(lines_of_sets(report))
    room = BUDGET // len(sets)
    data = {
        "sets": [_set_variables(lines, room) for lines in sets],
        "seeds": report.settings.seeds,
    }
    return Section("sentences", "Translations", data)


def _set_variables(lines: SetLines, room: int) -> dict[str, Any]:
    """Return what sentences.html.j2 shows of a test set.

    Args:
        lines: The lines of the test set.
        room: The bytes that all lines of the long list may take.
    """
    differing = lines.differing()
    worst = lines.worst()
    short_lists = {}
    for title, ranked in (("Where systems differ most", differing), ("Worst lines", worst)):
        if ranked:
            short_lists[title] = [_article(lines, line) for line in ranked[:SHORT_LIST]]
    # The most interesting lines get their room first, but stand in the order of the text.
    by_interest = dict.fromkeys([*differing, *worst[:SHORT_LIST], *range(len(worst))])
    articles = {}
    for line in by_interest:
        article = _article(lines, line)
        room -= len(article.encode())
        if room < 0:
            break
        articles[line] = article
    return {
        "lines": lines,
        "total": len(lines.sources),
        "short_lists": short_lists,
        "articles": [articles[line] for line in sorted(articles)],
    }


def _article(lines: SetLines, line: int) -> Markup:
    """Return a line of a test set as HTML: source, reference, and the output of each system."""
    reference = lines.references[line]
    outputs = []
    for system, translations in lines.outputs.items():
        pieces = _marked_pieces(translations[line], reference)
        outputs.append((system, pieces, lines.bleu[system][line]))
    html = _LINE_TEMPLATE.render(
        number=line + 1,
        languages=lines.languages,
        outputs=outputs,
        source=_shortened(lines.sources[line]),
        reference=_shortened(reference),
    )
    return Markup(html)


def _marked_pieces(translation: str, reference: str) -> list[MarkedPiece]:
    """Return the pieces in which a translation differs from its reference, and those between.

    Returns:
        The pieces; none if the translation equals the reference, and only one if either is too
        long to be compared.
    """
    if translation == reference:
        return []
    if max(len(translation), len(reference)) > _MAX_CHARACTERS:
        return [MarkedPiece("same", "", _shortened(translation))]
    pieces = []
    printable_translation = replace_unprintable(translation)
    printable_reference = replace_unprintable(reference)
    for kind, text in diff_words(printable_translation, printable_reference):
        bare_text = text.lstrip()
        space = " " if len(bare_text) < len(text) else ""
        pieces.append(MarkedPiece(kind, space, bare_text))
    return pieces


def _shortened(text: str) -> str:
    """Return a text without unprintable characters, cut if it is too long."""
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]} … (cut)"
    return replace_unprintable(text)
