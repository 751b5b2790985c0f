"""The report page in a browser, opened from a file."""

from contextlib import contextmanager

import pytest

import result_trees as trees
from bleuprint.report.page.document import html_page
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect

pytestmark = pytest.mark.slow

# More systems than the six whose curves the page shows at first.
SYSTEMS = ("tiny", "small", "c", "d", "e", "f", "g", "h")

# JavaScript: the labels of the boxes that scroll sideways, except attention maps.
SCROLLING_BOXES = """
return [...document.querySelectorAll(".wide")]
  .filter((box) => box.checkVisibility() && !box.querySelector(".map"))
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.ariaLabel);
"""
# JavaScript: how many lines the text of an element takes.
COUNT_LINES = """
const range = document.createRange();
range.selectNodeContents(arguments[0]);
return new Set([...range.getClientRects()].map((rectangle) => rectangle.top)).size;
"""
# JavaScript: some colors of the page by name.
COLORS = """
const css = (selector, property) => getComputedStyle(document.querySelector(selector))[property];
return {
  "page": css("body", "backgroundColor"),
  "navigation": css("nav", "backgroundColor"),
  "table text": css("#summary td", "color"),
  "chart text": css("#curves svg text", "fill"),
  "first curve": css('#curves svg [id$="-of-0.line"] path', "stroke"),
};
"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Write the page of an experiment with eight systems and two test sets; return its path."""
    root = tmp_path_factory.mktemp("experiment")
    corpora = {"news-en-de": ("first", "second")}
    settings = trees.settings_in(root, SYSTEMS, corpora, attention=True)
    trees.write_all(root, settings)
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        report_data = ReportData(settings, collect(settings, root), root)
    path = root / "index.html"
    path.write_text(html_page(report_data))
    return path


@pytest.fixture
def page(browser, page_file):
    """The page just opened; afterwards, fails on console errors and requests to other hosts."""
    browser.resize(1280)
    browser.open(page_file.as_uri())
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


@contextmanager
def emulated_media(page, medium="", **features):
    """Show a page as on another medium, such as `print`, or to a reader with other preferences."""
    names = {name: name.replace("_", "-") for name in features}
    settings = {
        "media": medium,
        "features": [{"name": names[name], "value": value} for name, value in features.items()],
    }
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", settings)
    try:
        yield
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def find_all(page, selector):
    """Return the elements of a page that a CSS selector selects."""
    return page.driver.find_elements("css selector", selector)


def column_texts(page, column):
    """Return the first line of each cell in a column of the first test set's scores."""
    first_body = find_all(page, "#summary table tbody")[0]
    cells = first_body.find_elements("css selector", f"tr:not(.group) td:nth-child({column + 1})")
    return [cell.text.split("\n")[0] for cell in cells]


def column_numbers(page, column):
    """Return the first number of each cell in a column of the first test set's scores."""
    numbers = []
    for text in column_texts(page, column):
        first_word = text.split()[0]
        numbers.append(float(first_word.rstrip("†‡")))
    return numbers


def click_head(page, column):
    """Click the head of a column of scores, which sorts the table by it."""
    find_all(page, "#summary thead th button")[column].click()


def head_orders(page):
    """Return how the table is sorted by each of the first three columns, by `aria-sort`."""
    heads = find_all(page, "#summary thead th")
    return [head.get_attribute("aria-sort") for head in heads[:3]]


def are_curves_shown(page, system):
    """Return whether the curves of a system are visible: all three of them, or none.

    Args:
        page: The page.
        system: The number of the system, from 0.
    """
    curves = find_all(page, f'#curves svg [id*="-of-{system}."]')
    assert len(curves) == 3
    (is_shown,) = {curve.is_displayed() for curve in curves}
    return is_shown


def systems_with_curves(page):
    """Return the names of the systems whose curves are visible."""
    return [name for number, name in enumerate(SYSTEMS) if are_curves_shown(page, number)]


def test_the_baseline_stands_first_until_the_table_is_sorted(page):
    first_cell = column_texts(page, 0)[0]

    assert first_cell == "Baseline: tiny"


def test_the_first_click_on_a_column_head_sorts_the_highest_score_first(page):
    """Column 0 of the table has the names of the systems, column 1 their BLEU.

    `head_orders` reads the attribute aria-sort, by which a screen reader tells the order.
    """
    systems_before = column_texts(page, column=0)

    click_head(page, column=1)

    bleu = column_numbers(page, column=1)
    assert bleu == sorted(bleu, reverse=True)
    assert column_texts(page, column=0) != systems_before
    assert head_orders(page) == [None, "descending", None]


def test_the_second_click_on_a_column_head_sorts_the_lowest_score_first(page):
    """Column 1 has the BLEU of the systems."""
    click_head(page, column=1)
    highest_first = column_numbers(page, column=1)

    click_head(page, column=1)

    assert column_numbers(page, column=1) == highest_first[::-1]
    assert head_orders(page)[1] == "ascending"


