"""The commands and examples of README.md and docs/ work, and the files that they name exist."""

import json
import re
import shutil
from dataclasses import fields

import pandas as pd
import pytest
from dvc.utils.hydra import apply_overrides

from bleuprint.config.experiment import load_settings
from bleuprint.config.optimization import LrSchedule, Optimizer
from bleuprint.config.system import Average, Dropout, Model, Train
from root import ROOT
from tools import readme_tables

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
# The first value of each setting; with several, DVC runs an experiment for each.
OVERRIDES = re.findall(r"-S '?(\+\+[\w.-]+=[^\s',`]+)", README + EXPERIMENTS)


def blocks(page, language):
    """The fenced blocks of a language; fences open and close by turns."""
    parts = re.split(r"^```(.*)\n", page, flags=re.MULTILINE)
    fenced = zip(parts[1::4], parts[2::4], strict=True)
    return [text for name, text in fenced if name == language]


def test_some_settings_are_given_on_a_command_line():
    assert len(OVERRIDES) >= 2


def test_recipes_are_listed():
    there = {path.stem for path in (ROOT / "recipes").glob("*.yaml")}
    section = README.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)} == there
    assert set(re.findall(r"make recipe NAME=([\w-]+)", README)) <= there


def test_the_default_experiment_is_a_recipe():
    assert (ROOT / "recipes" / "phrasebook.yaml").read_text(encoding="utf-8") == PARAMS


@pytest.mark.parametrize("override", OVERRIDES)
def test_settings_on_the_command_line_exist(tmp_path, override):
    (tmp_path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    apply_overrides(tmp_path / "params.yaml", [override])
    assert load_settings(tmp_path / "params.yaml") != load_settings(ROOT / "params.yaml")


PHRASEBOOK = ("phrasebook-en-de", "phrasebook-en-fr")


def test_examples_of_settings_load(tmp_path):
    (row,) = blocks(README, "yaml")
    same_row, by_corpus, *_, external = blocks(EXPERIMENTS, "yaml")
    assert same_row == row
    path = tmp_path / "params.yaml"
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    path.write_text(f"{PARAMS}{row}{by_corpus}{external}", encoding="utf-8")
    settings = load_settings(path)
    assert settings.system_settings("small-smoother").train.label_smoothing == 0.2
    assert (
        settings.system_settings("small-smoother").model == settings.system_settings("small").model
    )
    assert settings.external_systems_on("phrasebook-en-de").keys() == {"online-a"}
    own = {corpus: settings.system_on("small-by-corpus", corpus) for corpus in PHRASEBOOK}
    assert [system.train.label_smoothing for system in own.values()] == [0.1, 0]


def test_the_tree_names_what_is_there():
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    tree = next(block for block in blocks(page, "") if "stages/" in block)
    names = re.findall(r"^[\w./]+\.yaml|[\w./]+/ ", tree, re.MULTILINE)
    assert names
    for name in names:
        assert (ROOT / name.strip()).exists(), name
    packages = " ".join(re.findall(r"^  ((?:\w+ )+) +", tree, re.MULTILINE)).split()
    folders = (ROOT / "src" / "bleuprint").glob("*/__init__.py")
    assert sorted(packages) == sorted(path.parent.name for path in folders)


def test_readme_names_every_page_of_docs():
    assert set(re.findall(r"\]\((docs/\w+\.md)", README)) == set(DOCS)


@pytest.mark.parametrize("kind", [Model, Train, Dropout, Optimizer, LrSchedule, Average])
def test_every_setting_of_a_system_is_explained(kind):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert {field.name.rstrip("_") for field in fields(kind)} <= named


def test_the_page_that_is_shown_is_of_the_committed_reports():
    page = (ROOT / "reports" / "phrasebook" / "index.html").read_text(encoding="utf-8")
    commits = pd.read_csv(ROOT / "reports" / "costs.csv").commit.unique()
    assert len(commits) and all(commit in page for commit in commits)
    text = " ".join(re.sub("<[^>]*>", " ", page).split())
    scores = _bleu("")
    assert len(scores)
    for bleu in scores.itertuples():
        assert f"{bleu.value:.1f} [{bleu.ci_low:.1f}" in text


def test_its_tables_are_made_of_the_reports():
    """After a new report: python -m tools.readme_tables."""
    assert readme_tables.fill_tables(README, ROOT) == README


def test_a_table_shows_what_a_report_says(tmp_path):
    """Of another score, that one; of a report that is not there, the line as it is."""
    for name in ("recipes", "corpora"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "reports" / "copy", tmp_path / "reports" / "copy")
    results = tmp_path / "reports" / "copy" / "results.json"
    text = results.read_text("utf-8")
    bleu = re.compile(
        r'("system": "edition-2018", .*"metric": "bleu", "group": "", .*"value": )[\d.]+'
    )
    results.write_text(bleu.sub(r"\g<1>12.34", text), "utf-8")
    filled = readme_tables.fill_tables(README, tmp_path).splitlines()
    (line,) = (line for line in filled if line.startswith("| `copy` |"))
    assert "| edition-2018 12.3 ± 0.0;" in line
    (other,) = (line for line in filled if line.startswith("| `multi30k-cpu` |"))
    assert other in README.splitlines()


def test_claims_of_table_3_hold():
    """Base is above 85 BLEU, and the row that is named is worse."""
    rows = _bleu("table3-phrasebook")
    systems = rows.groupby("system")
    base = rows[rows.system == "base"]
    assert len(base)
    assert (base.value > 85).all()
    worse = (systems.difference.first() < 0) & (systems.p.first() < 0.05)
    assert "C-half-layers" in set(worse[worse].index)


def _rows(recipe):
    content = json.loads((ROOT / "reports" / recipe / "results.json").read_text("utf-8"))
    rows = pd.DataFrame(content["metrics"])
    return rows[rows.group == ""]


def _bleu(recipe):
    rows = _rows(recipe)
    return rows[rows.metric == "bleu"]
