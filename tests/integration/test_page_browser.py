"""The report page in a browser, opened from a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.document import document
from bleuprint.report.records import collect
from browser import Browser, chromium

# Seven and more systems: of the last ones the lines are not shown at first.
SYSTEMS = ("tiny", "small", "c", "d", "e", "f", "g", "h")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def file(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, SYSTEMS, {"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        context = ReportContext(settings, collect(settings, root), root)
    (root / "index.html").write_text(document(context))
    return root / "index.html"


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Browser]:
    """The page just opened; afterwards, fails on console errors and requests to other hosts."""
    browser.resize(1280)
    browser.driver.get(file.as_uri())
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


def column(page: Browser, head: int) -> list[str]:
    """A column of the first table of scores."""
    table = page.driver.find_element("css selector", "#scores table")
    cells = table.find_elements("css selector", f"tbody tr td:nth-child({head + 1})")
    return [found.text for found in cells]


def test_a_head_sorts(page: Browser) -> None:
    before = column(page, 0)
    assert before[0] == "tiny (baseline)"
    buttons = page.driver.find_elements("css selector", "#scores thead th button")
    buttons[1].click()
    bleu = [float(text.split()[0]) for text in column(page, 1)]
    assert bleu == sorted(bleu, reverse=True) and column(page, 0) != before
    heads = page.driver.find_elements("css selector", "#scores thead th")
    assert [head.get_attribute("aria-sort") for head in heads[:3]] == [None, "descending", None]
    buttons[1].click()
    assert [float(text.split()[0]) for text in column(page, 1)] == bleu[::-1]
    assert heads[1].get_attribute("aria-sort") == "ascending"
    # the baseline has no difference, and comes last whichever way the others go
    for order in (True, False):
        buttons[2].click()
        *found, last = column(page, 2)
        values = [float(text.split()[0].rstrip("†‡")) for text in found]
        assert last == "–" and values == sorted(values, reverse=order)
    buttons[0].click()
    assert column(page, 0) == sorted(before)


def test_a_head_sorts_by_the_keyboard(page: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    button = page.driver.find_elements("css selector", "#scores thead th button")[1]
    page.script("arguments[0].focus()", button)
    for key in (Keys.ENTER, Keys.SPACE):
        button.send_keys(key)
    bleu = [float(text.split()[0]) for text in column(page, 1)]
    assert bleu == sorted(bleu) and page.script("return document.activeElement") == button


def shown(page: Browser, system: int) -> set[bool]:
    lines = page.driver.find_elements("css selector", f'#curves svg [id*="-of-{system}."]')
    assert len(lines) == 5
    return {line.is_displayed() for line in lines}


def test_a_box_hides_the_lines_of_a_system(page: Browser) -> None:
    assert [shown(page, number) for number in (0, 5, 6, 7)] == [{True}, {True}, {False}, {False}]
    legend, other = page.driver.find_elements("css selector", ".legend")  # of curves and models
    boxes = legend.find_elements("css selector", "input")
    assert len(boxes) == len(SYSTEMS)
    boxes[0].click()
    boxes[7].click()
    assert [shown(page, number) for number in (0, 1, 7)] == [{False}, {True}, {True}]
    assert not boxes[0].is_selected() and boxes[7].is_selected()
    also = other.find_elements("css selector", "input")
    assert [box.is_selected() for box in also] == [box.is_selected() for box in boxes]
    every, none = legend.find_elements("css selector", "button")
    every.click()
    assert {True} == set.union(*(shown(page, number) for number in range(8)))
    none.click()
    assert {False} == set.union(*(shown(page, number) for number in range(8)))


def test_paper_has_what_is_hidden(page: Browser) -> None:
    """All lines of charts, and what is folded away; no switches, and no number in two."""
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        page.script("dispatchEvent(new Event('beforeprint'))")
        assert {True} == set.union(*(shown(page, number) for number in range(8)))
        css = page.driver.find_elements
        assert not any(box.is_displayed() for box in css("css selector", ".legend button"))
        closed = "details:not([open]):not(#sentences details)"
        assert css("css selector", closed) == []
        times = css("css selector", "#scores tbody td:nth-last-child(2)")
        assert {page.script(_LINES, time) for time in times} == {1}
        page.script("dispatchEvent(new Event('afterprint'))")
        assert css("css selector", closed) != []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# How many lines the text of a cell takes.
_LINES = """const range = document.createRange(); range.selectNodeContents(arguments[0]);
return new Set([...range.getClientRects()].map((one) => one.top)).size"""


def test_without_scripts_all_is_there(page: Browser, file: Path) -> None:
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.driver.get(file.as_uri())
        css = page.driver.find_elements
        assert css("css selector", "th button") == css("css selector", ".legend button") == []
        assert {True} == set.union(*(shown(page, number) for number in range(8)))
        assert not any(box.is_displayed() for box in css("css selector", ".legend input"))
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_does_not_scroll_sideways(page: Browser, width: int, tmp_path: Path) -> None:
    page.resize(width)
    page.script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    page.driver.save_screenshot(str(tmp_path / f"page-{width}.png"))
    assert (tmp_path / f"page-{width}.png").stat().st_size > 10_000
    # text of charts is still read on a phone: eight pixels and more
    sizes = page.script("""
        return [...document.querySelectorAll('svg text')].filter((one) => one.checkVisibility())
            .map((one) => [one.getScreenCTM(), parseFloat(getComputedStyle(one).fontSize)])
            .map(([matrix, size]) => size * Math.hypot(matrix.a, matrix.b))""")
    assert min(sizes) > 8


def test_a_link_leads_to_its_section(page: Browser) -> None:
    page.driver.find_element("css selector", 'nav a[href="#cost"]').click()
    page.wait("Math.abs(document.querySelector('#cost').getBoundingClientRect().top - 52) < 30")
    assert page.driver.find_element("css selector", "nav").is_displayed()
