"""Where the outputs of the pipeline are. dvc.yaml names the same places."""

from pathlib import Path

import pytest

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.init_from import fresh_start_file, init_weights_folder, parents_folder
from bleuprint.config.paths import Run
from bleuprint.config.synthetic import synthetic_folder
from bleuprint.runtime.errors import UserError
from params import PARAMS, params_error, read_params, replace_once

PROJECT = Path("elsewhere")


def test_the_outputs_of_a_run_are_in_folders_of_its_system_corpus_and_seed():
    """A run is the training and evaluation of the system `small` on `news-en-de` with seed 7."""
    run = Run("small", "news-en-de", 7)

    assert run.models_folder == Path("models/small/news-en-de/7")
    assert run.results_folder == Path("results/small/news-en-de/7")
    assert run.timings_folder == Path("timings/small/news-en-de/7")


def test_messages_name_a_run_by_system_corpus_and_seed():
    assert str(Run("small", "news-en-de", 7)) == "system small, corpus news-en-de, seed 7"


@pytest.mark.parametrize(
    ("output", "expected_path"),
    [
        pytest.param(paths.corpus_folder("news", "split"), "data/split/news", id="split text"),
        pytest.param(
            paths.corpus_folder("news/en-de", "split", PROJECT),
            "elsewhere/data/split/news/en-de",
            id="split text of a direction",
        ),
        pytest.param(paths.download_folder("news"), "data/raw/news/given", id="downloaded text"),
        pytest.param(
            paths.download_folder("news/en-de", PROJECT),
            "elsewhere/data/raw/news/given/en-de",
            id="downloaded text of a direction",
        ),
        pytest.param(
            paths.document_ids_file(Path("given"), "test.x"),
            "given/test.x.documents",
            id="documents of a test set",
        ),
        pytest.param(
            synthetic_folder("news", "part", PROJECT),
            "elsewhere/data/raw/news/synthetic-part",
            id="synthetic text",
        ),
        pytest.param(
            paths.vocabulary_folder("news", None), "data/bpe/news/own", id="learned vocabulary"
        ),
        pytest.param(
            paths.vocabulary_folder("news", "other", PROJECT),
            "elsewhere/data/bpe/news/shared",
            id="vocabulary of another corpus",
        ),
        pytest.param(fresh_start_file("tuned", 3), "data/starts/tuned/3/fresh.json", id="no start"),
        pytest.param(
            init_weights_folder("tuned", 3), "data/starts/tuned/3/weights", id="weights of a start"
        ),
        pytest.param(parents_folder("tuned"), "data/parents/tuned", id="settings of a start"),
        pytest.param(
            paths.filter_stats_file("news", "clean", PROJECT),
            "elsewhere/data/filter_stats/news/clean.json",
            id="filtering statistics",
        ),
        pytest.param(
            paths.shards_folder("news", "clean", PROJECT),
            "elsewhere/work/shards/clean/news",
            id="shards",
        ),
    ],
)
def test_an_output_has_the_path_that_dvc_expects(output, expected_path):
    assert output == Path(expected_path)


def test_the_message_about_missing_resolved_settings_names_the_command_that_writes_them(tmp_path):
    with pytest.raises(
        UserError,
        match=r"reports/resolved\.json: no such file. To write it, run: dvc repro resolve$",
    ):
        load_resolved_settings(tmp_path)


def test_params_without_systems_are_refused(tmp_path):
    text = replace_once(PARAMS, "systems:", "published_systems:")

    assert "params.yaml: the key 'systems' is missing" in params_error(tmp_path, text)


def test_two_runs_with_the_same_name_are_refused(tmp_path):
    """System base on corpus a-own, and system base-a on corpus own, are both called base-a-own."""
    own_corpus = PARAMS[PARAMS.index("  own:\n") : PARAMS.index("systems:\n")]
    corpus_a_own = own_corpus.replace("  own:\n", "  a-own:\n", 1)
    text = replace_once(PARAMS, "systems:\n", f"{corpus_a_own}systems:\n")
    text = replace_once(text, "published:", "  base-a: {like: base}\npublished:")

    message = params_error(tmp_path, text)

    assert (
        "two runs are called base-a-own: system base on corpus a-own and system base-a on corpus "
        "own. Rename a system or a corpus"
    ) in message


def test_the_stage_of_a_run_is_named_after_system_corpus_and_seed(tmp_path):
    settings = read_params(tmp_path)

    assert settings.stage("train", "base", "own", 7) == "train@base-own-7"
