"""Keys of params.yaml in bleuprint 1.0: all are named at once, with what to write instead."""

import subprocess

import pytest

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from root import ROOT
from tools.settings_of_1_0 import COMMIT

PARAMS = """\
systems:
  tiny:
    train: {from: {folder: models/start}}
    over: {train.max_updates: [1, 2]}
    corpora: {news: {train: {from: {system: tiny, corpus: other}}}}
tuned:
  last: {like: tiny, train: {from: {system: tiny, corpus: news}}}
outside: {}
made_texts: {}
"""


def test_all_old_keys_are_named_at_once_with_their_lines(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    with pytest.raises(UserError) as error:
        load(path)
    old = "a key of bleuprint 1.0"
    to_start = f"{old}: to start from a system, name it at the top level"
    starts = [
        f"{path}:4: systems.tiny.over: {old}: write one system for each value",
        f"{path}:3: systems.tiny.train.from: {to_start}",
        f"{path}:5: systems.tiny.corpora.news.train.from: {to_start}",
        f"{path}:6: tuned: {old}: write its systems under systems, and name",
        f"{path}:7: tuned.last.train.from: {to_start}",
        f"{path}:8: outside: {old}: write each of its systems under systems, with about",
        f"{path}:9: made_texts: {old}: it is called synthetic now",
    ]
    lines = error.value.lines
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("recipe", "key"),
    [("fine-tune-multi30k", "tuned"), ("back-translation-phrasebook", "made_texts")],
)
def test_a_recipe_of_1_0_is_told_what_to_change(tmp_path, recipe, key):
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    show = ["git", "show", f"{COMMIT}:recipes/{recipe}.yaml"]
    text = subprocess.run(show, cwd=ROOT, check=True, capture_output=True).stdout
    (tmp_path / "params.yaml").write_bytes(text)
    with pytest.raises(UserError) as error:
        load(tmp_path / "params.yaml")
    assert any(f": {key}: a key of bleuprint 1.0" in line for line in error.value.lines)
