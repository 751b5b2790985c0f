"""A chart as a part of the page: its frame, its ids, its colors and its size."""

import re

import pytest

from bleuprint.report.page.chart import chart, legend


@pytest.fixture(scope="module")
def svg():
    """Return a chart named `own` with one line, as SVG."""

    def draw(axes):
        axes.plot([0, 1, 2], [1.23456789, 3.3333333, 2.5], color="#0072b2", gid="line")

    return chart("own", 'BLEU & "loss"', draw)


def test_a_chart_is_one_svg_element_without_the_head_of_a_file(svg):
    """Matplotlib writes a file that begins with an XML declaration and a doctype.

    Both may stand at the head of a file only; here, <svg> is an element of an HTML page.
    """
    assert svg.startswith('<svg viewBox="')
    assert svg.rstrip().endswith("</svg>")
    assert svg.count("<svg") == 1
    assert "<?xml" not in svg
    assert "<!DOCTYPE" not in svg


def test_a_chart_has_its_title_as_the_label_for_screen_readers(svg):
    start_tag, _, _ = svg.partition(">")

    assert start_tag.endswith('role="img" aria-label="BLEU &amp; &#34;loss&#34;"')


def test_the_page_decides_how_wide_a_chart_is(svg):
    start_tag, _, _ = svg.partition(">")

    assert "width=" not in start_tag


def test_all_ids_of_a_chart_begin_with_the_name_of_the_chart(svg):
    """A page contains several charts; two equal ids would mix up their parts.

    The fixture `svg` is a chart with the name `own`, which contains a line with the id `line`.
    """
    ids = re.findall(r'id="([^"]*)"', svg)

    assert "own-line" in ids
    for each_id in ids:
        assert each_id.startswith("own-")


def test_references_inside_a_chart_point_to_ids_of_the_chart(svg):
    """SVG refers to an element as `href="#ID"` or `url(#ID)`, such as a line to its clip path."""
    ids = re.findall(r'id="([^"]*)"', svg)

    references = re.findall(r'href="#([^"]*)"', svg) + re.findall(r"url\(#([^)]*)\)", svg)

    assert references
    assert set(references) <= set(ids)


def test_a_chart_uses_the_colors_and_the_background_of_the_page(svg):
    assert "var(--c0)" in svg
    assert "var(--paper)" not in svg
    assert not re.search("#[0-9a-f]{6}", svg)


def test_coordinates_have_two_decimals(svg):
    tags = "".join(re.findall("<[^>]*>", svg))

    assert re.search(r"\d\.\d\d\b", tags)
    assert not re.search(r"\d\.\d{3}", tags)


def test_a_legend_has_the_colors_and_dashes_of_the_lines():
    assert legend(["tiny", "small"]) == [
        {"name": "tiny", "color": "var(--c0)", "dashes": ""},
        {"name": "small", "color": "var(--c1)", "dashes": "6 3"},
    ]
