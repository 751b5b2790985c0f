"""The page of `bleuprint serve` in a browser."""

import signal

import numpy as np
import pytest
from test_server import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(toy):
    with serving(toy) as started:
        yield started


@pytest.fixture
def page(browser, server):
    """The page just opened; afterwards, fails on console errors and requests to other hosts."""
    browser.resize(1280)
    browser.open(server.url)
    yield browser
    # The console mentions requests that the server refuses (4xx), as two tests make it do.
    errors = [message for message in browser.complaints() if "status of 4" not in message]
    assert errors == []
    assert all(address.startswith(f"{server.url}/") for address in browser.requests())


def find(page, selector):
    """Return the first element of a page that a CSS selector selects."""
    return page.driver.find_element("css selector", selector)


def find_texts(page, selector):
    """Return the visible texts of the elements that a CSS selector selects."""
    elements = page.driver.find_elements("css selector", selector)
    return [element.text for element in elements]


def translate(page, text):
    """Write a text into the page, press the button to translate, and wait for the result."""
    page.script("arguments[0].value = arguments[1]", find(page, "textarea"), text)
    find(page, "#go").click()
    page.wait("!isTranslating")


def choose_head(page, head):
    """Choose an attention head of the first map by its number; 0 chooses the mean of all heads."""
    menu = find(page, "#head-0-0")
    page.script("arguments[0].value = arguments[1]", menu, head)
    page.script("arguments[0].dispatchEvent(new Event('change'))", menu)


def expected_line(server, sentence):
    """Return what the server answers, in JSON, for one sentence: translations and attention."""
    (line,) = server.translate(text=sentence, n_best=2, attention=True)
    return line


def test_the_page_shows_the_translation_of_the_server(page, server):
    translate(page, "be ba")

    best = expected_line(server, "be ba")["translations"][0]
    assert find_texts(page, ".translation") == [best["text"]]


def test_the_page_lists_the_best_translations_by_rank_with_scores(page, server):
    """The expected rows come from the server's answer in JSON to the same sentence."""
    translations = expected_line(server, "be ba")["translations"]
    expected_rows = []
    for rank, translation in enumerate(translations, start=1):
        expected_rows.append(f"{rank} {translation['score']:.3f} {translation['text']}")

    translate(page, "be ba")

    assert find_texts(page, ".list tbody tr") == expected_rows


def test_the_attention_map_has_the_tokens_of_both_sentences_at_its_margins(page, server):
    """The source tokens are above the columns, the target tokens beside the rows.

    The expected tokens come from the server's answer in JSON.
    """
    translate(page, "be ba")

    (attention,) = expected_line(server, "be ba")["attention"]
    assert find_texts(page, ".map thead th") == attention["columns"]
    assert find_texts(page, ".map tbody th") == attention["rows"]


@pytest.mark.parametrize(
    "head", [pytest.param(0, id="mean of heads"), pytest.param(3, id="head 3")]
)
def test_the_attention_map_shows_the_percentages_of_the_chosen_head(page, server, head):
    """The menu has the mean of all heads as entry 0, then the heads of the first layer.

    The expected weights come from the server's answer in JSON.
    """
    (attention,) = expected_line(server, "be ba")["attention"]
    weights_by_head = np.array(attention["weights"][0])  # of the first layer
    weights = weights_by_head.mean(axis=0) if head == 0 else weights_by_head[head - 1]

    translate(page, "be ba")
    choose_head(page, head)

    _empty_corner, *cells = find_texts(page, ".map td")
    shown_percentages = [float(text) for text in cells]
    rounding = 0.51  # The page shows whole percentages.
    assert shown_percentages == pytest.approx(100 * weights.flatten(), abs=rounding)


def test_each_line_that_is_not_empty_has_a_heading_a_source_and_a_map(page):
    """The user enters three lines; the second one is empty."""
    translate(page, "be ba\n\nbe di")

    assert find_texts(page, "h2") == ["Line 1", "Line 3"]
    assert find_texts(page, ".source") == ["be ba", "be di"]
    assert len(find_texts(page, ".map")) == 2


def test_markup_in_a_sentence_is_shown_as_text(page):
    """As HTML, this sentence would send a request to another host, then run a script.

    The script would set the title of the page to 1.
    """
    title_before = page.driver.title
    markup = '<img src="http://evil.example/x" onerror="document.title=1"> be'

    translate(page, f"be ba\n\n{markup}")

    assert find_texts(page, ".source") == ["be ba", markup]
    assert page.driver.find_elements("css selector", "img") == []
    assert page.driver.title == title_before


def test_a_hint_says_on_what_the_system_was_trained(page):
    assert "Trained on" in find_texts(page, "header .hint")[0]


