"""Sentences and attention maps of the page in a browser: filtered, sorted, switched."""

from pathlib import Path

import pytest
from test_sentences import HOSTILE, hostile_tree

from bleuprint.config.paths import Run
from bleuprint.decoding.attention_maps import read_attention
from bleuprint.report.page.document import html_page

pytestmark = pytest.mark.slow

PAGE = Path("reports", "index.html")
TEST_SET_LINES = 100  # of `hostile_tree`
SMALL = Run("small", "news-en-de", 1)
# JavaScript: the lines of the list that the filters let through, as they are sorted.
SHOWN_LINES = (
    '[...document.querySelectorAll(".lines article")].filter((article) => !article.hidden)'
)


@pytest.fixture(scope="module")
def report_data(tmp_path_factory):
    """Write the page of an experiment with the systems tiny and small; return what it shows."""
    data = hostile_tree(tmp_path_factory.mktemp("tree"))
    (data.root / PAGE).parent.mkdir(exist_ok=True)
    (data.root / PAGE).write_text(html_page(data), encoding="utf-8", newline="\n")
    return data


@pytest.fixture
def page(browser, report_data):
    """The page just opened, its list unfolded; no request leaves it and no error is logged."""
    address = (report_data.root / PAGE).as_uri()
    browser.resize(1280)
    browser.open(address)
    browser.script("document.querySelector('.lines').closest('details').open = true")
    browser.wait("document.querySelector('#sentences .choices output').value")
    yield browser
    assert browser.complaints() == []
    assert set(browser.requests()) <= {address}


@pytest.fixture(scope="module")
def source_lines(report_data):
    """The source sentences of the test set."""
    return read_lines(report_data.root / "data" / "split" / "news-en-de" / "test.first.en")


@pytest.fixture(scope="module")
def small_translations(report_data):
    """The translations of the test set by the system small."""
    folder = report_data.root / SMALL.results_folder / "hypotheses"
    return read_lines(folder / "test.first.de")


def read_lines(path):
    """Return the lines of a text; only newlines end them."""
    return path.read_text("utf-8").split("\n")[:-1]


def choose(page, section, label, value):
    """Enter a value into a control of the page, which then shows what is chosen.

    Args:
        page: The page.
        section: The CSS selector of the section with the control.
        label: The text of the control's label.
        value: The value.
    """
    page.script(
        """
        const [section, text, value] = arguments;
        const label = [...document.querySelectorAll(`${section} .choices label`)]
          .find((label) => label.firstChild.textContent === text);
        label.control.value = value;
        for (const kind of ["input", "change"]) {
          label.control.dispatchEvent(new Event(kind, { bubbles: true }));
        }""",
        section,
        label,
        value,
    )


def choose_sentences(page, label, value):
    """Enter a value into a control of the list of sentences."""
    choose(page, "#sentences", label, value)


def choose_attention(page, label, value):
    """Enter a value into a control of the attention maps."""
    choose(page, "#attention", label, value)


def shown_numbers(page):
    """Return the numbers of the lines that the list shows, in its order."""
    return page.script(
        f"""return {SHOWN_LINES}
          .map((article) => Number(article.querySelector("h4").textContent));"""
    )


def shown_scores(page, system):
    """Return the scores of a system's translations that the list shows, in its order."""
    return page.script(
        f"""
        const isOfSystem = (row) => row.querySelector("b").textContent === arguments[0];
        return {SHOWN_LINES}
          .map((article) => [...article.querySelectorAll("p")].find(isOfSystem))
          .map((row) => Number(row.querySelector("i").textContent));""",
        system,
    )


def count_text(page):
    """Return the text that says how many lines the list shows."""
    return page.script("return document.querySelector('#sentences output').value")


def lines_with(word, lines):
    """Return the numbers of the lines that contain a word, from 1."""
    return [number for number, line in enumerate(lines, start=1) if word in line]


def test_the_list_shows_all_lines_by_number_at_first(page):
    assert count_text(page) == f"{TEST_SET_LINES} of {TEST_SET_LINES} lines"
    assert shown_numbers(page) == list(range(1, TEST_SET_LINES + 1))


