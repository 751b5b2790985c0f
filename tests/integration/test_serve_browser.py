"""The page of `bleuprint serve` in a browser."""

import signal

import pytest
from test_server import serving

pytestmark = pytest.mark.slow

MARKUP = '<img src="http://evil.example/x" onerror="document.title=1"> be'


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
    assert [said for said in browser.complaints() if "status of 4" not in said] == []
    assert all(address.startswith(f"{server.url}/") for address in browser.requests())


def write(page, text):
    page.script("arguments[0].value = arguments[1]", one(page, "textarea"), text)


def one(page, selector):
    return page.driver.find_element("css selector", selector)


def texts(page, selector):
    return [found.text for found in page.driver.find_elements("css selector", selector)]


def go(page, text):
    """Press the button to translate, and wait for the result."""
    write(page, text)
    one(page, "#go").click()
    page.wait("!isTranslating")


def test_a_sentence_is_translated(page, server):
    go(page, "be ba")
    _, expected = server.translate(text="be ba", n_best=2, attention=True)
    (line,) = expected["lines"]
    assert texts(page, ".translation") == [line["translations"][0]["text"]]
    rows = [row.split(" ", 2) for row in texts(page, ".list tbody tr")]
    assert rows == [
        [str(rank), f"{found['score']:.3f}", found["text"]]
        for rank, found in enumerate(line["translations"], 1)
    ]
    (attention,) = line["attention"]
    assert texts(page, ".map thead th") == attention["columns"]
    assert texts(page, ".map tbody th") == attention["rows"]
    heads = attention["weights"][0]
    for chosen in (0, 3):
        page.script("arguments[0].value = arguments[1]", one(page, "#head-0-0"), chosen)
        page.script("arguments[0].dispatchEvent(new Event('change'))", one(page, "#head-0-0"))
        kept = heads[chosen - 1 : chosen] if chosen else heads
        for i, cells in enumerate(_by_row(texts(page, ".map td")[1:], len(attention["columns"]))):
            means = [sum(head[i][j] for head in kept) / len(kept) for j in range(len(cells))]
            assert list(map(float, cells)) == pytest.approx([100 * m for m in means], abs=0.51)


def _by_row(cells, width):
    return [cells[at : at + width] for at in range(0, len(cells), width)]


def test_lines_come_one_by_one_and_text_is_no_markup(page):
    title = page.driver.title
    go(page, f"be ba\n\n{MARKUP}")
    assert texts(page, "h2") == ["Line 1", "Line 3"]
    assert texts(page, ".source") == ["be ba", MARKUP]
    assert page.driver.title == title
    assert page.driver.find_elements("css selector", "img") == []
    assert len(texts(page, ".map")) == 2  # none of the empty line


def test_unknown_words_are_named(page):
    assert "Trained on" in texts(page, "header .hint")[0]
    go(page, "be zzz ba, Zzz\nbe")
    assert texts(page, ".source") == ["be zzz ba, Zzz", "be"]
    assert "Not in the training text: zzz, Zzz." in texts(page, ".hint")


def test_text_that_was_probably_lost_is_named(page):
    go(page, "ga " * 300)
    warning = texts(page, ".warning")[0]
    assert "tokens too long for the model: split into pieces." in warning


def test_the_keyboard_is_enough(page):
    from selenium.webdriver.common.keys import Keys

    box = page.driver.switch_to.active_element
    assert box.get_attribute("id") == "text"
    box.send_keys("be", Keys.ENTER, "ba")
    box.send_keys(Keys.CONTROL, Keys.ENTER)
    page.wait("document.querySelectorAll('.translation').length === 2")
    assert "Translated in" in one(page, "[role=status]").text
    order = []
    for _ in range(3):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        order.append(page.driver.switch_to.active_element.get_attribute("id"))
    assert order == ["best", "attention", "go"]


def test_controls_have_names(page):
    go(page, "be ba")
    names = page.script(
        """return [...document.querySelectorAll("input, select, textarea, button, [tabindex]")].map(
        (each) => each.labels?.[0]?.textContent || each.textContent && each.id == "go"
          && each.textContent || each.getAttribute("aria-label"))"""
    )
    assert names == [
        "Text to translate, one sentence per line",
        "Translations per line",
        "Attention",
        "Translate",
        "Layer ",
        "Head ",
        "Attention",
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(page, width):
    page.resize(width)
    go(page, "be ba di gu fi lo " * 2 + "\n" + "b" * 300)
    assert page.script("return document.documentElement.scrollWidth") <= width
    box = page.script(
        "const box = document.querySelector('.wide'); return [box.scrollWidth, box.clientWidth]"
    )
    assert box[1] <= width and (box[0] > box[1]) == (width == 390)


def test_what_is_wrong_is_said_in_words(page):
    go(page, " \n ")
    assert one(page, "[role=alert]").text == "There is nothing to translate: write something first."
    go(page, "be " * 30_000)
    said = "The request was refused (413): the body has more than 65,536 bytes."
    assert one(page, "[role=alert]").text == said
    assert texts(page, "section section, .translation") == []
    go(page, "be")
    assert not one(page, "[role=alert]").is_displayed()
    assert len(texts(page, ".translation")) == 1


def test_a_server_that_is_gone(browser, toy):
    with serving(toy) as server:
        browser.open(server.url)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)
        go(browser, "be")
        said = "No answer from the server. Is bleuprint serve still running?"
        assert one(browser, "[role=alert]").text == said
    assert all("ERR_CONNECTION_REFUSED" in complaint for complaint in browser.complaints())
    assert {address.rpartition("/")[0] for address in browser.requests()} >= {server.url}
