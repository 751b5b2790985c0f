"""The section of scoring: the same translations as papers count them, by length, by rareness."""

import statistics
from collections.abc import Mapping, Sequence

from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.html import Entry, details, escape, figure, paragraph, table
from bleuprint.report.page.legend import legend, line_id
from bleuprint.report.page.material import Material, Section
from bleuprint.report.records import Record
from bleuprint.report.score_tables import AS_PAPERS
from bleuprint.report.system_results import Standing
from bleuprint.scoring.bleu_variants import COMPOUND_SPLIT, PAPERS_ONLY, WAYS
from bleuprint.scoring.breakdown import COUNTS, LENGTHS

_SHORT = 12
# By name: how many lines or words, and the figure.
_Buckets = Mapping[str, tuple[int, float]]


def reconciliation(material: Material) -> Section:
    body = _as_papers(material.standings)
    body += details("What each way of counting is", "".join(map(_explained, _paragraphs())))
    body += details("Signatures, and what was scored", _signatures(material.standings))
    body += "<h3>By length of the source, and by how rare a word is</h3>\n"
    body += legend(list(material.settings.systems)) + _breakdowns(material)
    return Section("reconciliation", "Counted as papers do", body)


def _as_papers(standings: Sequence[Standing]) -> str:
    heads = ["System", "Corpus", "Test set", "BLEU", *map(escape, WAYS)]
    rows = []
    for one in standings:
        row = [Entry.text(one.system), Entry.text(one.corpus), Entry.text(one.test)]
        row.append(Entry.number(one.bleu.mean, f"{one.bleu.mean:.1f}"))
        for way in WAYS:
            scores = [r.score for of in one.records for r in of.reconciliation if r.name == way]
            mean = statistics.mean(scores) if scores else None
            row.append(
                Entry(f"{mean:.1f} <small>({mean - one.bleu.mean:+.1f})</small>", mean)
                if mean is not None
                else Entry.number(None, "")
            )
        rows.append(row)
    caption = (
        "Every column counts the same translations; in brackets what that adds to BLEU (the first "
        f"column, the one that counts here). {COMPOUND_SPLIT}: {PAPERS_ONLY}."
    )
    return table(heads, rows, escape(caption), left=3, sortable=True)


def _paragraphs() -> Sequence[str]:
    return [part for part in AS_PAPERS.split("\n\n") if not part.startswith("In results")]


def _explained(text: str) -> str:
    """Markdown of the table's notes: a list, or a paragraph."""
    if not text.startswith("- "):
        return paragraph(escape(text))
    items = text.removeprefix("- ").split("\n- ")
    return "<ul>\n" + "".join(f"<li>{escape(item)}</li>\n" for item in items) + "</ul>\n"


def _signatures(standings: Sequence[Standing]) -> str:
    """Each signature, and by system the lines and SHA-256 of what was scored in each way."""
    heads = ["System", "Corpus", "Test set", "Seed", "Counted", "Signature"]
    heads += ["Lines", "References", "Translations"]
    rows = []
    for record in (record for one in standings for record in one.records):
        data = record.data
        scored = [("BLEU", record.bleu.signature, record.lines, data.references, data.hypotheses)]
        scored += [
            (one.name, one.signature, one.lines, one.references, one.hypotheses)
            for one in record.reconciliation
        ]
        scored += [
            (name, metric.signature, record.lines, data.references, data.hypotheses)
            for name, metric in (("chrF2", record.chrf), ("TER", record.ter))
        ]
        for name, signature, lines, *digests in scored:
            place = (record.system, record.corpus, record.test, str(record.seed), name)
            rows.append(
                [
                    *map(Entry.text, place),
                    Entry(f"<code>{escape(signature)}</code>"),
                    Entry.text(f"{lines:,}"),
                    *(Entry(digest_html(digest)) for digest in digests),
                ]
            )
    caption = (
        "sacreBLEU's signatures, and SHA-256 of the texts as they were scored (the first 12 "
        "digits; all of them in results.json)"
    )
    return table(heads, rows, caption, left=len(heads))


def digest_html(digest: str) -> str:
    """The first digits of a SHA-256; the rest when pointed at."""
    return f'<code title="{escape(digest)}">{escape(digest[:_SHORT])}</code>'


def _breakdowns(material: Material) -> str:
    body = ""
    for number, (corpus, test) in enumerate(
        dict.fromkeys((one.corpus, one.test) for one in material.standings)
    ):
        column = [one for one in material.standings if (one.corpus, one.test) == (corpus, test)]
        where = f"{corpus}, {test}"
        lengths = {one.system: [_lengths(record) for record in one.records] for one in column}
        title = f"BLEU by source tokens: {where}"
        drawn = _chart(f"length-{number}", title, LENGTHS, lengths, "lines", "BLEU")
        if all(record.by_count is not None for one in column for record in one.records):
            counts = {one.system: [_counts(record) for record in one.records] for one in column}
            title = f"Words found, by occurrences in the training text: {where}"
            drawn += _chart(f"count-{number}", title, COUNTS, counts, "words", "% found")
        body += f'<div class="charts">\n{drawn}</div>\n'
    return body


def _lengths(record: Record) -> _Buckets:
    return {one.tokens: (one.lines, one.bleu) for one in record.by_length}


def _counts(record: Record) -> _Buckets:
    return {one.count: (one.words, 100 * one.accuracy) for one in record.by_count or ()}


def _chart(
    name: str,
    title: str,
    names: Sequence[str],
    systems: Mapping[str, Sequence[_Buckets]],
    what: str,
    axis: str,
) -> str:
    """A point for each bucket and system, the mean over seeds; below, how many lines or words."""
    first = next(iter(systems.values()))[0]
    shown = [bucket for bucket in names if bucket in first]
    styles = line_styles(list(systems))
    with chart(name, title, 4.6, 3.0) as made:
        for number, (system, seeds) in enumerate(systems.items()):
            means = [statistics.mean(of[bucket][1] for of in seeds) for bucket in shown]
            places = range(len(shown))
            (line,) = made.axes.plot(places, means, marker="o", markersize=4, **styles[system])
            line.set_gid(line_id(number, 0))
        labels = [f"{bucket}\n({first[bucket][0]:,})" for bucket in shown]
        made.axes.set_xticks(range(len(shown)), labels)
        made.axes.set_xlim(-0.4, len(shown) - 0.6)
        made.axes.set_ylabel(axis)
    return figure(made.svg(), escape(f"{title} (in brackets: {what})"))
