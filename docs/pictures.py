"""Draw the pictures of README.md and docs/, and write them to docs/images/.

python docs/pictures.py        graph.svg from dvc.yaml, table.svg from reports/results.json
python docs/pictures.py page   also page-light.png and page-dark.png, the top of reports/index.html
                               in Chromium (make debian)

The SVGs follow the reader's theme and have their own background. All sizes and positions are in
pixels; x grows to the right, y downward.
"""

import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
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


def _svg(width: float, height: float, title: str, elements: Iterable[str]) -> str:
    """Return an SVG file with a background and the style sheet above.

    Args:
        width: The width of the picture in pixels.
        height: The height of the picture in pixels.
        title: The title for screen readers.
        elements: The SVG elements of the picture; later ones cover earlier ones.
    """
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img">',
        f"<title>{html.escape(title)}</title>\n<style>\n{_STYLE}</style>",
        f'<rect class="back" width="{width:g}" height="{height:g}" rx="8"/>',
    ]
    lines += elements
    lines.append("</svg>\n")
    return "\n".join(lines)


def _text(x: float, y: float, text: str, *classes: str) -> str:
    """Return an SVG element with one line of text.

    Args:
        x: The left end of the text in pixels; its center or right end with the class `middle` or
            `end`.
        y: The baseline of the text in pixels.
        text: The text.
        *classes: Classes of the style sheet.
    """
    return f'<text x="{x:g}" y="{y:g}" class="{" ".join(classes)}">{html.escape(text)}</text>'


# -- the graph ------------------------------------------------------------------------------------

# Rows of stages in each band, from the top. The text passes through the stages of the left column;
# the stages of the right column are beside its path. An empty name leaves a place free. The rows
# are such that each arrow leads straight down, or to a neighbor.
_BANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "first: settings and code": (("resolve",),),
    "for each corpus": (
        ("download", "back_translate"),
        ("clean", "download_part"),
        ("", "clean_part"),
        ("", "filter_part"),
        ("dedup",),
        ("filter",),
        ("split",),
        ("tokenize", "test_stats"),
        ("learn_vocabulary",),
        ("binarize",),
        ("", "corpus_stats"),
    ),
    "for each run: a system, a corpus, a seed": (
        ("train",),
        ("average",),
        ("translate",),
        ("score",),
        ("", "comet"),
    ),
    "for the experiment": (("report",),),
}
# Stages that pass vocabularies and weights on, from one corpus or run to another.
_UNDRAWN_STAGES = frozenset({"fresh", "parents", "init_weights", "share_vocabulary"})

_GRAPH_WIDTH = 500
# The centers of the left and the right column.
_COLUMN_CENTERS = (130, 350)
_BOX_WIDTH = 140
_BOX_HEIGHT = 30
_ROW_HEIGHT = 48
# The part of a band above its first row, which contains the title.
_BAND_HEAD_HEIGHT = 26
# An arrow's line ends this far before the box, where its head begins.
_ARROW_HEAD_LENGTH = 6
# Lines past several boxes run down to the right of both columns, each at another x.
_LANES = range(436, 488, 8)


class _Center(NamedTuple):
    """The center of a stage's box, in pixels.

    Attributes:
        x: The distance from the left edge of the picture.
        y: The distance from its top.
    """

    x: float
    y: float


def edges(stages: Mapping[str, Entry]) -> set[tuple[str, str]]:
    """Return which stage reads an output of which other stage directly.

    If a stage between two others implies that the last reads from the first, the edge of these two
    is omitted. So are edges from systems to back_translate, which lead from one corpus to another.

    Args:
        stages: The entries of dvc.yaml by name.

    Returns:
        Pairs of names: a stage, and a stage that reads an output of it.
    """
    all_edges: set[tuple[str, str]] = set()
    for writer in stages.values():
        for reader in stages.values():
            leads_to_another_corpus = reader.kind == "back_translate" and writer.kind != "download"
            if writer != reader and not leads_to_another_corpus and _reads_from(reader, writer):
                all_edges.add((writer.kind, reader.kind))
    direct_edges = set()
    for writer_name, reader_name in all_edges:
        if not _is_implied(writer_name, reader_name, all_edges):
            direct_edges.add((writer_name, reader_name))
    return direct_edges


