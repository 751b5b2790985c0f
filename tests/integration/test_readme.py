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
EXPERIMENTS_PAGE = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
# Settings in commands such as `dvc exp run -S ++systems.tiny.seed=1,2`: name and first value. With
# several values, DVC runs an experiment for each.
OVERRIDES = re.findall(r"-S '?(\+\+[\w.-]+=[^\s',`]+)", README + EXPERIMENTS_PAGE)


def code_blocks(page, language):
    """Return the code blocks of a page that are marked as a language, such as yaml."""
    blocks = []
    # Odd parts are the marks of fences; an opening and a closing fence follow each other.
    parts = re.split(r"^```(.*)\n", page, flags=re.MULTILINE)
    for mark, text in zip(parts[1::4], parts[2::4], strict=True):
        if mark == language:
            blocks.append(text)
    return blocks


def write_params(folder, text):
    """Write a params.yaml and the corpora that it may name to a folder; return its path."""
    shutil.copytree(ROOT / "corpora", folder / "corpora")
    path = folder / "params.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def committed_bleu_rows(recipe):
    """Return the BLEU scores of whole test sets in a committed report.

    Args:
        recipe: The name of the recipe; "" stands for the default experiment.
    """
    content = json.loads((ROOT / "reports" / recipe / "results.json").read_text("utf-8"))
    rows = pd.DataFrame(content["metrics"])
    return rows[(rows.group == "") & (rows.metric == "bleu")]


