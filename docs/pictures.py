"""The pictures of README.md and docs/, written to docs/images/.

python docs/pictures.py        graph.svg from dvc.yaml, table.svg from reports/results.json
python docs/pictures.py page   also page-light.png and page-dark.png, the top of reports/index.html
                               in Chromium (make debian)

The SVGs follow the reader's theme and have a background of their own.
"""

import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

import bleuprint
from bleuprint.pipeline.dvc_yaml import Entry, load_entries

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
_STYLE = """\
text {font: 13px system-ui, sans-serif; fill: #1f2328}
.soft {font-size: 11px; fill: #59636e} .bold {font-weight: 700} .end {text-anchor: end}
.middle {text-anchor: middle} .back {fill: #ffffff} .band {fill: #eef1f5}
.box {fill: #ffffff; stroke: #8a94a3} .line {stroke: #8a94a3; fill: none} .head {fill: #8a94a3}
.rule {stroke: #1f2328} .mark {stroke: #0969da; stroke-width: 2} .dot {fill: #0969da}
@media (prefers-color-scheme: dark) {
text {fill: #e6edf3} .soft {fill: #9198a1} .back {fill: #0d1117} .band {fill: #1c2129}
.box {fill: #0d1117; stroke: #7d8590} .line {stroke: #7d8590} .head {fill: #7d8590}
.rule {stroke: #e6edf3} .mark {stroke: #4493f8} .dot {fill: #4493f8}
}
"""


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">',
        f"<title>{html.escape(title)}</title>\n<style>\n{_STYLE}</style>",
        f'<rect class="back" width="{width:g}" height="{height:g}" rx="8"/>',
        *parts,
        "</svg>\n",
    ]
    return "\n".join(lines)


def _text(x: float, y: float, text: str, *classes: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{" ".join(classes)}">{html.escape(text)}</text>'


# -- the graph ------------------------------------------------------------------------------------

# Rows of stages, from the top: the left column is the way of the text, the right one is beside it.
_BANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "first, for all others: settings and code": (("resolve",),),
    "for each corpus": (
        ("download", "back_translate"),
        ("clean",),
        ("dedup",),
        ("filter",),
        ("split",),
        ("tokenize", "test_stats"),
        ("learn_vocabulary",),
        ("binarize",),
        ("", "corpus_stats"),
    ),
    "for each cell: a system, a corpus, a seed": (
        ("train",),
        ("average",),
        ("translate",),
        ("score",),
        ("", "comet"),
    ),
    "for the experiment": (("report",),),
}
_X, _BOX, _HIGH, _ROW, _BAND = (130, 350), 140, 30, 48, 26  # centers; sizes in pixels


def edges(stages: Mapping[str, Entry]) -> set[tuple[str, str]]:
    """Return pairs (a, b) if stage b reads an output of a, and of no stage between them.

    Without those from systems to back_translate, which go from one corpus to another.
    """

    def reads(b: Entry, output: str) -> bool:
        written = f"{_with_stars(output)}/"
        read = [f"{_with_stars(path)}/" for path in b.dependencies]
        return any(written.startswith(path) or path.startswith(written) for path in read)

    found = {
        (a.kind, b.kind)
        for a in stages.values()
        for b in stages.values()
        if a != b and (b.kind != "back_translate" or a.kind == "download")
        if any(reads(b, output) for output in a.outputs)
    }

    def reached(a: str) -> set[str]:
        below = {b for x, b in found if x == a}
        return below.union(*map(reached, below))

    # back_translate is not in every experiment: it implies nothing
    implied = {
        (a, b)
        for a, b in found
        for x, m in found
        if x == a and m != "back_translate" and b in reached(m)
    }
    return found - implied


def _with_stars(path: str) -> str:
    """Return a path of dvc.yaml with * in place of its loop variables."""
    return re.sub(r"\$\{[^}]*\}", "*", path)


def graph_svg() -> str:
    """Draw the stages of dvc.yaml as boxes, and what reads what as arrows.

    Without those that pass vocabularies and weights on, from one corpus or row to another.
    """
    stages = load_entries(ROOT)
    passed = {"fresh", "parents", "init_weights", "share_vocabulary"}
    stages = {name: stage for name, stage in stages.items() if name not in passed}
    place: dict[str, tuple[float, float]] = {}
    parts, y = [], 12.0
    for title, rows in _BANDS.items():
        high = _BAND + len(rows) * _ROW
        parts.append(f'<rect class="band" x="10" y="{y:g}" width="480" height="{high:g}" rx="6"/>')
        parts.append(_text(220, y + 17, title, "soft"))
        for row in rows:
            place |= {s: (_X[i], y + _BAND + _HIGH / 2) for i, s in enumerate(row) if s}
            y += _ROW
        y += _BAND + 8
    assert set(place) == set(stages), "a stage is not drawn: see _BANDS"
    lanes = iter(range(436, 488, 8))
    del stages["resolve"]  # whose output all others read
    for a, b in sorted(edges(stages)):
        (x1, y1), (x2, y2) = place[a], place[b]
        if y1 == y2:
            step = 1 if x2 > x1 else -1
            line = f"M{x1 + step * _BOX / 2:g} {y1:g}H{x2 - step * (_BOX / 2 + 6):g}"
        elif x1 > x2 and y2 - y1 > _ROW:  # past the boxes below
            line = f"M{x1 + _BOX / 2:g} {y1:g}H{(x := next(lanes))}V{y2:g}H{x2 + _BOX / 2 + 6:g}"
        elif x1 != x2:
            line = f"M{x1 - (x1 > x2) * 40:g} {y1 + _HIGH / 2:g}L{x2 + 45:g} {y2 - _HIGH / 2 - 6:g}"
            if x2 > x1:
                line = f"M{x1 + 45:g} {y1 + _HIGH / 2:g}L{x2 - 50:g} {y2 - _HIGH / 2 - 6:g}"
        else:
            line = f"M{x1:g} {y1 + _HIGH / 2:g}V{y2 - _HIGH / 2 - 6:g}"
        parts.append(f'<path class="line" d="{line}" marker-end="url(#head)"/>')
    for name, (x, middle) in place.items():
        corner = f'x="{x - _BOX / 2:g}" y="{middle - _HIGH / 2:g}"'
        parts.append(f'<rect class="box" {corner} width="{_BOX}" height="{_HIGH}" rx="5"/>')
        parts.append(_text(x, middle + 4.5, name, "middle"))
    head = (
        '<defs><marker id="head" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L6 3L0 6z"/></marker></defs>'
    )
    return _svg(500, y + 4, "The stages of dvc.yaml", [head, *parts])