@pytest.mark.parametrize(
    ("clicks", "is_highest_first"),
    [pytest.param(1, True, id="highest first"), pytest.param(2, False, id="lowest first")],
)
def test_the_baseline_comes_last_when_sorted_by_difference(page, clicks, is_highest_first):
    """Column 3 has each system's difference from the baseline, such as "+1.2‡ p=0.01".

    The baseline itself has a dash there.
    """
    for _ in range(clicks):
        click_head(page, column=3)

    *texts_of_differences, text_of_baseline = column_texts(page, column=3)
    differences = [float(text.split()[0].rstrip("†‡")) for text in texts_of_differences]
    assert text_of_baseline == "–"
    assert differences == sorted(differences, reverse=is_highest_first)


def test_a_click_on_the_head_of_the_first_column_sorts_by_the_name_of_the_system(page):
    """Column 0 of the table has the names of the systems."""
    systems_before = column_texts(page, column=0)

    click_head(page, column=0)

    assert column_texts(page, column=0) == sorted(systems_before)


def test_sorting_keeps_the_headings_of_the_two_test_sets_in_the_table(page):
    """The table has a heading row for the test sets first and second, each above its rows."""
    click_head(page, column=0)

    first_heading, second_heading = find_all(page, "#summary > .wide tr.group")
    assert "set first" in first_heading.text
    assert "set first" not in second_heading.text


def test_charts_show_the_curves_of_the_first_six_systems(page):
    assert systems_with_curves(page) == ["tiny", "small", "c", "d", "e", "f"]


def test_a_box_of_the_legend_hides_or_shows_the_curves_of_its_system(page):
    """There are eight systems: tiny, small, and c to h. At first, six have visible curves."""
    assert systems_with_curves(page) == ["tiny", "small", "c", "d", "e", "f"]
    boxes = find_all(page, ".legend input")
    assert len(boxes) == 8

    boxes[0].click()  # hides tiny
    boxes[7].click()  # shows h

    assert systems_with_curves(page) == ["small", "c", "d", "e", "f", "h"]
    assert not boxes[0].is_selected()
    assert boxes[7].is_selected()


def test_the_buttons_of_the_legend_show_the_curves_of_all_systems_or_of_none(page):
    """The legend beside the learning curves has two buttons, "all" and "none"."""
    (legend,) = find_all(page, ".legend")
    all_button, none_button = legend.find_elements("css selector", "button")

    all_button.click()
    systems_after_all = systems_with_curves(page)
    none_button.click()
    systems_after_none = systems_with_curves(page)

    assert systems_after_all == ["tiny", "small", "c", "d", "e", "f", "g", "h"]
    assert systems_after_none == []


def test_all_curves_are_printed(page):
    with emulated_media(page, "print"):
        assert systems_with_curves(page) == list(SYSTEMS)


def test_a_printed_page_contains_the_sentences_and_hides_controls_and_folded_parts(page):
    """Buttons, the navigation and the attention maps only work on a screen."""
    with emulated_media(page, "print"):
        for element in find_all(page, ".legend button, details:not([open]), #attention, nav"):
            assert not element.is_displayed()
        first_sentence = find_all(page, "#sentences article")[0]
        assert first_sentence.is_displayed()


def test_a_printed_training_time_stands_in_one_line(page):
    with emulated_media(page, "print"):
        for cell in find_all(page, "#summary > .wide tr:not(.group) td:last-child"):
            assert page.script(COUNT_LINES, cell) == 1


def test_a_printed_table_fits_the_width_of_the_paper(page):
    """SCROLLING_BOXES finds the parts of the page that are wider than their place and scroll.

    Paper does not scroll, so columns would be cut off.
    """
    a4_width_between_margins = 703  # pixels

    with emulated_media(page, "print"):
        page.resize(a4_width_between_margins)
        parts_that_scroll = page.script(SCROLLING_BOXES)

    assert parts_that_scroll == []


def test_a_page_has_dark_text_on_white_ground_by_default(page):
    """COLORS reads the colors that the browser uses for some parts of the page."""
    colors = page.script(COLORS)

    assert colors["page"] == "rgb(255, 255, 255)"
    assert colors["table text"] == "rgb(22, 24, 29)"
    assert colors["first curve"] == "rgb(0, 114, 178)"


def test_a_page_has_light_text_on_dark_ground_for_readers_who_prefer_dark_pages(page):
    """The operating system tells the browser whether its user prefers dark pages.

    COLORS reads the colors that the browser uses for some parts of the page.
    """
    with emulated_media(page, prefers_color_scheme="dark"):
        colors = page.script(COLORS)

    assert colors["page"] == colors["navigation"] == "rgb(21, 24, 29)"
    assert colors["table text"] == colors["chart text"] == "rgb(232, 234, 237)"
    assert colors["first curve"] == "rgb(86, 180, 240)"