def test_a_search_in_sources_ignores_case_and_shows_the_lines_with_the_word(page, source_lines):
    """The page lists the 100 sentences of a test set. The word is entered in capitals."""
    word = source_lines[20].split()[0]
    line_numbers = lines_with(word, source_lines)

    choose_sentences(page, "in", "source")
    choose_sentences(page, "Find", word.upper())

    assert shown_numbers(page) == line_numbers
    assert count_text(page) == f"{len(line_numbers)} of 100 lines"


def test_a_search_in_outputs_is_limited_to_the_chosen_system(page, small_translations):
    """The systems tiny and small both produce the wrong word qzxwrong, but in different lines."""
    line_numbers = lines_with("qzxwrong", small_translations)

    choose_sentences(page, "in", "outputs")
    choose_sentences(page, "Find", "qzxwrong")
    choose_sentences(page, "Show", "small")

    assert shown_numbers(page) == line_numbers


@pytest.mark.parametrize("number", [21, 22, 23])
def test_a_search_for_a_whole_translation_finds_its_line(page, small_translations, number):
    """The page marks the words in which an output differs from its reference.

    The search must ignore these marks, and additional spaces: here the spaces are doubled.
    """
    translation = small_translations[number - 1]
    with_double_spaces = translation.replace(" ", "  ")

    choose_sentences(page, "in", "outputs")
    choose_sentences(page, "Show", "small")
    choose_sentences(page, "Find", f"  {with_double_spaces} ")

    assert number in shown_numbers(page)


def test_a_search_without_a_match_shows_no_line(page):
    choose_sentences(page, "Find", "not to be found")

    assert count_text(page) == f"0 of {TEST_SET_LINES} lines"


@pytest.mark.parametrize(
    ("order", "is_highest_first"),
    [pytest.param("worst", False, id="worst"), pytest.param("best", True, id="best")],
)
def test_lines_are_sorted_by_the_scores_of_the_chosen_system(page, order, is_highest_first):
    """The page shows a score for each translation of a sentence, here of the system small."""
    choose_sentences(page, "Show", "small")

    choose_sentences(page, "Sort by", order)

    scores = shown_scores(page, "small")
    assert scores == sorted(scores, reverse=is_highest_first)
    assert scores[0] != scores[-1]


def test_choosing_a_system_hides_the_translations_of_the_other_system(page):
    """The page has translations by the systems tiny and small; the user chooses small."""
    choose_sentences(page, "Show", "small")
    choose_sentences(page, "Sort by", "worst")

    shown_systems = page.script(
        """return [...document.querySelectorAll(".lines p:not([hidden]) > b")]
          .map((name) => name.textContent);"""
    )

    assert "tiny" not in shown_systems


def score_differences(page):
    """Return by how much small scores higher than tiny in each line of the list, in its order."""
    small_scores = shown_scores(page, "small")
    tiny_scores = shown_scores(page, "tiny")
    return [small - tiny for small, tiny in zip(small_scores, tiny_scores, strict=True)]


def test_lines_are_sorted_by_the_difference_from_the_baseline(page):
    """`score_differences` reads from the page how much small scores above tiny in each line.

    The sentences on which small gains most come first.
    """
    choose_sentences(page, "Show", "small")

    choose_sentences(page, "Sort by", "above")

    differences = score_differences(page)
    assert differences == sorted(differences, reverse=True)


