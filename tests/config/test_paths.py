"""Where the outputs of the pipeline are, by hand: dvc.yaml names the same places."""

from pathlib import Path

import pytest

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.init_from import fresh_start_file, init_weights_folder, parents_folder
from bleuprint.config.paths import Run
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.runtime.errors import UserError
from params import PARAMS, read

ROOT = Path("elsewhere")


def test_the_folders_of_a_training():
    run = Run("small", "news-en-de", 7)
    assert run.models_folder == Path("models/small/news-en-de/7")
    assert run.results_folder == Path("results/small/news-en-de/7")
    assert run.timings_folder == Path("timings/small/news-en-de/7")
    assert str(run) == "system small, corpus news-en-de, seed 7"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (paths.corpus_folder("news", "split"), "data/split/news"),
        (paths.corpus_folder("news/en-de", "split", ROOT), "elsewhere/data/split/news/en-de"),
        (paths.download_folder("news"), "data/raw/news/given"),
        (paths.download_folder("news/en-de", ROOT), "elsewhere/data/raw/news/given/en-de"),
        (paths.document_ids_file(Path("given"), "test.x"), "given/test.x.documents"),
        (synthetic_folder("news", "part", ROOT), "elsewhere/data/raw/news/synthetic-part"),
        (paths.vocabulary_folder("news", None), "data/bpe/news/own"),
        (paths.vocabulary_folder("news", "other", ROOT), "elsewhere/data/bpe/news/shared"),
        (fresh_start_file("tuned", 3), "data/starts/tuned/3/fresh.json"),
        (init_weights_folder("tuned", 3), "data/starts/tuned/3/weights"),
        (parents_folder("tuned"), "data/parents/tuned"),
        (
            paths.filter_stats_file("news", "clean", ROOT),
            "elsewhere/data/filter_stats/news/clean.json",
        ),
        (paths.shards_folder("news", "clean", ROOT), "elsewhere/work/shards/clean/news"),
    ],
    ids=str,
)
def test_the_place_of_an_output(found, expected):
    assert found == Path(expected)


def test_settings_that_were_not_resolved_name_the_command(tmp_path):
    with pytest.raises(
        UserError, match=r"reports/resolved\.json: no such file; dvc repro resolve writes it$"
    ):
        load_resolved_settings(tmp_path)


def test_an_experiment_without_systems_is_refused(tmp_path):
    text = PARAMS.replace("systems:", "published_systems:")
    with pytest.raises(UserError, match=r"params\.yaml: the key 'systems' is missing"):
        read(tmp_path, text)


def test_two_runs_of_one_name_are_refused(tmp_path):
    """By hand: base-a on own, and base on a-own, are both called base-a-own."""
    start, end = PARAMS.index("  own:\n"), PARAMS.index("systems:\n")
    other = PARAMS[start:end].replace("  own:\n", "  a-own:\n", 1)
    text = PARAMS[:end] + other + PARAMS[end:]
    text = text.replace("published:", "  base-a: {like: base}\npublished:")
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert (
        "two runs are called base-a-own: system base on corpus a-own and system base-a on corpus "
        "own; rename a system or a corpus"
    ) in str(error.value)


def test_the_stage_of_a_training(tmp_path):
    assert read(tmp_path).stage("train", "base", "own", 7) == "train@base-own-7"
