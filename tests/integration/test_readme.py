"""The commands and examples of README.md and docs/ work, and the files that they name exist."""

import json
import re
import shutil
from dataclasses import fields

import pandas as pd
import pytest

from bleuprint.config.experiment import load
from bleuprint.config.optimization import LrSchedule, Optimizer
from bleuprint.config.system import Average, Dropout, Keep, Model, Train
from bleuprint.scoring.bleu_variants import VARIANTS
from root import ROOT

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")


def blocks(page, language):
    """The fenced blocks of a language; fences open and close by turns."""
    parts = re.split(r"^```(.*)\n", page, flags=re.MULTILINE)
    fenced = zip(parts[1::4], parts[2::4], strict=True)
    return [text for name, text in fenced if name == language]


def test_recipes_are_listed_and_load():
    there = {path.stem for path in (ROOT / "recipes").glob("*.yaml")}
    section = README.partition("\n## Recipes\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`([\w-]+)`", cell)} == there
    assert set(re.findall(r"make recipe NAME=([\w-]+)", README)) <= there
    for name in there:
        load(ROOT / "recipes" / f"{name}.yaml")


def test_the_default_experiment_is_a_recipe():
    assert (ROOT / "recipes" / "phrasebook.yaml").read_text(encoding="utf-8") == PARAMS


@pytest.mark.parametrize("override", re.findall(r"-S (\+\+[\w.-]+=\S+)`", README + EXPERIMENTS))
def test_settings_on_the_command_line_exist(tmp_path, override):
    from dvc.utils.hydra import apply_overrides

    (tmp_path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    apply_overrides(tmp_path / "params.yaml", [override])
    assert load(tmp_path / "params.yaml") != load(ROOT / "params.yaml")


PHRASEBOOK = ("phrasebook-en-de", "phrasebook-en-fr")


def test_examples_of_settings_load(tmp_path):
    (row,) = blocks(README, "yaml")
    same_row, by_corpus, *_, outside = blocks(EXPERIMENTS, "yaml")
    assert same_row == row
    path = tmp_path / "params.yaml"
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    path.write_text(f"{PARAMS}{row}{by_corpus}{outside}", encoding="utf-8")
    settings = load(path)
    assert settings.system("small-smoother").train.label_smoothing == 0.2
    assert settings.system("small-smoother").model == settings.system("small").model
    assert settings.outside_on("phrasebook-en-de").keys() == {"online-a"}
    own = {corpus: settings.system_on("small-by-corpus", corpus) for corpus in PHRASEBOOK}
    assert [system.train.label_smoothing for system in own.values()] == [0.1, 0]


def test_the_tree_names_what_is_there():
    tree = next(block for block in blocks(README, "") if "stages/" in block)
    for name in re.findall(r"^[\w./]+\.yaml|[\w./]+/ ", tree, re.MULTILINE):
        assert (ROOT / name.strip()).exists(), name
    packages = " ".join(re.findall(r"^  ((?:\w+ )+) +", tree, re.MULTILINE)).split()
    folders = (ROOT / "src" / "bleuprint").glob("*/__init__.py")
    assert sorted(packages) == sorted(path.parent.name for path in folders)


def test_readme_is_short():
    assert len(README.splitlines()) <= 180


def test_readme_names_every_page_of_docs():
    assert set(re.findall(r"\]\((docs/\w+\.md)", README)) == set(DOCS)


@pytest.mark.parametrize("kind", [Model, Train, Dropout, Optimizer, Keep, LrSchedule, Average])
def test_every_setting_of_a_system_is_explained(kind):
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert {field.name.rstrip("_") for field in fields(kind)} <= named


def test_the_page_that_is_shown_is_of_the_committed_reports():
    page = (ROOT / "reports" / "phrasebook" / "index.html").read_text(encoding="utf-8")
    records = json.loads((ROOT / "reports" / "results.json").read_text(encoding="utf-8"))
    for record in records["cells"]:
        for name in ("training_sha256", "settings_sha256"):
            assert record[name][:12] in page
    for bleu in _bleu("").itertuples():
        assert f"{bleu.value:.1f} [{bleu.low:.1f}" in page


def _bleu(recipe):
    content = json.loads((ROOT / "reports" / recipe / "results.json").read_text("utf-8"))
    measures = pd.DataFrame(content["measures"])
    return measures[(measures.measure == "bleu") & (measures.group == "")]


@pytest.mark.parametrize("recipe", ["multi30k-cpu", "annotated-multi30k", "slides-tanaka"])
def test_scores_of_the_recipes_table_are_those_of_their_reports(recipe):
    (row,) = re.findall(rf"^\| `{recipe}` .*", README, re.MULTILINE)
    scores = [f"{r.value:.1f} [{r.low:.1f}, {r.high:.1f}]" for r in _bleu(recipe).itertuples()]
    named = re.findall(r"[\d.]+ \[[\d.]+, [\d.]+\]", row)
    assert named and set(named) <= set(scores)


def test_scores_of_table_2_are_those_of_its_report():
    records = _bleu("table2-multi30k")
    for system, found in records[records.test == "flickr2016"].groupby("system"):
        (row,) = re.findall(rf"^\| {system} .*", README, re.MULTILINE)
        for record in found.itertuples():
            assert f" {record.value:.1f} [{record.low:.1f}, {record.high:.1f}]" in row


def test_differences_of_the_ablations_are_those_of_their_reports():
    """And the claim of table 3: base is above 85 BLEU, and rows that are named are worse."""
    for recipe, names in {
        "table3-phrasebook": ("A-1-head", "B-quarter-d_k", "C-half-layers"),
        "ablations-phrasebook": ("rotary-positions", "swiglu", "pre-norm"),
    }.items():
        (row,) = re.findall(rf"^\| `{recipe}` .*", README, re.MULTILINE)
        differences = _bleu(recipe).groupby("system").difference.first()
        named = re.findall(r"[+-][\d.]+\d", row)
        assert named == [f"{differences[name]:+.1f}" for name in names]
    records = _bleu("table3-phrasebook")
    systems = records.groupby("system")
    base = systems.value.agg(["mean", "std"]).loc["base"]
    assert f"base {base['mean']:.1f} ± {base['std']:.1f};" in README
    assert (records[records.system == "base"].value > 85).all()
    worse = (systems.difference.first() < 0) & (systems.p.first() < 0.05)
    assert {"A-1-head", "B-quarter-d_k", "C-half-layers"} == set(worse[worse].index)
    ablated = _bleu("ablations-phrasebook").groupby("system").value.max()
    assert (ablated[["no-warmup", "unscaled-embeddings"]] < 1).all()


def test_figures_of_the_course_are_those_of_its_report():
    (row,) = re.findall(r"^\| `course-multi30k` .*", README, re.MULTILINE)
    content = json.loads((ROOT / "reports/course-multi30k/results.json").read_text("utf-8"))
    of_course = [e for e in content["measures"] if e["system"] == "course" and not e["group"]]
    (perplexity,) = (e["value"] for e in of_course if e["measure"] == "perplexity")
    assert f"test perplexity {perplexity:.2f} " in row
    scores = [f"{each['value']:.1f}" for each in of_course if each["measure"] in VARIANTS]
    assert re.findall(r"([\d.]+) BLEU", row)[0] in scores