def _reads_from(reader: Entry, writer: Entry) -> bool:
    """Return whether a stage reads an output of another stage, a part of it or its folder."""
    for output in writer.outputs:
        # With the slash, data/a is not the start of data/abc.
        output_path = f"{_with_stars(output)}/"
        for dependency in reader.dependencies:
            dependency_path = f"{_with_stars(dependency)}/"
            if output_path.startswith(dependency_path) or dependency_path.startswith(output_path):
                return True
    return False


def _with_stars(path: str) -> str:
    """Return a path of dvc.yaml with * in place of its loop variables."""
    return re.sub(r"\$\{[^}]*\}", "*", path)


def _is_implied(writer: str, reader: str, all_edges: Collection[tuple[str, str]]) -> bool:
    """Return whether other edges lead from a stage to another one, through stages between them."""
    for start, middle in all_edges:
        # back_translate implies nothing, since many experiments have no such stage.
        if start != writer or middle == "back_translate":
            continue
        if reader in _stages_below(middle, all_edges):
            return True
    return False


def _stages_below(stage: str, all_edges: Collection[tuple[str, str]]) -> set[str]:
    """Return the stages that depend on a stage, directly or through other stages."""
    stages_below: set[str] = set()
    for start, end in all_edges:
        if start == stage:
            stages_below.add(end)
            stages_below |= _stages_below(end, all_edges)
    return stages_below


def graph_svg() -> str:
    """Draw the stages of dvc.yaml as boxes, and what reads what as arrows.

    The picture omits stages that pass vocabularies and weights from one corpus or run to another.

    Returns:
        The text of the SVG file.
    """
    stages = load_entries(ROOT)
    for name in _UNDRAWN_STAGES:
        stages.pop(name, None)
    centers: dict[str, _Center] = {}
    # The style of the arrows' heads stands before all elements that use it.
    elements = [
        '<defs><marker id="head" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L6 3L0 6z"/></marker></defs>'
    ]
    band_top = 12.0
    for title, rows in _BANDS.items():
        height = _BAND_HEAD_HEIGHT + len(rows) * _ROW_HEIGHT
        elements.append(
            f'<rect class="band" x="10" y="{band_top:g}" width="480" height="{height:g}" rx="6"/>'
        )
        elements.append(_text(220, band_top + 17, title, "soft"))
        centers |= _box_centers(rows, band_top + _BAND_HEAD_HEIGHT)
        band_top += height + 8
    assert set(centers) == set(stages), "a stage is not drawn: see _BANDS"
    # All stages read the output of `resolve`: arrows to all of them would hide the others.
    del stages["resolve"]
    elements += _arrows(stages, centers)
    for name, center in centers.items():
        elements += _box(name, center)
    return _svg(_GRAPH_WIDTH, band_top + 4, "The stages of dvc.yaml", elements)


def _box_centers(rows: Iterable[Iterable[str]], top: float) -> dict[str, _Center]:
    """Return the center of each stage's box in a band.

    Args:
        rows: The names of the stages in each row; empty for a free place.
        top: The top of the first row in pixels.
    """
    centers = {}
    y = top + _BOX_HEIGHT / 2
    for row in rows:
        for column, name in enumerate(row):
            if name:
                centers[name] = _Center(_COLUMN_CENTERS[column], y)
        y += _ROW_HEIGHT
    return centers


def _arrows(stages: Mapping[str, Entry], centers: Mapping[str, _Center]) -> list[str]:
    """Return an SVG element for the arrow of each edge.

    Args:
        stages: The entries of dvc.yaml that arrows connect.
        centers: The center of each stage's box.
    """
    elements = []
    lanes = iter(_LANES)
    for writer, reader in sorted(edges(stages)):
        start = centers[writer]
        end = centers[reader]
        # A straight line to the left would cross boxes if it went down by more than a row.
        if start.x > end.x and end.y - start.y > _ROW_HEIGHT:
            path = _path_around_boxes(start, end, next(lanes))
        else:
            path = _straight_path(start, end)
        elements.append(f'<path class="line" d="{path}" marker-end="url(#head)"/>')
    return elements


