"""The section of translations: source, reference and outputs, with their differences marked."""

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import MOST, SetLines, lines_of_sets
from bleuprint.report.page.pairs import matrix, pair_differences
from bleuprint.report.page.section import TEMPLATES, Section
from bleuprint.report.word_diff import Kind, differences
from bleuprint.scoring.sacrebleu_measures import sentence_chrf
from bleuprint.text.unicode import blank_unprinted

# Bytes that all lists of lines together may take of the page: the page has 5 MB in all.
BUDGET = 2_500_000
# Characters of a line that are shown; the differences of a longer one are not marked.
_LONGEST = 1_500

_LINE = TEMPLATES.get_template("line.html.j2")


def sentences(context: ReportContext) -> Section | None:
    """For each test set: the lines by score, the most different ones, and as many as fit."""
    sets = list(lines_of_sets(context))
    if not sets:
        return None
    parts = [_test_set(context, lines, _list(lines, BUDGET // len(sets))) for lines in sets]
    data = {
        "sets": parts,
        "seeds": context.settings.seeds,
        "printed": blank_unprinted,
    }
    return Section("sentences", "Translations", data)


def _test_set(context: ReportContext, lines: SetLines, listed: dict[int, Markup]) -> dict[str, Any]:
    place = lines.corpus, lines.test
    results = [each for each in context.results if (each.corpus, each.test) == place]
    folded = [
        (f"{name} lines of {system}", _articles(lines, ranked))
        for system in lines.outputs
        for name, ranked in (("Best", lines.best(system)), ("Worst", lines.worst(system)))
    ]
    return {
        "lines": lines,
        "total": len(lines.sources),
        "counts": {system: _counts(lines, system) for system in lines.outputs},
        "differing": _articles(lines, lines.differing),
        "folded": folded,
        "matrix": matrix(pair_differences(lines, results)),
        "listed": [listed[line] for line in sorted(listed)],
    }


def _counts(lines: SetLines, system: str) -> list[int]:
    """The lines of BLEU 100, and of the reference's text; by BLEU better and worse than the
    baseline's, and the same.
    """
    perfect = int((lines.bleu[system] == 100).sum())
    same = sum(map(str.__eq__, lines.outputs[system], lines.references))
    deltas = lines.bleu[system] - lines.bleu[lines.baseline]
    return [perfect, same, *(int(which.sum()) for which in (deltas > 0, deltas < 0, deltas == 0))]


def _list(lines: SetLines, room: int) -> dict[int, Markup]:
    """The lines of a set as HTML, as many as there is room for."""
    listed: dict[int, Markup] = {}
    for line in lines.by_interest():
        article = _article(lines, line)
        room -= len(article.encode())
        if room < 0:
            break
        listed[line] = article
    return listed


def _articles(lines: SetLines, ranked: Sequence[int]) -> list[Markup]:
    return [_article(lines, line) for line in ranked[:MOST]]


def _article(lines: SetLines, line: int) -> Markup:
    reference = lines.references[line]
    outputs = []
    for system, translations in lines.outputs.items():
        chrf = sentence_chrf(translations[line], reference)
        marked = list(_marked(translations[line], reference))
        outputs.append((system, marked, lines.bleu[system][line], chrf))
    return Markup(
        _LINE.render(
            number=line + 1,
            languages=lines.languages,
            source=_plain(lines.sources[line]),
            reference=_plain(reference),
            outputs=outputs,
        )
    )


def _marked(text: str, reference: str) -> Iterator[tuple[Kind, str, str]]:
    """Pieces of a translation: kind, the space before it, and the piece without that."""
    if max(len(text), len(reference)) > _LONGEST:
        yield "same", "", _plain(text)
        return
    for kind, piece in differences(blank_unprinted(text), blank_unprinted(reference)):
        bare = piece.lstrip()
        yield kind, " " if len(bare) < len(piece) else "", bare


def _plain(text: str) -> str:
    return blank_unprinted(text[:_LONGEST] + " … (cut)" if len(text) > _LONGEST else text)
