"""The report page in a browser, opened from a file."""

import pytest

import result_trees as trees
from bleuprint.report.page.document import html_page
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect

pytestmark = pytest.mark.slow

# Seven and more systems: of the last ones the lines are not shown at first.
SYSTEMS = ("tiny", "small", "c", "d", "e", "f", "g", "h")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    corpora = {"news-en-de": ("first", "second")}
    settings = trees.settings_in(root, SYSTEMS, corpora, attention=True)
    trees.write_all(root, settings)
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        context = ReportData(settings, collect(settings, root), root)
    (root / "index.html").write_text(html_page(context))
    return root / "index.html"


@pytest.fixture
def page(browser, file):
    """The page just opened; afterwards, fails on console errors and requests to other hosts."""
    browser.resize(1280)
    browser.open(file.as_uri())
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


def column(page, head):
    """A column of the scores of the first test set: the first line of each cell."""
    body = page.driver.find_element("css selector", "#summary table tbody")
    cells = body.find_elements("css selector", f"tr:not(.group) td:nth-child({head + 1})")
    return [found.text.split("\n")[0] for found in cells]


def test_a_head_sorts(page):
    before = column(page, 0)
    assert before[0] == "Baseline: tiny"
    heads = page.driver.find_element("css selector", "#summary thead")
    buttons = heads.find_elements("css selector", "th button")
    buttons[1].click()
    bleu = [float(text.split()[0]) for text in column(page, 1)]
    assert bleu == sorted(bleu, reverse=True) and column(page, 0) != before
    heads = heads.find_elements("css selector", "th")
    assert [head.get_attribute("aria-sort") for head in heads[:3]] == [None, "descending", None]
    buttons[1].click()
    assert [float(text.split()[0]) for text in column(page, 1)] == bleu[::-1]
    assert heads[1].get_attribute("aria-sort") == "ascending"
    # the baseline has no difference, and comes last whichever way the others go
    for order in (True, False):
        buttons[3].click()
        *found, last = column(page, 3)
        values = [float(text.split()[0].rstrip("†‡")) for text in found]
        assert last == "–" and values == sorted(values, reverse=order)
    buttons[0].click()
    assert column(page, 0) == sorted(before)
    # rows stay below the name of their test set
    groups = page.driver.find_elements("css selector", "#summary > .wide tr.group")
    assert ["set first" in group.text for group in groups] == [True, False]


def shown(page, system):
    lines = page.driver.find_elements("css selector", f'#curves svg [id*="-of-{system}."]')
    assert len(lines) == 3
    return {line.is_displayed() for line in lines}


def test_a_box_hides_the_lines_of_a_system(page):
    assert [shown(page, number) for number in (0, 5, 6, 7)] == [{True}, {True}, {False}, {False}]
    (legend,) = page.driver.find_elements("css selector", ".legend")
    boxes = legend.find_elements("css selector", "input")
    assert len(boxes) == len(SYSTEMS)
    boxes[0].click()
    boxes[7].click()
    assert [shown(page, number) for number in (0, 1, 7)] == [{False}, {True}, {True}]
    assert not boxes[0].is_selected() and boxes[7].is_selected()
    every, none = legend.find_elements("css selector", "button")
    every.click()
    assert {True} == set.union(*(shown(page, number) for number in range(8)))
    none.click()
    assert {False} == set.union(*(shown(page, number) for number in range(8)))


def test_paper_has_what_is_open(page):
    """All lines of charts; nothing that is folded, no switches, and no number in two lines."""
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert {True} == set.union(*(shown(page, number) for number in range(8)))
        css = page.driver.find_elements
        hidden = ".legend button, details:not([open]), #attention, nav"
        assert not any(one.is_displayed() for one in css("css selector", hidden))
        assert css("css selector", "#sentences article")[0].is_displayed()
        times = css("css selector", "#summary > .wide tr:not(.group) td:last-child")
        assert {page.script(_LINES, time) for time in times} == {1}
        page.resize(703)  # A4 between its margins
        assert page.script(_WIDER) == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# What of the page, but for maps, is beside the window: tables that scroll.