def _path_around_boxes(start: _Center, end: _Center, lane: float) -> str:
    """Return the SVG path of an arrow that runs down to the right of all boxes.

    Args:
        start: The center of the box where the arrow begins.
        end: The center of the box where it ends.
        lane: The x of its vertical part, in pixels.
    """
    start_x = start.x + _BOX_WIDTH / 2
    end_x = end.x + _BOX_WIDTH / 2 + _ARROW_HEAD_LENGTH
    return f"M{start_x:g} {start.y:g}H{lane}V{end.y:g}H{end_x:g}"


def _straight_path(start: _Center, end: _Center) -> str:
    """Return the SVG path of an arrow between neighboring boxes: horizontal, vertical or oblique.

    Args:
        start: The center of the box where the arrow begins.
        end: The center of the box where it ends.
    """
    if start.y == end.y:
        direction = 1 if end.x > start.x else -1
        start_x = start.x + direction * _BOX_WIDTH / 2
        end_x = end.x - direction * (_BOX_WIDTH / 2 + _ARROW_HEAD_LENGTH)
        return f"M{start_x:g} {start.y:g}H{end_x:g}"
    start_y = start.y + _BOX_HEIGHT / 2
    end_y = end.y - _BOX_HEIGHT / 2 - _ARROW_HEAD_LENGTH
    if start.x == end.x:
        return f"M{start.x:g} {start_y:g}V{end_y:g}"
    # Oblique arrows begin and end beside the centers, where vertical arrows begin and end.
    if end.x > start.x:
        return f"M{start.x + 45:g} {start_y:g}L{end.x - 50:g} {end_y:g}"
    return f"M{start.x - 40:g} {start_y:g}L{end.x + 45:g} {end_y:g}"


def _box(name: str, center: _Center) -> list[str]:
    """Return the SVG elements of a stage: its box and its name."""
    corner = f'x="{center.x - _BOX_WIDTH / 2:g}" y="{center.y - _BOX_HEIGHT / 2:g}"'
    rectangle = f'<rect class="box" {corner} width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5"/>'
    # The baseline is below the middle of the letters.
    return [rectangle, _text(center.x, center.y + 4.5, name, "middle")]


# -- the table ------------------------------------------------------------------------------------

_SYSTEM_COLUMN_WIDTH = 130
_CORPUS_COLUMN_WIDTH = 330
_TABLE_MARGIN = 20
# The baseline of the first system, and the distance to the next one.
_FIRST_BASELINE = 80
_LINE_HEIGHT = 26
# Positions from the left of a corpus's columns. Scores are aligned at their right end, the corpus
# and the differences at their center.
_CORPUS_X = 150
_SCORE_X = 58
_SCALE_LABEL_X = 165
_DIFFERENCE_X = 290
# The scale of the confidence intervals.
_SCALE_START_X = 80
_SCALE_WIDTH = 170
# The scale starts and ends at multiples of this number of BLEU points.
_SCALE_STEP = 5


def table_svg(records: pd.DataFrame) -> str:
    """Draw the table of BLEU as in a paper, each interval beside its score.

    Args:
        records: The results of an experiment, with one seed and one test set for each corpus.

    Returns:
        The text of the SVG file.
    """
    records = records[(records.metric == "bleu") & (records.group == "")]
    corpora = records.corpus.unique()
    systems = records.system.unique()
    width = 150 + _CORPUS_COLUMN_WIDTH * len(corpora)
    bottom = 62 + _LINE_HEIGHT * len(systems)
    elements = [_text(_TABLE_MARGIN, 50, "System", "bold")]
    for y in (14, 58, bottom):
        elements.append(f'<path class="rule" d="M12 {y:g}H{width - 12:g}"/>')
    left = _SYSTEM_COLUMN_WIDTH
    for corpus in corpora:
        elements += _corpus_columns(corpus, records[records.corpus == corpus], left, bottom)
        left += _CORPUS_COLUMN_WIDTH
    for number, name in enumerate(systems):
        elements.append(_text(_TABLE_MARGIN, _baseline(number), name))
    note = "‡ p below 0.05 after Holm's correction, † before it; paired bootstrap against the first"
    elements.append(_text(_TABLE_MARGIN, bottom + 38, note, "soft"))
    title = "BLEU of the default experiment, with 95% CIs"
    return _svg(width, bottom + 50, title, elements)


def _baseline(line_number: int) -> int:
    """Return the y of a system's line in pixels; line 0 is the first system."""
    return _FIRST_BASELINE + _LINE_HEIGHT * line_number


