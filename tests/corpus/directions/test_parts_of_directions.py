"""Texts of single directions as parts: `parts: {en-de-a: {}}` names the text `a` of en-de."""

import shutil
from contextlib import chdir

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.parts import (
    cleaning_of_part,
    download_part,
    filtering_of_part,
    run_step_on_part,
)
from bleuprint.corpus.steps.shard import WholeText
from bleuprint.text.parallel import TextFolder
from corpora import file_contents
from multilingual import params_with_directions, run_stage
from params import write_resolved

PARTS = "parts: {en-de-a: {}, en-fr-a: {filter: {length: {max: 30}}}}\n"


@pytest.fixture
def root_with_parts(root, tmp_path):
    """The folder of a project with the text of `root` and with two parts, after the stage filter.

    The part en-fr-a has a rule of its own, which drops no pair.
    """
    shutil.copytree(root / "inputs", tmp_path / "inputs")
    (tmp_path / "params.yaml").write_text(PARTS + params_with_directions())
    write_resolved(tmp_path)
    corpus = load_resolved_settings(tmp_path).corpus("many")
    with chdir(tmp_path):
        for part in ("en-de-a", "en-fr-a"):
            download_part("many", corpus, part, Downloads(None, tmp_path / "store", None))
            for stage, create_step in (("clean", cleaning_of_part), ("filter", filtering_of_part)):
                run_step_on_part(create_step, stage, "many", corpus, part, WholeText(), workers=1)
    for stage in ("download", "clean", "dedup", "filter"):
        run_stage(stage, tmp_path)
    return tmp_path


def test_a_part_of_a_direction_has_the_languages_of_the_direction(root_with_parts):
    part = TextFolder(root_with_parts / "data/clean/many/part-en-fr-a", "en", "fr")

    assert part.count("train") == 4


def test_texts_of_directions_as_parts_give_the_pairs_of_a_corpus_without_parts(
    root, root_with_parts
):
    """The rules of the parts are those of the corpus, or drop nothing. Test sets are held out."""
    filtered = {}
    for folder in (root, root_with_parts):
        contents = file_contents(folder / "data/filter/many")
        filtered[folder] = {path: text for path, text in contents.items() if "stamp" not in path}

    assert filtered[root_with_parts] == filtered[root]
    assert len(filtered[root]) > 6


def test_the_rules_of_a_part_belong_to_its_direction(root_with_parts):
    corpus = load_resolved_settings(root_with_parts).corpus("many")

    part = corpus.only_text("en-fr-a")

    assert part.languages == ("en", "fr")
    assert list(part.files.train) == ["a"]
    assert part.filter != corpus.filter
    assert corpus.only_text("en-de-a").filter == corpus.filter