_WIDER = """return [...document.querySelectorAll(".wide")].filter((box) =>
box.checkVisibility() && !box.querySelector(".map") && box.scrollWidth > box.clientWidth)
.map((box) => box.ariaLabel)"""
# How many lines the text of a cell takes.
_LINES = """const range = document.createRange(); range.selectNodeContents(arguments[0]);
return new Set([...range.getClientRects()].map((one) => one.top)).size"""


def test_the_theme_is_the_readers(page):
    """Ground, text, lines and text of charts; printed in the colors of paper."""
    colors = """const css = (one, name) => getComputedStyle(document.querySelector(one))[name];
        return [css("body", "backgroundColor"), css("#summary td", "color"),
          css('#curves svg [id$="-of-0.line"] path', "stroke"), css("#curves svg text", "fill"),
          css("nav", "backgroundColor")]"""
    light = page.script(colors)
    assert light[:3] == ["rgb(255, 255, 255)", "rgb(22, 24, 29)", "rgb(0, 114, 178)"]
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    try:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        found = page.script(colors)
        assert found[0] == found[4] == "rgb(21, 24, 29)"
        assert found[1] == found[3] == "rgb(232, 234, 237)"
        assert found[2] == "rgb(86, 180, 240)"
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {**dark, "media": "print"})
        assert page.script(colors) == light
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_without_scripts_all_is_there(page, file):
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.open(file.as_uri())
        css = page.driver.find_elements
        assert css("css selector", "th button") == css("css selector", ".legend button") == []
        assert {True} == set.union(*(shown(page, number) for number in range(8)))
        assert not any(box.is_displayed() for box in css("css selector", ".legend input"))
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_does_not_scroll_sideways(page, width, tmp_path):
    page.resize(width)
    page.script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    assert page.script(_WIDER) == []
    page.driver.save_screenshot(str(tmp_path / f"page-{width}.png"))
    assert (tmp_path / f"page-{width}.png").stat().st_size > 10_000
    # text of charts is still read on a phone: eight pixels and more
    sizes = page.script("""
        return [...document.querySelectorAll('svg text')].filter((one) => one.checkVisibility())
            .map((one) => [one.getScreenCTM(), parseFloat(getComputedStyle(one).fontSize)])
            .map(([matrix, size]) => size * Math.hypot(matrix.a, matrix.b))""")
    assert min(sizes) > 8


@pytest.mark.parametrize("width", [1280, 390])
def test_intervals_stand_in_a_line(page, width):
    page.resize(width)
    cells = page.driver.find_elements("css selector", "#summary > .wide td.number span")
    assert len(cells) == 4 * len(SYSTEMS)  # of BLEU and chrF2 on two test sets
    assert {page.script(_LINES, cell) for cell in cells} == {1}
    # the caption's ground hides the shadow, which is beside the table alone
    ground = "return getComputedStyle(document.querySelector('#summary caption')).backgroundColor"
    assert page.script(ground) == "rgb(255, 255, 255)"


def test_on_a_phone_a_number_stands_after_its_head(page):
    page.resize(390)
    head = """const cell = document.querySelector("#summary tr:not(.group) td:nth-child(2)");
    return getComputedStyle(cell, "::before").content"""
    assert page.script(head) == '"BLEU "'
    empty = page.driver.find_elements("css selector", "#summary td")
    assert "–" not in {cell.text for cell in empty if cell.is_displayed()}


def test_a_link_leads_to_its_section(page):
    page.driver.find_element("css selector", 'nav a[href="#cost"]').click()
    page.wait("Math.abs(document.querySelector('#cost').getBoundingClientRect().top - 52) < 30")
    assert page.driver.find_element("css selector", "nav").is_displayed()
