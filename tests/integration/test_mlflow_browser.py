"""MLflow's own pages, with the runs of some ablations: what docs/mlflow.md says to click."""

import re
from itertools import takewhile
from urllib.parse import quote

import pytest

from bleuprint.runtime.files import read_json
from bleuprint.tracking.sync import sync
from bleuprint.tracking.ui import show_mlflow
from measuring import value_of
from mlservers import runs_in, write_ablations

pytestmark = pytest.mark.slow

SMOOTHING, BLEU = "train.label_smoothing", "bleu/news-en-de/first"


@pytest.fixture(scope="module")
def runs(browser, mlserver, tmp_path_factory):
    """A function that shows the runs of the ablations that a filter finds."""
    root = tmp_path_factory.mktemp("ablations")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("DVC_ROOT", raising=False)
        patch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
        list(sync(write_ablations(root, "clicked")))
    _, (run, *_) = runs_in(mlserver.uri, "clicked")
    browser.resize(1600, 1000)

    def show(filter_):
        page = f"#/experiments/{run.info.experiment_id}/runs?searchFilter={quote(filter_)}"
        browser.open(f"{mlserver.uri}/{page}")
        browser.wait("/[1-9]\\d* matching run/.test(document.body.innerText)")
        links = "[...document.querySelectorAll('.ag-row a')].map((one) => one.textContent.trim())"
        browser.wait(f"{links}.length")
        return sorted(filter(None, browser.script(f"return {links}")))

    show.root = root
    return show


def click(browser, selector, text):
    """Click the first element with this text."""
    condition = (
        "(found = [...document.querySelectorAll(arguments[0])]"
        ".find((one) => one.textContent.trim() === arguments[1])) && (found.click(), true)"
    )
    browser.script("window.found = null")
    browser.wait(condition, selector, text)


def compare(browser):
    """Tick all runs that are listed, and press Compare."""
    browser.wait("document.querySelector('.ag-header-select-all input')")
    browser.script("document.querySelector('.ag-header-select-all input').click()")
    click(browser, "button", "Compare")
    browser.wait("/Comparing \\d+ Runs/.test(document.body.innerText)")


def chosen(browser, axis, name):
    """Choose what an axis shows, as a mouse does."""
    browser.driver.find_element("css selector", f"#{axis}-axis-selector").click()
    browser.wait("document.querySelector('[role=option]')")
    for option in browser.driver.find_elements("css selector", "[role=option]"):
        if option.text == name:
            option.click()
            return
    raise AssertionError(f"no {name} to choose")


def test_the_runs_of_one_size_of_bpe(runs):
    found = runs("params.\"corpus.vocabulary.bpe.num_merges\" = '4000'")
    assert len(found) == 6 and all(" 4000-en-de 1" in name for name in found)


def test_two_learning_rates_side_by_side(browser, runs):
    found = runs("params.system LIKE 'lr-%' AND params.corpus = 'news-en-de'")
    assert found == ["lr-0p002 news-en-de 1", "lr-0p004 news-en-de 1"]
    compare(browser)
    text = browser.script("return document.body.innerText")
    assert "train.lr_schedule.inverse_sqrt.lr\t0.004\t0.002" in text


def shown_scores(text):
    """The corpora of the runs that the text of a compare page shows, and their scores by name.

    Below its head the table of metrics has all names, then the scores of each name in turn.
    """
    lines = [line.strip() for line in text.split("\n")]
    # the first is among the parameters, another among the tags
    corpora = next(line.split("\t")[1:] for line in lines if line.startswith("corpus\t"))
    table = lines[lines.index("Metrics") + 2 :]
    names = list(takewhile(lambda line: not re.fullmatch(r"NaN|[\d.-]+", line), table))
    scores = table[len(names) :]
    columns = len(corpora)
    return corpora, {
        name: scores[columns * number : columns * (number + 1)] for number, name in enumerate(names)
    }


def test_compare_has_a_row_of_scores_for_each_corpus(browser, runs):
    assert runs("params.system = 'base'") == ["base 4000-en-de 1", "base news-en-de 1"]
    compare(browser)
    browser.wait("/NaN/.test(document.body.innerText)")
    corpora, shown = shown_scores(browser.script("return document.body.innerText"))
    assert sorted(corpora) == ["4000-en-de", "news-en-de"]
    for corpus in corpora:
        scores = read_json(runs.root / "results/base" / corpus / "1/scores.json")["first"]
        for metric in ("bleu", "chrf2"):
            of_runs = dict(zip(corpora, shown[f"{metric}/{corpus}/first"], strict=True))
            assert float(of_runs.pop(corpus)) == pytest.approx(value_of(scores, metric), abs=0.005)
            assert [*of_runs.values()] == ["NaN"]


def test_bleu_against_label_smoothing(browser, runs, mlserver):
    runs("params.system LIKE 'smoothing-%' AND params.corpus = 'news-en-de'")
    compare(browser)
    tab = "[role=tab][id$='scatter-plot']"
    browser.wait(f"document.querySelector({tab!r})")
    browser.driver.find_element("css selector", tab).click()
    browser.wait("document.querySelector('#x-axis-selector')")
    chosen(browser, "x", SMOOTHING)
    chosen(browser, "y", BLEU)
    plot = "document.querySelector('.js-plotly-plot')"
    for axis, name in (("xtitle", SMOOTHING), ("ytitle", BLEU)):
        browser.wait(f"{plot}.querySelector('.{axis}')?.textContent === {name!r}")
    # drawn by WebGL, into one picture
    x, y = browser.script(f"const [points] = {plot}.data; return [points.x, points.y]")
    _, every = runs_in(mlserver.uri, "clicked")
    data = (run.data for run in every if run.data.params["corpus"] == "news-en-de")
    assert sorted(zip(map(float, x), y, strict=True)) == sorted(
        (float(each.params[SMOOTHING]), each.metrics[BLEU])
        for each in data
        if each.params["system"].startswith("smoothing-")
    )
    assert len(set(x)) == len(set(y)) == 3


def test_the_address_that_is_printed_shows_scores(browser, runs, mlserver, monkeypatch, capsys):
    runs("")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
    show_mlflow("clicked", 1)
    browser.resize(1280)
    browser.open(capsys.readouterr().out.strip())
    # a section for each metric, whose charts have whole names
    browser.wait("document.querySelector('.js-plotly-plot')")
    lines = browser.script("return document.body.innerText").split("\n")
    sections = [line for line in lines if re.fullmatch(r"(bleu|chrf2)/.*-en-de( \(\d\))?", line)]
    named = [section.partition(" ")[0] for section in sections]
    assert named == [
        f"{kind}/{name}-en-de" for kind in ("bleu", "chrf2") for name in ("4000", "news")
    ]
    assert BLEU in lines
