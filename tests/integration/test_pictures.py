"""The pictures of README.md and docs/ are those that docs/pictures.py draws."""

import importlib.util
import json
import math
import re
import xml.etree.ElementTree as ET

import pytest

import bleuprint
from bleuprint.pipeline.dvc_yaml import load_entries
from root import ROOT

pytestmark = pytest.mark.slow

IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_drawings_are_of_todays_stages_and_results(pictures):
    again = "run: python docs/pictures.py"
    assert (IMAGES / "graph.svg").read_text("utf-8") == pictures.graph_svg(), again
    drawn = pictures.table_svg(bleuprint.results(ROOT))
    assert (IMAGES / "table.svg").read_text("utf-8") == drawn, again


def test_arrows_are_those_that_no_others_imply(pictures, tmp_path):
    # by hand: c reads b's folder and a's, and a setting that d wrote; a to c is implied
    graph = """\
stages:
  a:
    foreach: x
    do: {cmd: x, deps: [in], outs: ["data/a/${key}", "data/log/${key}"]}
  b: {cmd: x, deps: ["data/a/${item.x}"], outs: [data/b: {cache: false}]}
  c: {cmd: x, deps: [data/b/part, data/a/*], params: [k, d.json: [k]], outs: []}
  d: {cmd: x, deps: [data/abc], outs: [d.json]}
  e: {cmd: x, deps: [data], outs: [e]}
"""
    (tmp_path / "dvc.yaml").write_text(graph)
    expected = {("a", "b"), ("b", "c"), ("d", "c"), ("b", "e")}
    assert pictures.edges(load_entries(tmp_path)) == expected


def test_the_table_shows_the_scores_and_intervals_to_scale():
    root = ET.fromstring((IMAGES / "table.svg").read_text("utf-8"))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    metrics = json.loads((ROOT / "reports" / "results.json").read_text("utf-8"))["metrics"]
    records = [each for each in metrics if (each["metric"], each["group"]) == ("bleu", "")]
    assert records
    for record in records:
        assert f"{record['value']:.1f}" in texts
        if record["difference"]:
            assert f"{record['difference']:+.1f}‡" in texts
    lines = [re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)", path.get("d", "")) for path in root.iter()]
    marks = [float(m[2]) - float(m[1]) for m in lines if m and float(m[2]) - float(m[1]) < 170]
    # 170 pixels are from a multiple of five below all intervals of a corpus to one above
    widths = []
    for corpus in {record["corpus"] for record in records}:
        ends = [(r["ci_low"], r["ci_high"]) for r in records if r["corpus"] == corpus]
        span = 5 * (math.ceil(max(ends[0][1], ends[1][1]) / 5) - min(ends[0][0], ends[1][0]) // 5)
        widths += [(high - low) * 170 / span for low, high in ends]
    assert sorted(marks) == pytest.approx(sorted(widths), abs=0.11)


@pytest.mark.parametrize("name", ["graph.svg", "table.svg"])
def test_drawings_follow_the_theme_and_request_nothing(name):
    text = (IMAGES / name).read_text("utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    assert not re.findall(r"(?:href|src|url)\W+https?:", text) and "<script" not in text


def test_pictures_are_small():
    """Every clone has all their versions."""
    images = list(IMAGES.iterdir())
    assert images
    for path in images:
        assert path.stat().st_size < 150_000, path
