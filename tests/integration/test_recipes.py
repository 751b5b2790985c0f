"""Recipes name files that can be downloaded and verified, and settings of papers and courses."""

import hashlib
import re
import shutil
from typing import get_args
from urllib.parse import urlsplit

import pytest
import torch
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

from bleuprint.config.embedded_texts import EMBEDDED
from bleuprint.config.experiment import load_settings
from bleuprint.config.text_formats import Format
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.report.citations import citations
from bleuprint.report.published import literature
from bleuprint.rules import CHECKS, EDITS
from bleuprint.training.lr_schedule import learning_rate
from recipes import SETTINGS
from requirements import MIRROR, mirror_has, mirror_path, needs
from root import ROOT

CORPORA_PAGE = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
PREPARATION_PAGE = (ROOT / "docs" / "preparation.md").read_text(encoding="utf-8")
for_each_recipe = pytest.mark.parametrize("name", SETTINGS)


def downloaded_files():
    """Return the files that the recipes download, not those on disk or in the package."""
    files = []
    for settings in SETTINGS.values():
        for corpus in settings.corpora.values():
            for file in corpus.files.files_by_name().values():
                if file.path is None and file.url not in EMBEDDED:
                    files.append(file)
    assert files
    return files


def downloaded_urls():
    """Return the addresses from which the recipes download, mirrors included."""
    urls = []
    for file in downloaded_files():
        urls.append(file.url)
        urls.extend(file.mirrors)
    return urls


@for_each_recipe
def test_a_recipe_keeps_its_values_when_dvc_writes_it_again(tmp_path, name):
    """`dvc exp run -S KEY=VALUE` writes params.yaml with other line breaks and quotes.

    So a value such as `on` or `1e-3` could become another one. `apply_overrides` is the function
    that DVC uses; SETTINGS contains the settings of each recipe.
    """
    path = tmp_path / "params.yaml"
    shutil.copy(ROOT / "recipes" / f"{name}.yaml", path)

    apply_overrides(path, [f"experiment={name}"])

    assert load_settings(path, ROOT) == SETTINGS[name]


def test_files_on_github_are_downloaded_by_their_commit():
    """The file of a branch may change."""
    for url in downloaded_urls():
        if urlsplit(url).hostname == "raw.githubusercontent.com":
            assert re.search(r"/[0-9a-f]{40}/", url), url


def test_recipes_know_the_sha256_of_all_downloads_except_three():
    """The publishers of these three files publish no checksum; the first download records it."""
    urls_without_sha256 = {file.url for file in downloaded_files() if file.sha256 is None}

    assert urls_without_sha256 == {
        "https://www.statmt.org/wmt14/test-full.tgz",
        "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
        "https://wit3.fbk.eu/archive/2016-01/texts/de/en/de-en.tgz",
    }


def test_a_file_with_a_sha256_names_its_size():
    for file in downloaded_files():
        assert (file.size is None) == (file.sha256 is None), file.url


def test_files_are_downloaded_by_https():
    for url in downloaded_urls():
        assert re.fullmatch(r"https://[a-z0-9.-]+/[\w./~-]+", url), url


@needs(MIRROR, mirror_has("raw.githubusercontent.com"))
def test_published_files_have_the_sha256_and_size_that_recipes_name():
    """BLEUPRINT_MIRROR is a folder with copies of some published files, laid out as HOST/PATH.

    A wrong checksum in a recipe would make every download fail.
    """
    file_by_url = {file.url: file for file in downloaded_files()}

    checked_files = 0
    for url, file in file_by_url.items():
        address = urlsplit(url)
        copy = mirror_path(f"{address.hostname}{address.path}")
        if copy.is_file():
            content = copy.read_bytes()
            assert hashlib.sha256(content).hexdigest() == file.sha256
            assert len(content) == file.size
            checked_files += 1

    assert checked_files > 0


for_wmt14_corpora = pytest.mark.parametrize("corpus", ["wmt14-en-de", "wmt14-en-fr"])


@for_wmt14_corpora
def test_the_report_compares_wmt14_with_table_2_of_the_paper(corpus):
    """Only results on the paper's corpora and test sets are compared with its Table 2."""
    test_sets = SETTINGS["table2"].corpora[corpus].files.tests

    assert literature.is_in_table_2(corpus, *test_sets)


@pytest.mark.parametrize(
    ("corpus", "residual_dropout"), [("wmt14-en-de", 0.3), ("wmt14-en-fr", 0.1)]
)
def test_the_big_model_on_wmt14_has_the_settings_of_the_paper(corpus, residual_dropout):
    """Table 3 of "Attention Is All You Need"; section 6.1 gives 0.1 as dropout for French."""
    big = SETTINGS["table2"].trained_systems_on(corpus)["big"]

    assert big.model.d_model == 1024
    assert big.model.dropout.residual == residual_dropout
    assert big.train.max_updates == 300_000


