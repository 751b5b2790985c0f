"""Our runs on MLflow's own pages, in a browser."""

import pytest

from bleuprint.config.paths import Cell
from bleuprint.runtime.files import read_json
from bleuprint.tracking.sync import sync
from measuring import value_of
from mlservers import write_project

pytestmark = pytest.mark.slow

CELLS = [Cell(system, "news-en-de", 1) for system in ("tiny", "small")]


@pytest.fixture(scope="module")
def shown(mlserver, tmp_path_factory):
    """A project whose results the server has."""
    root = tmp_path_factory.mktemp("shown")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("MLFLOW_TRACKING_URI", mlserver.uri)
        list(sync(write_project(root, seeds=(1,))))
    yield root


def wait_for(browser, text):
    browser.wait("document.body.innerText.includes(arguments[0])", text)


def click(browser, path):
    """Click what an XPath finds, once it is there."""
    from selenium.webdriver.support.expected_conditions import element_to_be_clickable
    from selenium.webdriver.support.ui import WebDriverWait

    wait = WebDriverWait(browser.driver, 30)
    found = wait.until(element_to_be_clickable(("xpath", path)), path)
    found.click()


def bleu(root, cell):
    scores = read_json(root / cell.results / "scores.json")["first"]
    return float(value_of(scores, "bleu") or 0)


def test_two_runs_are_opened_selected_and_compared(browser, shown, mlserver, tmp_path):
    browser.resize(1600, 1000)
    browser.open(f"{mlserver.uri}/#/experiments")
    click(browser, "//a[contains(., 'trial_run')]")
    click(browser, "//button[contains(., 'Got it')]")  # of what MLflow does with language models
    click(browser, "//*[text()='Model training']")
    for cell in CELLS:
        name = " ".join(map(str, cell))
        wait_for(browser, name)
        row = f"//*[@role='row'][.//a[contains(., '{name}')]]"
        click(browser, f"{row}//*[contains(@class, 'ag-checkbox-input-wrapper')]")
    click(browser, "//button[@data-testid='runs-compare-button']")
    wait_for(browser, "Comparing 2 Runs from 1 Experiment")
    browser.screenshot(tmp_path / "compare.png")
    text = browser.script("return document.body.innerText")
    shown_metrics = text[text.index("\nMetrics\n") : text.index("\nArtifacts\n")]
    assert "bleu/news-en-de/first" in shown_metrics and "valid/loss" in shown_metrics
    for cell in CELLS:
        assert f"{bleu(shown, cell):.4g}" in shown_metrics
    assert_only_the_server_was_requested(browser, mlserver)


def assert_only_the_server_was_requested(browser, mlserver):
    assert all(address.startswith(f"{mlserver.uri}/") for address in browser.requests())