def test_a_hint_names_the_words_that_the_training_text_lacks(page):
    translate(page, "be zzz ba, Zzz\nbe")

    assert find_texts(page, ".source") == ["be zzz ba, Zzz", "be"]
    assert "Not in the training text: zzz, Zzz." in find_texts(page, ".hint")


def test_a_warning_says_that_a_long_sentence_was_split(page):
    """The model was built for sentences of fewer tokens than these 300 words have."""
    translate(page, "ga " * 300)

    warning = find_texts(page, ".warning")[0]
    assert "tokens too long for the model and was split into pieces." in warning


def test_pressing_control_and_enter_translates(page):
    """The text field has the focus when the page opens. Enter alone begins a new line.

    The user types two lines, so the page shows two translations.
    """
    from selenium.webdriver.common.keys import Keys

    text_field = page.driver.switch_to.active_element
    assert text_field.get_attribute("id") == "text"

    text_field.send_keys("be", Keys.ENTER, "ba")
    text_field.send_keys(Keys.CONTROL, Keys.ENTER)

    page.wait("document.querySelectorAll('.translation').length === 2")
    assert "Translated in" in find(page, "[role=status]").text


def test_tab_moves_the_focus_from_the_text_through_the_controls_to_the_button(page):
    """A user without a mouse presses Tab. The text field has the focus when the page opens.

    Then follow the number of translations, the box for attention maps and the button to translate.
    """
    from selenium.webdriver.common.keys import Keys

    ids = []
    for _ in range(3):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        ids.append(page.driver.switch_to.active_element.get_attribute("id"))

    assert ids == ["best", "attention", "go"]


def test_controls_have_names_for_screen_readers(page):
    """A screen reader reads the label of a control, or its attribute aria-label.

    After a translation, the page also has menus for the layer and the head of the attention map.
    """
    translate(page, "be ba")

    names = page.script("""
        const nameOf = (control) => {
          if (control.labels?.[0]) return control.labels[0].textContent;
          if (control.id === "go") return control.textContent;
          return control.getAttribute("aria-label");
        };
        const controls = "input, select, textarea, button, [tabindex]";
        return [...document.querySelectorAll(controls)].map(nameOf);""")

    assert names == [
        "Text to translate, one sentence per line",
        "Translations per line",
        "Attention",
        "Translate",
        "Layer ",
        "Head ",
        "Attention",
    ]


@pytest.mark.parametrize(
    ("width", "does_map_scroll"),
    [pytest.param(390, True, id="phone"), pytest.param(1280, False, id="desktop")],
)
def test_a_map_wider_than_the_window_scrolls_in_its_own_box(page, width, does_map_scroll):
    """The attention map has a column for each of 12 words; the second sentence is one long word.

    The page itself must not become wider than the window.
    """
    page.resize(width)
    long_word = "b" * 300

    translate(page, f"{'be ba di gu fi lo ' * 2}\n{long_word}")

    map_width, box_width = page.script("""
        const box = document.querySelector(".wide");
        return [box.scrollWidth, box.clientWidth];""")
    page_width = page.script("return document.documentElement.scrollWidth")
    assert page_width <= width
    assert box_width <= width
    assert (map_width > box_width) == does_map_scroll


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            " \n ",
            "There is nothing to translate: write something first.",
            id="only spaces",
        ),
        pytest.param(
            "be " * 30_000,
            "The request was refused (413): the body has more than 65,536 bytes.",
            id="too long",
        ),
    ],
)
def test_a_text_that_cannot_be_translated_gets_a_message_instead(page, text, message):
    """The page refuses a text of spaces; the server refuses a request of more than 65,536 bytes."""
    translate(page, text)

    assert find(page, "[role=alert]").text == message
    shown_results = find_texts(page, "section section, .translation")
    assert shown_results == []


def test_the_next_translation_removes_the_message(page):
    """Two texts that cannot be translated come first: only spaces, and one that is too long."""
    translate(page, " \n ")
    translate(page, "be " * 30_000)

    translate(page, "be")

    assert not find(page, "[role=alert]").is_displayed()
    assert len(find_texts(page, ".translation")) == 1


def test_a_message_asks_whether_a_server_that_does_not_answer_is_running(browser, toy):
    """The server of the open page is stopped. The console may only mention this failed request."""
    with serving(toy) as server:
        browser.open(server.url)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)

        translate(browser, "be")

        message = find(browser, "[role=alert]").text
        assert message == "No answer from the server. Is bleuprint serve still running?"
    for console_message in browser.complaints():
        assert "ERR_CONNECTION_REFUSED" in console_message
    requested_hosts = {address.rpartition("/")[0] for address in browser.requests()}
    assert server.url in requested_hosts