def test_lines_are_sorted_by_how_much_the_systems_differ(page):
    """`score_differences` reads from the page how much small scores above tiny in each line.

    Lines with a large difference come first, whichever system is better.
    """
    choose_sentences(page, "Show", "")  # all systems

    choose_sentences(page, "Sort by", "spread")

    spreads = [abs(difference) for difference in score_differences(page)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[0] > 0


def test_lines_are_sorted_back_by_number(page):
    """The page lists the 100 sentences of a test set; first the user sorts them otherwise."""
    choose_sentences(page, "Sort by", "spread")

    choose_sentences(page, "Sort by", "number")

    assert shown_numbers(page) == list(range(1, 101))


def test_a_check_box_hides_the_lines_that_all_systems_translate_equally(page):
    """In this test set of 100 lines, both systems translate the first four lines equally."""
    page.script("document.querySelector('#sentences .choices input[type=checkbox]').click()")

    numbers = shown_numbers(page)
    assert 0 < len(numbers) < 100
    assert set(numbers).isdisjoint({1, 2, 3, 4})


def small_attention(report_data):
    """Return the attention maps of the system small for the first line."""
    folder = report_data.root / SMALL.results_folder / "hypotheses"
    (attention,) = read_attention(folder / "attention.json", "first")
    return attention.maps


def map_cells(page):
    """Return the numbers of the attention map on the page, row by row."""
    return page.script(
        """return [...document.querySelectorAll("#maps tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent)))"""
    )


@pytest.mark.parametrize(("layer", "head"), [("1", "mean"), ("0", "1")])
@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_the_map_shows_the_attention_of_the_chosen_layer_and_head(
    page, report_data, kind, layer, head
):
    """The page shows the attention weights as percentages: a row per target token.

    The expected weights are read from the file attention.json. The user may also choose the mean
    over all heads.
    """
    weights_by_head = small_attention(report_data)[kind].weights[int(layer)]
    weights = weights_by_head.mean(0) if head == "mean" else weights_by_head[int(head)]
    expected_percentages = (100 * weights).round().astype(int).tolist()

    choose_attention(page, "System", "small")
    choose_attention(page, "Kind", kind)
    choose_attention(page, "Layer", layer)
    choose_attention(page, "Head", head)

    assert map_cells(page) == expected_percentages


def test_a_cell_of_the_attention_map_names_both_tokens_and_the_percentage(page, report_data):
    """The mouse pointer on a cell shows: TARGET TOKEN ← ATTENDED TOKEN: PERCENTAGE.

    In decoder self-attention, the first row is of the first target token, here HOSTILE[-1], and the
    first column of the start token <s>.
    """
    choose_attention(page, "System", "small")
    choose_attention(page, "Kind", "decoder")
    choose_attention(page, "Layer", "0")
    choose_attention(page, "Head", "1")

    first_cell = page.driver.find_element("css selector", "#maps tbody td")

    share = 100 * small_attention(report_data)["decoder"].weights[0, 1, 0, 0]
    assert first_cell.get_attribute("title") == f"{HOSTILE[-1]} ← <s>: {share:.1f} %"


def test_a_script_in_a_sentence_is_shown_as_text(page):
    """HOSTILE[0], the first sentence, is a script that would change the title of the page."""
    first_sentence = page.script("return document.querySelector('.lines article bdi').textContent")

    assert first_sentence == HOSTILE[0]
    assert page.driver.title == "trial_run – bleuprint"


for_window_widths = pytest.mark.parametrize(
    "width", [pytest.param(390, id="phone"), pytest.param(1280, id="desktop")]
)


@for_window_widths
def test_a_word_longer_than_the_window_does_not_widen_the_page(page, width):
    page.resize(width)

    assert page.script("return document.documentElement.scrollWidth") <= width


@for_window_widths
def test_a_long_name_of_a_system_does_not_overlap_the_next_line(page, width):
    """A long name takes two lines, and its translation, a single word, takes one.

    The script renames both systems in line 11 and measures by how many pixels each name overlaps
    the row below it.
    """
    page.resize(width)

    overlaps_in_pixels = page.script(
        f"""
        const article = {SHOWN_LINES}[10];
        const nextArticle = {SHOWN_LINES}[11];
        const rows = [...article.querySelectorAll("p")];
        for (const row of rows.slice(-2)) {{
          row.querySelector("b").textContent = "transformer-tiny-of-four-layers";
          row.querySelector("bdi, em").textContent = "ja";
        }}
        article.style.contentVisibility = "visible";  // laid out now, not in a later frame
        article.scrollIntoView();
        const followers = [...rows, nextArticle].slice(1);
        return followers.map((follower, i) =>
          rows[i].querySelector("b").getBoundingClientRect().bottom
          - follower.getBoundingClientRect().top);"""
    )

    assert len(overlaps_in_pixels) == 4  # source, reference and two translations
    assert max(overlaps_in_pixels) <= 0.5
