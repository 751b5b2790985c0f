"""Recipes name files that can be downloaded and verified, and settings of papers and courses."""

import hashlib
import re
from typing import get_args
from urllib.parse import urlsplit

import pytest
import torch
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML

from bleuprint.config.corpus_files import EMBEDDED, Format
from bleuprint.config.experiment import load_settings
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.report.citations import citations
from bleuprint.report.published import literature
from bleuprint.rules import CHECKS, EDITS
from bleuprint.training.lr_schedule import learning_rate
from recipes import SETTINGS
from requirements import MIRROR, mirror_has, mirror_path, needs
from root import ROOT

RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))

# What no sum is published of; the first download of these records one.
WITHOUT_SUM = {
    "https://www.statmt.org/wmt14/test-full.tgz",
    "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
    "https://wit3.fbk.eu/archive/2016-01/texts/de/en/de-en.tgz",
}
DOCS = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
PREPARATION = (ROOT / "docs" / "preparation.md").read_text(encoding="utf-8")
each_recipe = pytest.mark.parametrize("name", SETTINGS)


def files(settings):
    texts = [text for corpus in settings.corpora.values() for text in corpus.files.texts().values()]
    sides = [file for text in texts for file in text.files]
    return [file for file in sides if file.path is None and file.url not in EMBEDDED]


def every_file():
    return [file for settings in SETTINGS.values() for file in files(settings)]


@each_recipe
def test_dvc_writes_a_recipe_again_with_its_values(tmp_path, name):
    """As `dvc exp run -S` does: lines are wrapped and quotes are lost, but no value changes."""
    (path := tmp_path / "params.yaml").write_bytes((ROOT / f"recipes/{name}.yaml").read_bytes())
    apply_overrides(path, [f"experiment={name}"])
    assert load_settings(path, ROOT) == SETTINGS[name]


def test_urls_are_pinned_to_a_commit_or_by_a_sum():
    unpinned = set()
    for file in every_file():
        for url in (file.url, *file.mirrors):
            if urlsplit(url).hostname == "raw.githubusercontent.com":
                assert re.search(r"/[0-9a-f]{40}/", url), url
        if file.sha256 is None:
            unpinned.add(file.url)
        assert (file.size is None) == (file.sha256 is None)
    assert unpinned == WITHOUT_SUM


def test_urls_are_of_the_web():
    found = every_file()
    assert found
    for file in found:
        for url in (file.url, *file.mirrors):
            assert re.fullmatch(r"https://[a-z0-9.-]+/[\w./~-]+", url), url


@needs(MIRROR, mirror_has("raw.githubusercontent.com"))
def test_sums_and_sizes_are_those_of_the_mirror():
    there = 0
    for file in {file.url: file for file in every_file()}.values():
        parts = urlsplit(file.url)
        copy = mirror_path(f"{parts.hostname}{parts.path}")
        if copy.is_file():
            published = copy.read_bytes()
            assert (hashlib.sha256(published).hexdigest(), len(published)) == (
                file.sha256,
                file.size,
            )
            there += 1
    assert there


@pytest.mark.parametrize("corpus", ["wmt14-en-de", "wmt14-en-fr"])
def test_wmt14_is_trained_as_in_the_paper(corpus):
    settings = SETTINGS["table2"]
    assert literature.is_in_table_2(corpus, *settings.corpora[corpus].files.tests)
    systems = settings.trained_systems_on(corpus)
    big = systems["big"]
    assert big.model.dropout.residual == {"wmt14-en-de": 0.3, "wmt14-en-fr": 0.1}[corpus]
    assert (big.model.d_model, big.train.max_updates) == (1024, 300_000)
    assert (systems["base"].average.last, big.average.last) == (5, 20)
    # ten minutes, in which an update took 0.4 and 1.0 seconds (section 5.2)
    assert (systems["base"].train.save_interval, big.train.save_interval) == (1500, 600)
    for system in systems.values():
        peak = (system.model.d_model * 4000) ** -0.5
        rate = learning_rate(system.train.lr_schedule, 4000, system.model.d_model)
        assert rate == pytest.approx(peak, rel=1e-5)


def test_the_course_has_as_many_parameters_as_its_notebook_prints():
    with torch.device("meta"):
        model = Transformer(SETTINGS["course-multi30k"].system_settings("course").model, 8015, 6192)
    assert count_parameters(model) == 9_233_200


@pytest.mark.parametrize(
    ("recipe", "batches", "factor", "warmup"),
    [("copy", 1, 0.5, 400), ("annotated-multi30k", 10, 1.0, 3000), ("annotated-iwslt", 1, 1, 2000)],
)
def test_learning_rates_are_those_of_the_annotated_transformer(recipe, batches, factor, warmup):
    """It steps the schedule at each of the `batches` of an update."""
    system = SETTINGS[recipe].system_settings("edition-2022" if recipe == "copy" else "annotated")
    for update in (1, 7, 200, 900):
        step = update * batches
        published = factor * 512**-0.5 * min(step**-0.5, step * warmup**-1.5)
        rate = learning_rate(system.train.lr_schedule, update, system.model.d_model)
        assert rate == pytest.approx(published, rel=1e-5)


@each_recipe
def test_check_accepts_what_a_recipe_cites(name):
    assert citations(SETTINGS[name])


def test_the_corpus_of_the_docs_loads_with_each_of_their_parts(tmp_path):
    whole, *snippets = re.findall(r"^```yaml\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    yaml = YAML(typ="safe", pure=True)
    params = yaml.load(ROOT / "params.yaml")
    params["corpora"] = yaml.load(whole)
    loaded = [yaml.load(snippet) for snippet in snippets]
    training = [each for each in loaded if "synthetic" not in each]
    files = params["corpora"]["mine-de-en"]["files"]
    files["train"].update(part for each in training for part in each.items())
    path = tmp_path / "params.yaml"
    yaml.dump(params, path)
    train = load_settings(path).corpora["mine-de-en"].files.train
    assert train.keys() == {"letters", "minutes", "web", "europarl", "nested", "news"}
    assert train["letters"].columns == (2, 1)


def test_the_docs_name_every_format_rule_and_recipe():
    assert set(re.findall(r"^\| `([a-z-]+)` \| `(?:source|both)`", DOCS, re.MULTILINE)) == set(
        get_args(Format)
    )
    tables, _, _ = PREPARATION.partition("## Known faults")
    rules = re.findall(r"^\| `([a-z_]+): \{", tables, re.MULTILINE)
    assert rules == [*EDITS, *CHECKS]
    table = DOCS.split("## The recipes' corpora")[1]
    named = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\|(.*?)\|", table, re.MULTILINE)))
    assert sorted(named) == sorted(SETTINGS)
