"""The commands and examples of README.md work, and the files that it names exist."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bleuprint.config.experiment import load
from bleuprint.config.optimization import LrSchedule, Optimizer
from bleuprint.config.system import Average, Dropout, Keep, Model, Train
from root import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language; fences open and close by turns."""
    parts = re.split(r"^```(.*)\n", README, flags=re.MULTILINE)
    fenced = zip(parts[1::4], parts[2::4], strict=True)
    return [text for name, text in fenced if name == language]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z][a-z-]*)", README))))
def test_make_targets_are_there(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_recipes_are_listed_and_load() -> None:
    there = {path.stem for path in (ROOT / "recipes").glob("*.yaml")}
    assert set(re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE)) == there
    assert set(re.findall(r"make recipe NAME=([\w-]+)", README)) <= there
    for name in there:
        load(ROOT / "recipes" / f"{name}.yaml")


def test_the_default_experiment_is_a_recipe() -> None:
    assert (ROOT / "recipes" / "phrasebook.yaml").read_text(encoding="utf-8") == PARAMS


@pytest.mark.parametrize(("key", "value"), re.findall(r"-S ([\w.-]+)=(\S+)", README))
def test_settings_on_the_command_line_exist(key: str, value: str) -> None:
    entry = YAML(typ="safe").load(PARAMS)
    for part in key.split("."):
        entry = entry[part]
    assert not isinstance(entry, dict), value


PHRASEBOOK = ("phrasebook-en-de", "phrasebook-en-fr")


def test_examples_of_settings_load(tmp_path: Path) -> None:
    row, by_corpus, corpus = blocks("yaml")
    with_corpus = PARAMS.replace("# The first system is", f"{corpus}\n# The first system is")
    path = tmp_path / "params.yaml"
    end = "\n# Published scores"
    assert end in PARAMS
    path.write_text(with_corpus.replace(end, f"\n{row}{by_corpus}{end}"), encoding="utf-8")
    settings = load(path)
    assert settings.systems["small-smoother"].train.label_smoothing == 0.2
    assert settings.systems["small-smoother"].model == settings.systems["small"].model
    own = {corpus: settings.system_on("small-by-corpus", corpus) for corpus in PHRASEBOOK}
    assert [system.train.label_smoothing for system in own.values()] == [0.1, 0]
    assert "small-by-corpus" not in settings.systems_on("mine-de-en")
    mine = settings.corpora["mine-de-en"]
    assert (mine.source, mine.files.valid) == ("de", {})


def test_the_tree_names_what_is_there() -> None:
    tree = next(block for block in blocks("") if "stages/" in block)
    for name in re.findall(r"^[\w./]+\.yaml|[\w./]+/ ", tree, re.MULTILINE):
        assert (ROOT / name.strip()).exists(), name
    packages = " ".join(re.findall(r"^  ((?:\w+ )+) +", tree, re.MULTILINE)).split()
    folders = (ROOT / "src" / "bleuprint").glob("*/__init__.py")
    assert sorted(packages) == sorted(path.parent.name for path in folders)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        name, _, anchor = target.partition("#")
        assert name.startswith("https://") or (ROOT / name).exists(), target
        if anchor:
            heads = re.findall("(?m)^#+ (.*)", (ROOT / name).read_text(encoding="utf-8"))
            assert anchor in [head.lower().replace(" ", "-") for head in heads], target


@pytest.mark.parametrize("kind", [Model, Train, Dropout, Optimizer, Keep, LrSchedule, Average])
def test_every_setting_of_a_system_is_explained(kind: type) -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert {field.name for field in fields(kind)} <= named


def test_the_page_that_is_shown_is_of_the_committed_reports() -> None:
    page = (ROOT / "reports" / "phrasebook" / "index.html").read_text(encoding="utf-8")
    records = json.loads((ROOT / "reports" / "results.json").read_text(encoding="utf-8"))
    for record in records:
        for name in ("training_sha256", "settings_sha256", "code_sha256"):
            assert record[name][:12] in page
        assert f"{record['bleu']:.1f} [{record['bleu_low']:.1f}" in page
