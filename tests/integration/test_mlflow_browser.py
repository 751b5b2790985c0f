"""MLflow's own pages, with the runs of some ablations: what docs/mlflow.md says to click.

The systems are base, two learning rates and three label smoothings, each on two corpora: news-en-de
and 4000-en-de, which has 4,000 merges of BPE (tests/support/mlservers.py).
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from bleuprint.runtime.json_files import read_json
from bleuprint.tracking.sync import sync
from bleuprint.tracking.ui import show_mlflow
from browser import Browser
from measuring import value_of
from mlservers import runs_in, write_ablations

pytestmark = pytest.mark.slow

EXPERIMENT = "clicked"


@dataclass(frozen=True)
class ExperimentPages:
    """MLflow's pages of the ablations in a browser.

    Attributes:
        browser: The browser.
        experiment_url: The address of the experiment in MLflow.
        root: The folder with the results, which MLflow has got.
    """

    browser: Browser
    experiment_url: str
    root: Path

    def text(self):
        """Return the visible text of the page."""
        return self.browser.script("return document.body.innerText")

    def click(self, selector, label):
        """Click the first element that a CSS selector finds and that has a label."""
        condition = (
            "(element = [...document.querySelectorAll(arguments[0])]"
            ".find((element) => element.textContent.trim() === arguments[1]))"
            " && (element.click(), true)"
        )
        self.browser.script("window.element = null")
        self.browser.wait(condition, selector, label)

    def search_runs(self, search_filter):
        """Open the list of runs that MLflow's search finds, and return their names, sorted."""
        self.browser.open(f"{self.experiment_url}/runs?searchFilter={quote(search_filter)}")
        self.browser.wait("/[1-9]\\d* matching run/.test(document.body.innerText)")
        links = "[...document.querySelectorAll('.ag-row a')].map((link) => link.textContent.trim())"
        self.browser.wait(f"{links}.length")
        names = self.browser.script(f"return {links}")
        return sorted(name for name in names if name)

    def compare_listed_runs(self):
        """Tick all runs that are listed, and press Compare."""
        select_all = "document.querySelector('.ag-header-select-all input')"
        self.browser.wait(select_all)
        self.browser.script(f"{select_all}.click()")
        self.click("button", "Compare")
        self.browser.wait("/Comparing \\d+ Runs/.test(document.body.innerText)")

    def open_scatter_plot(self, x, y):
        """Open the scatter plot of runs that are compared, and choose what its axes show.

        Args:
            x: The name of a parameter or metric.
            y: Another one.

        Returns:
            The coordinates of the points.
        """
        tab = "[role=tab][id$='scatter-plot']"
        self.browser.wait(f"document.querySelector({tab!r})")
        self.browser.driver.find_element("css selector", tab).click()
        self.browser.wait("document.querySelector('#x-axis-selector')")
        self._choose_axis("x", x)
        self._choose_axis("y", y)
        plot = "document.querySelector('.js-plotly-plot')"
        self.browser.wait(f"{plot}.querySelector('.xtitle')?.textContent === {x!r}")
        self.browser.wait(f"{plot}.querySelector('.ytitle')?.textContent === {y!r}")
        # WebGL draws the points into one picture, so they are not elements of the page.
        script = f"const [points] = {plot}.data; return [points.x, points.y]"
        x_values, y_values = self.browser.script(script)
        return list(zip(map(float, x_values), y_values, strict=True))

    def _choose_axis(self, axis, name):
        """Choose what an axis of the scatter plot shows, as a mouse does."""
        self.browser.driver.find_element("css selector", f"#{axis}-axis-selector").click()
        self.browser.wait("document.querySelector('[role=option]')")
        for option in self.browser.driver.find_elements("css selector", "[role=option]"):
            if option.text == name:
                option.click()
                return
        raise AssertionError(f"{name} is not among the options of the axis {axis}")


@pytest.fixture(scope="module")
def pages(browser, mlserver, tmp_path_factory):
    """Return the ExperimentPages of the ablations, after `bleuprint sync` has logged them."""
    root = tmp_path_factory.mktemp("ablations")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("DVC_ROOT", raising=False)
        patch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
        list(sync(write_ablations(root, EXPERIMENT)))
    _, runs = runs_in(mlserver.uri, EXPERIMENT)
    browser.resize(1600, 1000)
    url = f"{mlserver.uri}/#/experiments/{runs[0].info.experiment_id}"
    return ExperimentPages(browser, url, root)


def test_searching_mlflow_for_a_number_of_bpe_merges_finds_the_runs_on_that_corpus(pages):
    """Six systems were trained on two corpora; 4000-en-de has 4,000 BPE merge operations.

    A run has the name SYSTEM CORPUS SEED.
    """
    names = pages.search_runs("params.\"corpus.vocabulary.bpe.num_merges\" = '4000'")

    system_count = 6
    assert len(names) == system_count
    for name in names:
        assert " 4000-en-de 1" in name