def table_row(page, recipe):
    """Return the row of a recipe in the tables of a page."""
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{recipe}` |")]
    return row


def test_the_documentation_sets_at_least_two_settings_on_a_command_line():
    """Otherwise the next test would run without a case."""
    assert len(OVERRIDES) >= 2


@pytest.mark.parametrize("override", OVERRIDES)
def test_a_setting_on_a_documented_command_line_changes_the_experiment(tmp_path, override):
    """OVERRIDES are found in the commands of the documentation: `dvc exp run -S ++KEY=VALUE`.

    `apply_overrides` is the function with which DVC writes them to params.yaml.
    """
    path = write_params(tmp_path, PARAMS)

    apply_overrides(path, [override])

    assert load_settings(path) != load_settings(ROOT / "params.yaml")


def test_the_readme_lists_all_recipes():
    """A row of its table has one or several recipes in the first cell: | `copy` |."""
    recipes = {path.stem for path in (ROOT / "recipes").glob("*.yaml")}

    section = README.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    listed_recipes = set()
    for first_cell in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE):
        listed_recipes.update(re.findall(r"`([\w-]+)`", first_cell))

    assert listed_recipes == recipes


def test_commands_of_the_readme_name_recipes_that_exist():
    recipes = {path.stem for path in (ROOT / "recipes").glob("*.yaml")}

    assert set(re.findall(r"make recipe NAME=([\w-]+)", README)) <= recipes


def test_the_default_experiment_is_the_recipe_phrasebook():
    assert (ROOT / "recipes" / "phrasebook.yaml").read_text(encoding="utf-8") == PARAMS


@pytest.fixture(scope="module")
def settings_with_examples(tmp_path_factory):
    """The default experiment with the systems that docs/experiments.md adds to it."""
    _, by_corpus, *_, external = code_blocks(EXPERIMENTS_PAGE, "yaml")
    (row,) = code_blocks(README, "yaml")
    path = write_params(tmp_path_factory.mktemp("examples"), f"{PARAMS}{row}{by_corpus}{external}")
    return load_settings(path)


def test_the_readme_and_the_page_about_experiments_add_the_same_first_system():
    (readme_example,) = code_blocks(README, "yaml")

    assert code_blocks(EXPERIMENTS_PAGE, "yaml")[0] == readme_example


def test_the_example_of_the_readme_changes_only_the_label_smoothing(settings_with_examples):
    smoother = settings_with_examples.system_settings("small-smoother")

    assert smoother.train.label_smoothing == 0.2
    assert smoother.model == settings_with_examples.system_settings("small").model


@pytest.mark.parametrize(
    ("corpus", "label_smoothing"), [("phrasebook-en-de", 0.1), ("phrasebook-en-fr", 0)]
)
def test_an_example_sets_the_label_smoothing_of_one_corpus(
    settings_with_examples, corpus, label_smoothing
):
    """docs/experiments.md adds the system small-by-corpus to params.yaml.

    It turns label smoothing off on the French corpus; the default is 0.1.
    """
    system = settings_with_examples.system_on("small-by-corpus", corpus)

    assert system.train.label_smoothing == label_smoothing


def test_an_example_adds_an_external_system(settings_with_examples):
    external_systems = settings_with_examples.external_systems_on("phrasebook-en-de")

    assert external_systems.keys() == {"online-a"}


@pytest.fixture(scope="module")
def documented_tree():
    """The overview of the repository's folders in docs/contributing.md."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    return next(block for block in code_blocks(page, "") if "stages/" in block)


def test_the_overview_of_folders_in_docs_contributing_names_only_what_exists(documented_tree):
    """Names of YAML files stand at the start of a line; a folder's name ends in a slash."""
    names = re.findall(r"^[\w./]+\.yaml|[\w./]+/ ", documented_tree, re.MULTILINE)
    assert names

    for name in names:
        assert (ROOT / name.strip()).exists(), name


def test_the_overview_of_folders_in_docs_contributing_names_all_packages(documented_tree):
    """Its lines about packages begin with two spaces, then one or several names."""
    init_files = (ROOT / "src" / "bleuprint").glob("*/__init__.py")
    packages = sorted(path.parent.name for path in init_files)

    starts_of_lines = re.findall(r"^  ((?:\w+ )+) +", documented_tree, re.MULTILINE)
    named_packages = sorted(" ".join(starts_of_lines).split())

    assert named_packages == packages


def test_the_readme_links_to_every_page_of_docs():
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}

    assert set(re.findall(r"\]\((docs/\w+\.md)", README)) == pages


@pytest.mark.parametrize("settings", [Model, Train, Dropout, Optimizer, LrSchedule, Average])
def test_the_page_about_training_explains_every_setting(settings):
    """The settings are the fields of a class; docs/training.md has their names in backquotes.

    A setting whose name is a keyword of Python ends in an underscore in the class.
    """
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    text_in_backquotes = " ".join(re.findall(r"`([^`]+)`", page))
    documented_words = set(re.findall(r"\w+", text_in_backquotes))

    names = {field.name.rstrip("_") for field in fields(settings)}

    assert names <= documented_words


@pytest.fixture(scope="module")
def committed_page():
    """The report page of the default experiment, which README.md links to."""
    return (ROOT / "reports" / "phrasebook" / "index.html").read_text(encoding="utf-8")


def test_the_committed_html_report_names_the_commits_of_the_committed_trainings(committed_page):
    """reports/costs.csv records the commit with which each training was run."""
    commits = pd.read_csv(ROOT / "reports" / "costs.csv").commit.unique()
    assert len(commits) > 0

    for commit in commits:
        assert commit in committed_page


def test_the_committed_html_report_shows_the_committed_scores_and_intervals(committed_page):
    """The report shows BLEU and its confidence interval in the form 54.9 [54.3, 55.5]."""
    visible_text = " ".join(re.sub("<[^>]*>", " ", committed_page).split())  # without HTML tags
    bleu_rows = committed_bleu_rows("")
    assert len(bleu_rows) > 0

    for row in bleu_rows.itertuples():
        assert f"{row.value:.1f} [{row.ci_low:.1f}" in visible_text


def test_the_tables_of_the_readme_show_the_committed_reports():
    """After a new report: python -m tools.readme_tables."""
    assert readme_tables.fill_tables(README, ROOT) == README


@pytest.fixture
def readme_of_another_score(tmp_path):
    """The README of a project with one report, copy, in which edition-2018 has 12.34 BLEU."""
    for name in ("recipes", "corpora", "reports/copy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    results = tmp_path / "reports" / "copy" / "results.json"
    bleu_row = re.compile(
        r'("system": "edition-2018", .*"metric": "bleu", "group": "", .*"value": )[\d.]+'
    )
    results.write_text(bleu_row.sub(r"\g<1>12.34", results.read_text("utf-8")), "utf-8")
    return readme_tables.fill_tables(README, tmp_path)


def test_a_new_score_in_a_report_gets_into_the_table_of_the_readme(readme_of_another_score):
    assert "| edition-2018 12.3 ± 0.0;" in table_row(readme_of_another_score, "copy")


def test_a_recipe_without_a_report_keeps_its_row_in_the_readme(readme_of_another_score):
    row = table_row(readme_of_another_score, "multi30k-cpu")

    assert row in README.splitlines()


def test_the_base_model_of_table_3_has_more_than_85_bleu_as_the_documentation_says():
    """The scores are the committed ones of the recipe table3-phrasebook."""
    rows = committed_bleu_rows("table3-phrasebook")
    base_rows = rows[rows.system == "base"]
    assert len(base_rows) > 0

    assert (base_rows.value > 85).all()


def test_half_the_layers_of_table_3_are_significantly_worse_as_the_documentation_says():
    """The recipe table3-phrasebook compares the system C-half-layers with the baseline."""
    rows = committed_bleu_rows("table3-phrasebook").groupby("system")
    half_layers = rows.first().loc["C-half-layers"]

    assert half_layers.difference < 0
    assert half_layers.p < 0.05
