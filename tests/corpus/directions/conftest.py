"""A project with the corpus `many` after all stages of data, for the tests of this folder."""

from contextlib import chdir

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.steps.filter_stats import filter_stats_by_stage
from corpora import lines_to_text
from multilingual import RANGES, SENTENCES, params_with_directions, run_stage, sentences_of
from params import write_resolved
from steps import DATA_STAGES


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """The folder of a project after all stages of data.

    The German training sentence 3 is a sentence of the test set of de-fr, so that the stage dedup
    drops its pairs.
    """
    root = tmp_path_factory.mktemp("many")
    (root / "inputs").mkdir()
    for language in SENTENCES:
        for name in RANGES:
            lines = sentences_of(name, language)
            if (name, language) == ("train", "de"):
                lines[3] = SENTENCES["de"][21]
            path = root / "inputs" / f"{name}.{language}"
            path.write_text(lines_to_text(lines))
    (root / "params.yaml").write_text(params_with_directions())
    write_resolved(root)
    for script in DATA_STAGES:
        run_stage(script, root)
        # Snakemake leaves such files in the folders that a stage writes.
        for output in (root / "data").glob("*/many"):
            (output / ".snakemake_timestamp").touch()
    return root


@pytest.fixture
def corpus(root):
    """The settings of the corpus `many`."""
    return load_resolved_settings(root).corpus("many")


@pytest.fixture
def stats_by_stage(root):
    """The filtering statistics of all stages, joined over the directions."""
    with chdir(root):
        return filter_stats_by_stage("many")