def test_mlflow_compares_the_learning_rates_of_two_runs_side_by_side(pages):
    """The user searches for two systems that differ in the learning rate, and presses Compare."""
    names = pages.search_runs("params.system LIKE 'lr-%' AND params.corpus = 'news-en-de'")
    assert names == ["lr-0p002 news-en-de 1", "lr-0p004 news-en-de 1"]

    pages.compare_listed_runs()

    assert "train.lr_schedule.inverse_sqrt.lr\t0.004\t0.002" in pages.text()


@pytest.fixture(scope="module")
def comparison_of_corpora(pages):
    """Return what the page shows that compares the runs of the system base on both corpora.

    Attributes of the result: `run_names`; `corpora`, those of the columns; and `scores`, the text
    of the cells by the name of the metric.
    """
    run_names = pages.search_runs("params.system = 'base'")
    pages.compare_listed_runs()
    pages.browser.wait("/NaN/.test(document.body.innerText)")
    lines = [line.strip() for line in pages.text().split("\n")]

    # The first such line is among the parameters, another one among the tags.
    corpus_line = next(line for line in lines if line.startswith("corpus\t"))
    corpora = corpus_line.split("\t")[1:]

    # Below its head, the table of metrics has all names, then the cells of each name in turn.
    table = lines[lines.index("Metrics") + 2 :]
    metrics = list(takewhile(lambda line: not re.fullmatch(r"NaN|[\d.-]+", line), table))
    cells = table[len(metrics) :]
    scores = {}
    for number, metric in enumerate(metrics):
        first_cell = number * len(corpora)
        scores[metric] = cells[first_cell : first_cell + len(corpora)]
    return SimpleNamespace(run_names=run_names, corpora=corpora, scores=scores)


def test_a_system_has_a_run_for_each_corpus(comparison_of_corpora):
    assert comparison_of_corpora.run_names == ["base 4000-en-de 1", "base news-en-de 1"]
    assert sorted(comparison_of_corpora.corpora) == ["4000-en-de", "news-en-de"]


@pytest.mark.parametrize("metric", ["bleu", "chrf2"])
@pytest.mark.parametrize("corpus", ["4000-en-de", "news-en-de"])
def test_a_comparison_shows_the_score_of_a_corpus_in_its_column_only(
    pages, comparison_of_corpora, corpus, metric
):
    """MLflow compares two runs of the system base, one on each corpus, in two columns.

    A metric such as bleu/news-en-de/first only has a value for runs on its corpus. Otherwise the
    user would compare scores on different test sets.
    """
    scores = read_json(pages.root / "results/base" / corpus / "1/scores.json")["first"]
    expected_score = value_of(scores, metric)

    cells = comparison_of_corpora.scores[f"{metric}/{corpus}/first"]

    for column_corpus, cell in zip(comparison_of_corpora.corpora, cells, strict=True):
        if column_corpus == corpus:
            assert float(cell) == pytest.approx(expected_score, abs=0.005)
        else:
            assert cell == "NaN"


def test_a_scatter_plot_of_mlflow_shows_bleu_against_label_smoothing(pages, mlserver):
    """The user searches for three systems with different label smoothings and presses Compare.

    The expected points are read by MLflow's own client.
    """
    label_smoothing = "train.label_smoothing"
    bleu = "bleu/news-en-de/first"
    expected_points = []
    _, runs = runs_in(mlserver.uri, EXPERIMENT)
    for run in runs:
        params = run.data.params
        if params["corpus"] == "news-en-de" and params["system"].startswith("smoothing-"):
            expected_points.append((float(params[label_smoothing]), run.data.metrics[bleu]))
    smoothings, bleu_values = zip(*expected_points, strict=True)
    assert len(set(smoothings)) == 3
    assert len(set(bleu_values)) == 3

    pages.search_runs("params.system LIKE 'smoothing-%' AND params.corpus = 'news-en-de'")
    pages.compare_listed_runs()
    points = pages.open_scatter_plot(label_smoothing, bleu)

    assert sorted(points) == sorted(expected_points)


@pytest.fixture
def lines_of_printed_address(pages, mlserver, monkeypatch, capsys):
    """Return the lines of the page whose address `bleuprint ui` prints."""
    pages.search_runs("")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
    show_mlflow(EXPERIMENT, 1)
    pages.browser.resize(1280)
    pages.browser.open(capsys.readouterr().out.strip())
    pages.browser.wait("document.querySelector('.js-plotly-plot')")
    return pages.text().split("\n")


def test_the_address_that_ui_prints_shows_a_section_for_each_score_and_corpus(
    lines_of_printed_address,
):
    """`bleuprint ui` prints an address of MLflow, whose page shows charts of all runs in sections.

    The text of the page has a heading for each section, such as "bleu/news-en-de (1)".
    """
    sections = []
    for line in lines_of_printed_address:
        # The number in brackets counts the charts in the section.
        if re.fullmatch(r"(bleu|chrf2)/.*-en-de( \(\d\))?", line):
            sections.append(line.partition(" ")[0])

    assert sections == [
        "bleu/4000-en-de",
        "bleu/news-en-de",
        "chrf2/4000-en-de",
        "chrf2/news-en-de",
    ]


def test_a_chart_of_the_page_that_ui_prints_has_the_whole_name_of_its_metric(
    lines_of_printed_address,
):
    assert "bleu/news-en-de/first" in lines_of_printed_address
