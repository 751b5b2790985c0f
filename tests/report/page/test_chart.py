"""A chart as a part of the page: its frame, its ids, its colors and its size."""

import re

import pytest

from bleuprint.report.page.chart import chart, legend


@pytest.fixture(scope="module")
def svg():
    def draw(axes):
        axes.plot([0, 1, 2], [1.23456789, 3.3333333, 2.5], color="#0072b2", gid="line")

    return chart("own", 'BLEU & "loss"', draw)


def test_it_is_one_element_of_html_with_a_label(svg):
    assert svg.startswith('<svg viewBox="')
    assert svg.rstrip().endswith("</svg>")
    assert svg.count("<svg") == 1
    assert "<?xml" not in svg and "<!DOCTYPE" not in svg
    head = svg.partition(">")[0]
    assert head.endswith('role="img" aria-label="BLEU &amp; &#34;loss&#34;"')
    assert "width=" not in head


def test_ids_and_what_refers_to_them_begin_with_its_name(svg):
    ids = re.findall(r'id="([^"]*)"', svg)
    references = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    named = [one or other for one, other in references]
    assert "own-line" in ids
    assert named and {*named} <= {*ids}
    assert all(each.startswith("own-") for each in ids)


def test_the_page_shows_through_and_gives_the_colors(svg):
    assert "var(--c0)" in svg
    assert "var(--paper)" not in svg
    assert not re.search("#[0-9a-f]{6}", svg)


def test_places_have_two_decimals(svg):
    tags = "".join(re.findall("<[^>]*>", svg))
    assert re.search(r"\d\.\d\d\b", tags)
    assert not re.search(r"\d\.\d{3}", tags)


def test_a_legend_has_colors_and_dashes_of_the_lines():
    assert legend(["tiny", "small"]) == [
        {"name": "tiny", "color": "var(--c0)", "dashes": ""},
        {"name": "small", "color": "var(--c1)", "dashes": "6 3"},
    ]