@for_wmt14_corpora
@pytest.mark.parametrize(
    ("name", "averaged", "seconds_per_update"),
    [pytest.param("base", 5, 0.4, id="base"), pytest.param("big", 20, 1.0, id="big")],
)
def test_models_on_wmt14_average_checkpoints_of_ten_minutes(
    corpus, name, averaged, seconds_per_update
):
    """The paper wrote a checkpoint every ten minutes, and averaged the last 5 or 20 (section 6.1).

    One of its updates took 0.4 seconds, or 1.0 seconds for the big model.
    """
    system = SETTINGS["table2"].trained_systems_on(corpus)[name]

    updates_in_ten_minutes = 10 * 60 / seconds_per_update
    assert system.train.save_interval == updates_in_ten_minutes
    assert system.average.last == averaged


@for_wmt14_corpora
def test_learning_rates_on_wmt14_peak_after_4000_updates_as_in_the_paper(corpus):
    """Formula 3 of the paper at the end of the warm-up: (d_model * 4000)^-0.5."""
    warmup_updates = 4000

    for system in SETTINGS["table2"].trained_systems_on(corpus).values():
        rate = learning_rate(system.train.lr_schedule, warmup_updates, system.model.d_model)

        published_rate = (system.model.d_model * warmup_updates) ** -0.5
        assert rate == pytest.approx(published_rate, rel=1e-5)


def test_the_course_has_as_many_parameters_as_its_notebook_prints():
    """The notebook prints 9,233,200 trainable parameters, with its vocabulary sizes.

    On the device "meta", PyTorch builds a model without allocating weights.
    """
    course = SETTINGS["course-multi30k"].system_settings("course")
    source_vocabulary_size = 8015
    target_vocabulary_size = 6192

    with torch.device("meta"):
        model = Transformer(course.model, source_vocabulary_size, target_vocabulary_size)

    assert count_parameters(model) == 9_233_200


@pytest.mark.parametrize(
    ("recipe", "system", "batches_per_update", "factor", "warmup_steps"),
    [
        pytest.param("copy", "edition-2022", 1, 0.5, 400, id="copy"),
        pytest.param("annotated-multi30k", "annotated", 10, 1.0, 3000, id="Multi30k"),
        pytest.param("annotated-iwslt", "annotated", 1, 1, 2000, id="IWSLT"),
    ],
)
@pytest.mark.parametrize("update", [1, 7, 200, 900])
def test_learning_rates_are_those_of_the_annotated_transformer(
    recipe, system, batches_per_update, factor, warmup_steps, update
):
    """The Annotated Transformer counts the steps of its schedule in batches, bleuprint in updates.

    An update has 10 batches in its Multi30k example and 1 elsewhere. Its d_model is 512.
    """
    settings = SETTINGS[recipe].system_settings(system)

    rate = learning_rate(settings.train.lr_schedule, update, settings.model.d_model)

    step = update * batches_per_update
    published_rate = factor * 512**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    assert rate == pytest.approx(published_rate, rel=1e-5)


@for_each_recipe
def test_a_recipe_cites_its_sources(name):
    """`citations` also refuses entries that are not valid BibTeX."""
    assert citations(SETTINGS[name])


def test_the_examples_of_the_page_about_corpora_load_together(tmp_path):
    """The first example of docs/corpora.md is a corpus; all others except one are training texts.

    A reader may add all of them to the corpus.
    """
    first_block, *blocks = re.findall(
        r"^```yaml\n(.*?)^```$", CORPORA_PAGE, re.DOTALL | re.MULTILINE
    )
    yaml = YAML(typ="safe", pure=True)
    params = yaml.load(ROOT / "params.yaml")
    params["corpora"] = yaml.load(first_block)
    training_texts = params["corpora"]["mine-de-en"]["files"]["train"]
    for block in blocks:
        example = yaml.load(block)
        if "synthetic" not in example:
            training_texts.update(example)

    path = tmp_path / "params.yaml"
    yaml.dump(params, path)
    loaded_texts = load_settings(path).corpora["mine-de-en"].files.train

    named_texts = {"letters", "minutes", "web", "europarl", "nested", "news", "tatoeba"}
    assert loaded_texts.keys() == named_texts
    assert loaded_texts["letters"].columns == (2, 1)  # of the second example, not the first


def test_the_page_about_corpora_names_every_format():
    named_formats = re.findall(r"^\| `([a-z-]+)` \| `(?:source|both)`", CORPORA_PAGE, re.MULTILINE)

    assert set(named_formats) == set(get_args(Format))


def test_the_page_about_preparation_names_every_rule_in_the_order_in_which_they_run():
    """Rules are edits, which run first, and checks. docs/preparation.md has a table row for each.

    A row begins with the rule as in params.yaml: | `length: {min: 1, max: 100}` |.
    """
    rule_tables, _, _ = PREPARATION_PAGE.partition("## Known faults")

    named_rules = re.findall(r"^\| `([a-z_]+): \{", rule_tables, re.MULTILINE)

    assert named_rules == [*EDITS, *CHECKS]


def test_the_page_about_corpora_names_the_text_of_every_recipe():
    """docs/corpora.md has a table of texts; the first cell of a row names the recipes that use it.

    SETTINGS contains the settings of each recipe by name.
    """
    table = CORPORA_PAGE.split("## The recipes' corpora")[1]
    first_cells = re.findall(r"^\|(.*?)\|", table, re.MULTILINE)

    named_recipes = re.findall(r"`([\w-]+)`", "".join(first_cells))

    assert sorted(named_recipes) == sorted(SETTINGS)
