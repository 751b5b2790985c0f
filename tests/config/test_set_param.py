"""-S of `dvc exp run` and of `bleuprint exp run`, compared with an edit by hand."""

import copy
import os
import subprocess
from pathlib import Path

import pytest
from dvc.utils import hydra
from ruamel.yaml import YAML

from bleuprint.config.experiment import load
from bleuprint.config.set_param import replace_entries
from bleuprint.runtime.errors import UserError

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
# Recipes with rows that share no section, in which DVC sets the value of one row alone.
UNSHARED = {"annotated-iwslt", "annotated-multi30k", "iwslt14-de-en"}
IDENTITY = {**os.environ, "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@localhost"}
IDENTITY |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@localhost"}
UNSHARED |= {"multi30k-cpu", "slides-tanaka", "toy-sentence"}


@pytest.fixture
def path(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path / "params.yaml"


def commit(path, text):
    path.write_text(text)
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    for command in (("add", "."), (*identity, "commit", "-qm", "a commit")):
        subprocess.run(["git", *command], check=True, cwd=path.parent)


def plain(path):
    """The document, in which no two entries share a mapping."""
    return copy.deepcopy(hydra.to_omegaconf(YAML().load(path.read_text())))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_one_row_is_set_by_bleuprint_and_refused_by_dvc_where_rows_share(recipe, path, monkeypatch):
    commit(path, recipe.read_text())
    expected = plain(path)
    row = list(expected["systems"])[-1]
    expected["systems"][row]["model"]["dropout"]["residual"] = 0.37
    override = [f"systems.{row}.model.dropout.residual=0.37"]

    hydra.apply_overrides(path, override)
    if recipe.stem in UNSHARED:
        load(path)
        assert plain(path) == expected
    else:
        with pytest.raises(UserError, match=r"rewritten by dvc exp run -S, .* share [a-z_]+"):
            load(path)

    path.write_text(recipe.read_text())
    monkeypatch.setattr(hydra, "merge_dicts", replace_entries)
    hydra.apply_overrides(path, override)
    assert plain(path) == expected
    load(path)


def test_dvc_loses_a_value_and_sets_that_of_another_row(path):
    """What is refused: the default experiment's tiny and small share `dropout`."""
    text = next(each for each in RECIPES if each.stem == "phrasebook").read_text()
    for row, changed in (("tiny", []), ("small", ["tiny", "small"])):
        path.write_text(text)
        before = plain(path)["systems"]
        hydra.apply_overrides(path, [f"systems.{row}.model.dropout.residual=0.37"])
        after = plain(path)["systems"]
        assert [name for name in before if after[name] != before[name]] == changed


def test_an_edit_by_hand_is_not_refused(path):
    for recipe in RECIPES:
        commit(path, recipe.read_text())
        path.write_text(recipe.read_text().replace("seeds: [1", "seeds: [7"))
        load(path)


def test_an_edit_of_a_file_in_the_format_of_dvc_is_not_refused(path):
    """An edit by hand may keep the format, so that nothing can be concluded from it."""
    commit(path, next(each for each in RECIPES if each.stem == "phrasebook").read_text())
    hydra.apply_overrides(path, ["seeds=[1]"])
    text = path.read_text()
    assert "<<: *" in text
    with pytest.raises(UserError):
        load(path)
    commit(path, text)
    path.write_text(text.replace("label_smoothing: 0.1", "label_smoothing: 0.2"))
    load(path)


@pytest.mark.parametrize("damaged", [b"systems: [", b"experiment: \xff\n"])
def test_the_last_commit_is_no_yaml(path, damaged):
    commit(path, "")
    path.write_bytes(damaged)
    subprocess.run(["git", "commit", "-qam", "x"], check=True, cwd=path.parent, env=IDENTITY)
    path.write_text(RECIPES[0].read_text())
    hydra.apply_overrides(path, ["seeds=[1]"])
    with pytest.raises(UserError, match="rewritten by dvc exp run -S"):
        load(path)


def test_a_file_that_git_does_not_have_is_not_compared(path):
    path.write_text(RECIPES[0].read_text())
    hydra.apply_overrides(path, ["seeds=[1]"])
    load(path)
