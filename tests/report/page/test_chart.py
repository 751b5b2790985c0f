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


def test_ids_and_references_to_them_begin_with_the_name_of_the_chart(svg):
    """Several charts of a page must not have the same ids."""
    ids = re.findall(r'id="([^"]*)"', svg)
    references = []
    for link, url in re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg):
        references.append(link or url)

    assert "own-line" in ids
    assert references
    assert set(references) <= set(ids)
    assert all(name.startswith("own-") for name in ids)


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