def test_a_reader_who_prefers_dark_pages_prints_in_light_colors(page):
    """A dark page would use up the ink. COLORS reads the colors of some parts of the page."""
    light_colors = page.script(COLORS)

    with emulated_media(page, "print", prefers_color_scheme="dark"):
        printed_colors = page.script(COLORS)

    assert printed_colors == light_colors


def test_a_page_without_scripts_shows_the_curves_of_all_systems_and_hides_controls(page, page_file):
    """Some mail programs and readers forbid JavaScript; then buttons could do nothing."""
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.open(page_file.as_uri())

        assert find_all(page, "th button") == []
        assert find_all(page, ".legend button") == []
        for box in find_all(page, ".legend input"):
            assert not box.is_displayed()
        assert systems_with_curves(page) == ["tiny", "small", "c", "d", "e", "f", "g", "h"]
    finally:
        page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def open_all_details(page):
    """Unfold everything on a page."""
    page.script("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")


for_window_widths = pytest.mark.parametrize(
    "width", [pytest.param(1280, id="desktop"), pytest.param(390, id="phone")]
)


@for_window_widths
def test_a_page_fits_into_the_width_of_the_window(page, width):
    """SCROLLING_BOXES finds the parts of the page that are wider than their place and scroll."""
    page.resize(width)
    open_all_details(page)

    page_width = page.script("return document.documentElement.scrollWidth")
    window_width = page.script("return innerWidth")
    parts_that_scroll = page.script(SCROLLING_BOXES)

    assert page_width <= window_width
    assert parts_that_scroll == []


@for_window_widths
def test_a_page_can_be_drawn(page, width, tmp_path):
    """A picture of an empty window is a file of less than 10,000 bytes."""
    page.resize(width)
    open_all_details(page)

    picture = tmp_path / "page.png"
    page.driver.save_screenshot(str(picture))

    assert picture.stat().st_size > 10_000


@for_window_widths
def test_text_of_charts_is_larger_than_eight_pixels(page, width):
    """A chart is scaled to the window, and its text with it; smaller text is hard to read.

    The script multiplies the font size of each text by the scale of its chart.
    """
    page.resize(width)
    open_all_details(page)

    sizes = page.script("""
        return [...document.querySelectorAll("svg text")]
          .filter((text) => text.checkVisibility())
          .map((text) => {
            const scale = text.getScreenCTM();
            const size = parseFloat(getComputedStyle(text).fontSize);
            return size * Math.hypot(scale.a, scale.b);
          });""")

    assert min(sizes) > 8


@for_window_widths
def test_a_score_and_its_interval_stand_in_one_line(page, width):
    """A cell of the table shows a score such as "30.1 ± 0.5". COUNT_LINES counts its lines."""
    page.resize(width)

    cells = find_all(page, "#summary > .wide td.number span")

    metrics = 2  # BLEU and chrF2
    test_sets = 2
    systems = 8
    assert len(cells) == metrics * test_sets * systems
    for cell in cells:
        lines = page.script(COUNT_LINES, cell)
        assert lines == 1


@for_window_widths
def test_the_caption_above_the_table_of_scores_has_a_white_ground(page, width):
    """A table that is wider than the window has a shadow at its side.

    A caption with a transparent ground would show the shadow behind its text.
    """
    page.resize(width)

    color = page.script(
        "return getComputedStyle(document.querySelector('#summary caption')).backgroundColor"
    )

    assert color == "rgb(255, 255, 255)"


def test_on_a_phone_a_number_stands_after_the_name_of_its_column(page):
    """A narrow window shows the cells of a row below each other, without the head of the table.

    CSS writes the name of the column before each cell.
    """
    page.resize(390)

    name = page.script("""
        const cell = document.querySelector("#summary tr:not(.group) td:nth-child(2)");
        return getComputedStyle(cell, "::before").content""")

    assert name == '"BLEU "'


def test_on_a_phone_cells_without_a_number_are_hidden(page):
    """Such a cell contains a dash. A narrow window shows the cells of a row below each other."""
    page.resize(390)

    visible_texts = []
    for cell in find_all(page, "#summary td"):
        if cell.is_displayed():
            visible_texts.append(cell.text)

    assert "–" not in visible_texts


def test_a_link_of_the_navigation_scrolls_to_its_section(page):
    """The navigation, 52 pixels high, stays at the top of the window.

    The section must begin below it, at most 30 pixels away.
    """
    (link,) = find_all(page, 'nav a[href="#cost"]')

    link.click()

    page.wait("Math.abs(document.querySelector('#cost').getBoundingClientRect().top - 52) < 30")
    (navigation,) = find_all(page, "nav")
    assert navigation.is_displayed()