def _corpus_columns(corpus: str, records: pd.DataFrame, left: int, bottom: int) -> list[str]:
    """Return the SVG elements of a corpus: scores, intervals and differences.

    Args:
        corpus: The name of the corpus.
        records: The BLEU of each system on the corpus.
        left: The left end of the columns in pixels.
        bottom: The y of the rule below the table in pixels.
    """
    elements = [
        _text(left + _CORPUS_X, 32, corpus, "middle", "bold"),
        _text(left + _SCORE_X, 50, "BLEU", "end", "soft"),
        _text(left + _SCALE_LABEL_X, 50, "95% CI", "middle", "soft"),
        _text(left + _DIFFERENCE_X, 50, "Δ BLEU", "middle", "soft"),
    ]
    scale_start = np.floor(records.ci_low.min() / _SCALE_STEP) * _SCALE_STEP
    scale_end = np.ceil(records.ci_high.max() / _SCALE_STEP) * _SCALE_STEP
    highest_score = records.value.max()
    for number, record in enumerate(records.itertuples()):
        y = _baseline(number)
        classes = ["end"]
        if record.value == highest_score:
            classes.append("bold")
        elements.append(_text(left + _SCORE_X, y, f"{record.value:.1f}", *classes))
        positions = []
        for score in (record.ci_low, record.value, record.ci_high):
            # In this order of operations, rounding leaves the committed picture as it is.
            offset = _SCALE_WIDTH * (score - scale_start) / (scale_end - scale_start)
            positions.append(left + _SCALE_START_X + offset)
        low_x, score_x, high_x = positions
        # The middle of the digits is above their baseline.
        middle_y = y - 4.5
        elements.append(f'<path class="mark" d="M{low_x:.1f} {middle_y}H{high_x:.1f}"/>')
        elements.append(f'<circle class="dot" cx="{score_x:.1f}" cy="{middle_y}" r="4"/>')
        elements.append(_text(left + _DIFFERENCE_X, y, _difference(record), "middle"))
    scale_end_x = left + _SCALE_START_X + _SCALE_WIDTH
    for x, score in ((left + _SCALE_START_X, scale_start), (scale_end_x, scale_end)):
        elements.append(_text(x, bottom + 16, f"{score:.0f}", "middle", "soft"))
    return elements


def _difference(record: Any) -> str:
    """Return the difference of a record from the baseline with its mark, such as `+1.2‡`.

    Args:
        record: A row of the results, with the columns `difference`, `p` and `p_holm`.

    Returns:
        The text; a dash for the baseline itself.
    """
    if pd.isna(record.difference):
        return "–"
    difference = f"{record.difference:+.1f}"
    if record.p_holm < 0.05:
        return f"{difference}‡"
    if record.p < 0.05:
        return f"{difference}†"
    return f"{difference} n.s."


# -- the page -------------------------------------------------------------------------------------

# The values of Chromium's setting preferredColorScheme.
_CHROMIUM_THEMES = {"dark": 0, "light": 1}


def write_page_pngs() -> None:
    """Photograph the top of reports/index.html in both themes, in 64 colors."""
    page = (ROOT / "reports" / "index.html").as_uri()
    for theme, chromium_theme in _CHROMIUM_THEMES.items():
        with tempfile.TemporaryDirectory() as folder:
            screenshot = Path(folder, "page.png")
            command = [
                "chromium",
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--user-data-dir={folder}",
                "--window-size=1280,860",
                f"--blink-settings=preferredColorScheme={chromium_theme}",
                f"--screenshot={screenshot}",
                page,
            ]
            subprocess.run(command, check=True, capture_output=True)
            image = Image.open(screenshot).convert("RGB")
        picture = image.quantize(64, dither=Image.Dither.NONE)
        picture.save(IMAGES / f"page-{theme}.png", optimize=True)


def main() -> None:
    """Write the pictures to docs/images/."""
    (IMAGES / "graph.svg").write_text(graph_svg(), encoding="utf-8")
    table = table_svg(bleuprint.results(ROOT))
    (IMAGES / "table.svg").write_text(table, encoding="utf-8")
    if sys.argv[1:] == ["page"]:
        write_page_pngs()


if __name__ == "__main__":
    main()
