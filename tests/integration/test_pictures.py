"""The pictures of README.md and docs/ are those that docs/pictures.py draws."""

import importlib
import json
import math
import re
import xml.etree.ElementTree as ET

import pandas as pd
import pytest

import bleuprint
from bleuprint.pipeline.dvc_yaml import load_entries
from root import ROOT

pytestmark = pytest.mark.slow

IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def pictures():
    """Return the script docs/pictures.py as a module."""
    return importlib.import_module("pictures")


def test_the_committed_picture_of_the_pipeline_shows_the_stages_of_dvc_yaml(pictures):
    committed = (IMAGES / "graph.svg").read_text("utf-8")

    assert committed == pictures.graph_svg(), "run: python docs/pictures.py"


def test_the_committed_picture_of_scores_shows_the_committed_results(pictures):
    """The README shows docs/images/table.svg; new results need a new picture."""
    committed = (IMAGES / "table.svg").read_text("utf-8")

    new_picture = pictures.table_svg(bleuprint.results(ROOT))

    assert committed == new_picture, "run: python docs/pictures.py"


def test_arrows_lead_from_each_stage_to_the_stages_that_read_its_output(pictures, tmp_path):
    """In the graph, c also reads an output of a. The picture omits this arrow.

    The arrows from a to b and from b to c imply it.
    """
    dvc_yaml = """\
stages:
  a:
    foreach: x
    do: {cmd: x, deps: [in], outs: ["data/a/${key}", "data/log/${key}"]}
  b: {cmd: x, deps: ["data/a/${item.x}"], outs: [data/b: {cache: false}]}
  c: {cmd: x, deps: [data/b/part, data/a/*], params: [k, d.json: [k]], outs: []}
  d: {cmd: x, deps: [data/abc], outs: [d.json]}
  e: {cmd: x, deps: [data], outs: [e]}
"""
    (tmp_path / "dvc.yaml").write_text(dvc_yaml)

    arrows = pictures.edges(load_entries(tmp_path))

    assert arrows == {
        ("a", "b"),  # b reads a file in the folder of a.
        ("b", "c"),  # c reads a part of the folder of b.
        ("d", "c"),  # c reads a setting that d writes.
        ("b", "e"),  # e reads data/, which contains the folder of b.
    }


@pytest.fixture(scope="module")
def bleu_rows():
    """The BLEU scores of whole test sets in the committed results, as a table."""
    content = json.loads((ROOT / "reports" / "results.json").read_text("utf-8"))
    rows = pd.DataFrame(content["metrics"])
    bleu_rows = rows[(rows.metric == "bleu") & (rows.group == "")]
    assert len(bleu_rows)
    return bleu_rows


@pytest.fixture(scope="module")
def score_picture():
    """The committed picture of scores, as an XML tree."""
    return ET.fromstring((IMAGES / "table.svg").read_text("utf-8"))


def test_the_picture_shows_scores_and_significant_differences(score_picture, bleu_rows):
    """The mark ‡ says that a difference from the baseline is significant, as all here are.

    `bleu_rows` are the BLEU scores in the committed results.
    """
    texts = []
    for element in score_picture.iter("{http://www.w3.org/2000/svg}text"):
        texts.append(element.text)

    for row in bleu_rows.itertuples():
        assert f"{row.value:.1f}" in texts
        is_baseline = row.difference is None or math.isnan(row.difference)
        if not is_baseline:
            assert f"{row.difference:+.1f}‡" in texts


def horizontal_lines(svg, shorter_than):
    """Return the lengths of the horizontal lines in a picture, in pixels."""
    lengths = []
    for element in svg.iter():
        line = re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)", element.get("d", ""))
        if line is None:
            continue
        length = float(line[2]) - float(line[1])
        if length < shorter_than:
            lengths.append(length)
    return lengths


def test_the_picture_draws_confidence_intervals_to_scale(score_picture, bleu_rows):
    """The picture has a scale of 170 pixels for each corpus.

    The scale starts at the multiple of 5 BLEU below all intervals and ends at the one above them.
    """
    scale_pixels = 170
    expected_lengths = []
    for _, rows in bleu_rows.groupby("corpus"):
        scale_start = 5 * math.floor(rows.ci_low.min() / 5)
        scale_end = 5 * math.ceil(rows.ci_high.max() / 5)
        pixels_per_point = scale_pixels / (scale_end - scale_start)
        expected_lengths.extend((rows.ci_high - rows.ci_low) * pixels_per_point)

    drawn_lengths = horizontal_lines(score_picture, shorter_than=scale_pixels)

    assert sorted(drawn_lengths) == pytest.approx(sorted(expected_lengths), abs=0.11)


@pytest.mark.parametrize("name", ["graph.svg", "table.svg"])
def test_a_picture_has_dark_colors_for_readers_who_prefer_them(name):
    picture = (IMAGES / name).read_text("utf-8")

    assert "@media (prefers-color-scheme: dark)" in picture


@pytest.mark.parametrize("name", ["graph.svg", "table.svg"])
def test_a_picture_contains_no_script_and_requests_nothing(name):
    picture = (IMAGES / name).read_text("utf-8")

    assert not re.findall(r"(?:href|src|url)\W+https?:", picture)
    assert "<script" not in picture


def test_every_picture_in_docs_is_smaller_than_150_kilobytes():
    """Every clone downloads all versions of all pictures from Git."""
    images = list(IMAGES.iterdir())
    assert images != []

    for path in images:
        assert path.stat().st_size < 150_000, path
