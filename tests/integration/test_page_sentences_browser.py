"""Sentences and attention maps of the page in a browser: filtered, sorted, switched."""

from pathlib import Path

import pytest
from test_sentences import HOSTILE, hostile_tree

from bleuprint.config.paths import Run
from bleuprint.decoding.attention_maps import read_attention
from bleuprint.report.page.document import html_page

pytestmark = pytest.mark.slow

TREE = Path("reports", "index.html")
LINES = 100  # of the test set of `hostile_tree`
LISTED = "[...document.querySelectorAll('.lines article')].filter((one) => !one.hidden)"


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    made = hostile_tree(tmp_path_factory.mktemp("tree"))
    (made.root / TREE).parent.mkdir(exist_ok=True)
    (made.root / TREE).write_text(html_page(made), encoding="utf-8", newline="\n")
    return made


@pytest.fixture
def page(browser, context):
    """The page just opened, its list unfolded; no request leaves it and no error is logged."""
    address = (context.root / TREE).as_uri()
    browser.resize(1280)
    browser.open(address)
    browser.script("document.querySelector('.lines').closest('details').open = true")
    browser.wait("document.querySelector('#sentences .choices output').value")
    yield browser
    assert browser.complaints() == []
    assert set(browser.requests()) <= {address}


def choose(page, box, name, value):
    page.script(
        """const label = [...document.querySelectorAll(`${arguments[0]} .choices label`)]
          .find((one) => one.firstChild.textContent === arguments[1]);
        label.control.value = arguments[2];
        for (const kind of ["input", "change"]) {
          label.control.dispatchEvent(new Event(kind, { bubbles: true }));
        }""",
        *(box, name, value),
    )


def numbers(page):
    found: list[int] = page.script(
        f"return {LISTED}.map((one) => Number(one.querySelector('h4').textContent))"
    )
    return found


def scores(page, system):
    found: list[float] = page.script(
        f"""return {LISTED}.map((one) => [...one.querySelectorAll("p")].find((p) =>
          p.querySelector("b").textContent === arguments[0]).querySelector("i").textContent)
          .map(Number)""",
        system,
    )
    return found


def count(page):
    return str(page.script("return document.querySelector('#sentences output').value"))


def test_lines_are_filtered(page, context):
    assert count(page) == f"{LINES} of {LINES} lines"
    assert numbers(page) == list(range(1, LINES + 1))
    split = context.root / "data" / "split" / "news-en-de"
    sources = (split / "test.first.en").read_text("utf-8").split("\n")[:-1]
    word = sources[20].split()[0]
    expected = [i + 1 for i, line in enumerate(sources) if word in line]
    choose(page, "#sentences", "in", "source")
    choose(page, "#sentences", "Find", word.upper())
    assert numbers(page) == expected
    assert count(page) == f"{len(expected)} of {LINES} lines"
    choose(page, "#sentences", "in", "outputs")
    choose(page, "#sentences", "Find", "qzxwrong")
    path = context.root / Run("small", "news-en-de", 1).results_folder / "hypotheses"
    wrong = (path / "test.first.de").read_text("utf-8").split("\n")[:-1]
    choose(page, "#sentences", "Show", "small")
    assert numbers(page) == [i + 1 for i, line in enumerate(wrong) if "qzxwrong" in line]
    # what is found is what is read: a word of the reference that is left out leaves one space
    for i in (20, 21, 22):
        choose(page, "#sentences", "Find", f"  {wrong[i].replace(' ', '  ')} ")
        assert i + 1 in numbers(page)
    choose(page, "#sentences", "Find", "not to be found")
    assert count(page) == f"0 of {LINES} lines"


def test_lines_are_sorted_and_one_system_stands_alone(page):
    choose(page, "#sentences", "Show", "small")
    choose(page, "#sentences", "Sort by", "worst")
    found = scores(page, "small")
    assert found == sorted(found) and found[0] < found[-1]
    assert page.script(
        """return [...document.querySelectorAll(".lines p:not([hidden]) > b")]
        .every((one) => one.textContent !== "tiny")"""
    )
    choose(page, "#sentences", "Sort by", "best")
    assert scores(page, "small") == sorted(found, reverse=True)
    choose(page, "#sentences", "Sort by", "above")
    deltas = [a - b for a, b in zip(scores(page, "small"), scores(page, "tiny"), strict=True)]
    assert deltas == sorted(deltas, reverse=True)
    choose(page, "#sentences", "Show", "")
    choose(page, "#sentences", "Sort by", "spread")
    pairs = zip(scores(page, "small"), scores(page, "tiny"), strict=True)
    spreads = [abs(a - b) for a, b in pairs]
    assert spreads == sorted(spreads, reverse=True) and spreads[0] > 0
    choose(page, "#sentences", "Sort by", "number")
    assert numbers(page) == list(range(1, LINES + 1))
    page.script("document.querySelector('#sentences .choices input[type=checkbox]').click()")
    assert 0 < len(numbers(page)) < LINES and not set(numbers(page)) & {1, 2, 3, 4}


def test_a_map_is_of_what_is_chosen(page, context):
    path = context.root / Run("small", "news-en-de", 1).results_folder
    (kept,) = read_attention(path / "hypotheses" / "attention.json", "first")
    choose(page, "#attention", "System", "small")
    for kind, one in kept.maps.items():
        choose(page, "#attention", "Kind", kind)
        for layer, head in (("1", "mean"), ("0", "1")):
            choose(page, "#attention", "Layer", layer)
            choose(page, "#attention", "Head", head)
            weights = one.weights[int(layer)]
            expected = weights.mean(0) if head == "mean" else weights[int(head)]
            assert cells(page) == [[round(100 * float(w)) for w in row] for row in expected]
    title = page.driver.find_element("css selector", "#maps tbody td").get_attribute("title")
    share = 100 * kept.maps["decoder"].weights[0, 1, 0, 0]
    assert title == f"{HOSTILE[-1]} ← <s>: {share:.1f} %"


def cells(page):
    return page.script(
        """return [...document.querySelectorAll("#maps tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent)))"""
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_text_stays_text_and_within_the_window(page, width):
    assert page.driver.title == "trial_run – bleuprint"
    page.resize(width)
    assert page.script("return document.documentElement.scrollWidth") <= width
    shown = page.script("return document.querySelector('.lines article bdi').textContent")
    assert shown == HOSTILE[0]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_name_of_a_system_stays_above_the_next_line(page, width):
    """Also where its translation is a single word."""
    page.resize(width)
    overlaps = page.script(
        f"""const article = {LISTED}[10];
        const rows = [...article.querySelectorAll("p")];
        for (const row of rows.slice(-2)) {{
          row.querySelector("b").textContent = "transformer-tiny-of-four-layers";
          row.querySelector("bdi, em").textContent = "ja";
        }}
        article.style.contentVisibility = "visible";  // laid out now, not in a later frame
        article.scrollIntoView();
        const next = {LISTED}[11];
        return [...rows, next].slice(1).map((row, i) =>
          rows[i].querySelector("b").getBoundingClientRect().bottom
          - row.getBoundingClientRect().top);"""
    )
    assert len(overlaps) == 4
    assert max(overlaps) <= 0.5