# -- the table ------------------------------------------------------------------------------------


def table_svg(records: pd.DataFrame) -> str:
    """Draw the table of BLEU as in a paper, each interval beside its score. One seed, one test."""
    records = records[(records.metric == "bleu") & (records.group == "")]
    corpora, systems = records.corpus.unique(), records.system.unique()
    width, first, column = 150 + 330 * len(corpora), 130, 330
    bottom = 62 + 26 * len(systems)
    parts = [_text(20, 50, "System", "bold"), *_rules(width, 14, 58, bottom)]
    for number, corpus in enumerate(corpora):
        left = first + column * number
        of_corpus = records[records.corpus == corpus]
        parts.append(_text(left + 150, 32, corpus, "middle", "bold"))
        for x, name in ((58, "BLEU"), (165, "95% CI"), (290, "Δ BLEU")):
            parts.append(_text(left + x, 50, name, "end" if x == 58 else "middle", "soft"))
        low, high = of_corpus.ci_low.min() // 5 * 5, -(-of_corpus.ci_high.max() // 5) * 5
        for line, record in enumerate(of_corpus.itertuples()):
            y = 80 + 26 * line
            best = ("bold",) if record.value == of_corpus.value.max() else ()
            parts.append(_text(left + 58, y, f"{record.value:.1f}", "end", *best))
            ends = [left + 80 + 170 * (end - low) / (high - low) for end in _scores(record)]
            parts.append(f'<path class="mark" d="M{ends[0]:.1f} {y - 4.5}H{ends[2]:.1f}"/>')
            parts.append(f'<circle class="dot" cx="{ends[1]:.1f}" cy="{y - 4.5}" r="4"/>')
            parts.append(_text(left + 290, y, _difference(record), "middle"))
        for end, at in ((low, 80), (high, 250)):
            parts.append(_text(left + at, bottom + 16, f"{end:.0f}", "middle", "soft"))
    parts += [_text(20, 80 + 26 * line, name) for line, name in enumerate(systems)]
    note = "‡ p below 0.05 after Holm's correction, † before it; paired bootstrap against the first"
    parts.append(_text(20, bottom + 38, note, "soft"))
    return _svg(width, bottom + 50, "BLEU of the default experiment, with 95% CIs", parts)


def _rules(width: float, *heights: float) -> Iterator[str]:
    for y in heights:
        yield f'<path class="rule" d="M12 {y:g}H{width - 12:g}"/>'


def _scores(record: Any) -> tuple[float, float, float]:
    return record.ci_low, record.value, record.ci_high


def _difference(record: Any) -> str:
    if pd.isna(record.difference):
        return "–"
    mark = "‡" if record.p_holm < 0.05 else "†" if record.p < 0.05 else " n.s."
    return f"{record.difference:+.1f}{mark}"


# -- the page -------------------------------------------------------------------------------------


def page_pngs() -> None:
    """Take pictures of the top of reports/index.html in both themes, in 64 colors."""
    for theme, number in (("dark", 0), ("light", 1)):
        with tempfile.TemporaryDirectory() as folder:
            shot = Path(folder, "page.png")
            command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
            command += [f"--user-data-dir={folder}", "--window-size=1280,860"]
            command += [f"--blink-settings=preferredColorScheme={number}"]
            page = (ROOT / "reports" / "index.html").as_uri()
            subprocess.run(
                [*command, f"--screenshot={shot}", page], check=True, capture_output=True
            )
            picture = Image.open(shot).convert("RGB").quantize(64, dither=Image.Dither.NONE)
        picture.save(IMAGES / f"page-{theme}.png", optimize=True)


if __name__ == "__main__":
    (IMAGES / "graph.svg").write_text(graph_svg(), encoding="utf-8")
    (IMAGES / "table.svg").write_text(table_svg(bleuprint.results(ROOT)), encoding="utf-8")
    if sys.argv[1:] == ["page"]:
        page_pngs()
