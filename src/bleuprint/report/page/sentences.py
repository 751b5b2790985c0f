"""The section of translations: source, reference and outputs, with their differences marked."""

from typing import Any, NamedTuple

from markupsafe import Markup

from bleuprint.report.page.lines import SetLines, lines_of_sets
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.word_diff import Kind, diff_words
from bleuprint.text.unicode import replace_unprintable

# The bytes that all lines together may take of the HTML report, which may have 5 MB.
MAX_BYTES = 2_500_000
# The number of lines in each short list: where systems differ most, and the worst lines.
SHORT_LIST_LENGTH = 5
# The largest number of characters of a line that are shown. The words of a longer line are not
# compared with the reference, which would take long.
_MAX_CHARACTERS = 1_500

_LINE_TEMPLATE = TEMPLATES.get_template("line.html.j2")


class MarkedPiece(NamedTuple):
    """Some words of a translation or its reference, which the page marks if only one has them.

    Attributes:
        kind: `same` if both contain the words, `added` if only the translation does, and `missing`
            if only the reference does.
        space: The space before the words, which is not marked.
        text: The words.
    """

    kind: Kind
    space: str
    text: str


def sentences_section(report: ReportData) -> Section:
    """Return the report's section with the translations of each test set.

    The page must not become too large. So all test sets get the same number of bytes, and each of
    them shows as many lines as fit.

    Args:
        report: The settings and the results of the experiment.
    """
    sets = list(lines_of_sets(report))
    bytes_per_set = MAX_BYTES // len(sets)
    data = {
        "sets": [_set_variables(lines, bytes_per_set) for lines in sets],
        "seeds": report.settings.seeds,
    }
    return Section("sentences", "Translations", data)


def _set_variables(lines: SetLines, max_bytes: int) -> dict[str, Any]:
    """Return the lines of a test set that the page shows, as variables of sentences.html.j2.

    Two short lists show the lines on which systems differ most, and the worst lines. A long list
    shows lines in the order of the text. If not all of them fit, it contains the most interesting
    ones: those on which systems differ, then the worst lines, then all other lines.

    Args:
        lines: The lines of the test set, with translations.
        max_bytes: The largest number of bytes of HTML in the long list.
    """
    differing = lines.rank_by_difference()
    worst = lines.rank_worst_first()
    short_lists = {}
    for title, ranked in (("Where systems differ most", differing), ("Worst lines", worst)):
        if ranked:
            short_lists[title] = [_line_html(lines, line) for line in ranked[:SHORT_LIST_LENGTH]]
    all_lines = range(len(lines.sources))
    # The keys of a dict keep their order, and contain each line once.
    lines_by_interest = dict.fromkeys([*differing, *worst[:SHORT_LIST_LENGTH], *all_lines])
    html_by_line = {}
    bytes_left = max_bytes
    for line in lines_by_interest:
        html = _line_html(lines, line)
        bytes_left -= len(html.encode())
        if bytes_left < 0:
            break
        html_by_line[line] = html
    return {
        "lines": lines,
        "total": len(lines.sources),
        "short_lists": short_lists,
        "articles": [html_by_line[line] for line in sorted(html_by_line)],
    }


def _line_html(lines: SetLines, line: int) -> Markup:
    """Return a line of a test set as HTML: source, reference, and the translation of each system.

    Args:
        lines: All lines of the test set.
        line: The position of the line in the test set, from 0. The page shows it counted from 1.
    """
    reference = lines.references[line]
    outputs = []
    for system, translations in lines.outputs.items():
        pieces = _mark_differences(translations[line], reference)
        outputs.append((system, pieces, lines.bleu[system][line]))
    html = _LINE_TEMPLATE.render(
        number=line + 1,
        languages=lines.languages,
        outputs=outputs,
        source=_cut_long(lines.sources[line]),
        reference=_cut_long(reference),
    )
    return Markup(html)


def _mark_differences(translation: str, reference: str) -> list[MarkedPiece]:
    """Split a translation into pieces, so that the page can mark how it differs from the reference.

    For the translation `the big cat` and the reference `the cat sleeps`, the pieces are `the`
    (same), ` big` (added), ` cat` (same) and ` sleeps` (missing). The space before a piece is
    stored apart from its words, since it is not marked.

    Returns:
        The pieces in order. If both texts are equal, the list is empty. If one of them is too long
        to be compared, the list contains the translation as one piece without a mark.
    """
    if translation == reference:
        return []
    if max(len(translation), len(reference)) > _MAX_CHARACTERS:
        return [MarkedPiece("same", "", _cut_long(translation))]
    pieces = []
    printable_translation = replace_unprintable(translation)
    printable_reference = replace_unprintable(reference)
    for kind, text in diff_words(printable_translation, printable_reference):
        bare_text = text.lstrip()
        space = " " if len(bare_text) < len(text) else ""
        pieces.append(MarkedPiece(kind, space, bare_text))
    return pieces


def _cut_long(text: str) -> str:
    """Return a text without unprintable characters, cut at the end if it is too long."""
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]} … (cut)"
    return replace_unprintable(text)
