"""Pretrained models in params.yaml, by a folder in the Marian format or by a name."""

import pytest

from params import PARAMS, params_error, read_params, replace_once

COMMIT = "c123456789abcdef0123456789abcdef01234567"
BY_NAME = f"{{huggingface: Helsinki-NLP/opus-mt-en-de, revision: {COMMIT}}}"
FOLDER_OF_NAME = f"work/pretrained/imported/Helsinki-NLP/opus-mt-en-de@{COMMIT}"


def with_weights(name):
    """Return a params.yaml whose system `base` starts from a model of this name."""
    return replace_once(
        PARAMS,
        "      max_updates: 10\n",
        f"      max_updates: 10\n      init_from: {name}\n",
    )


def with_pieces(name):
    """Return a params.yaml whose corpus `own` has the subwords of a model of this name."""
    return replace_once(
        PARAMS, "{bpe: {num_merges: 10, joint: true, threshold: 0}}", f"{{sentencepiece: {name}}}"
    )


def test_the_name_of_a_model_gives_the_folder_of_its_weights_and_subwords(tmp_path):
    weights = read_params(tmp_path, with_weights(BY_NAME)).system_settings("base").train.init_from
    pieces = read_params(tmp_path, with_pieces(BY_NAME)).corpus("own").vocabulary.sentencepiece

    assert weights.folder == pieces.folder == FOLDER_OF_NAME
    assert weights.huggingface == pieces.huggingface == "Helsinki-NLP/opus-mt-en-de"
    assert weights.revision == pieces.revision == COMMIT


def test_folders_of_the_same_name_are_imported_into_different_folders(tmp_path):
    folders = set()
    for path in ("inputs/opus", "/data/opus"):
        settings = read_params(tmp_path, with_weights(f"{{marian: {path}}}"))
        folders.add(settings.system_settings("base").train.init_from.folder)

    assert len(folders) == 2
    for folder in folders:
        assert folder.startswith("work/pretrained/imported/opus-")


def test_a_folder_is_imported_once_however_its_path_is_written(tmp_path):
    """A shell completes the name of a folder with a slash."""
    folders = set()
    for path in ("inputs/opus", "inputs/opus/", "./inputs//opus"):
        settings = read_params(tmp_path, with_weights(f"{{marian: {path}}}"))
        folders.add(settings.system_settings("base").train.init_from.folder)

    assert len(folders) == 1


def test_a_folder_of_ours_stays_as_it_is(tmp_path):
    settings = read_params(tmp_path, with_weights("{folder: inputs/opus}"))

    assert settings.system_settings("base").train.init_from.folder == "inputs/opus"


def test_a_system_that_is_like_another_may_start_from_another_model(tmp_path):
    """Null removes an inherited name, as everywhere in params.yaml."""
    other = "  other:\n    like: base\n    train: {init_from: {marian: null, folder: inputs/x}}\n"
    text = replace_once(
        with_weights("{marian: inputs/opus}"), "published: []", f"{other}published: []"
    )

    settings = read_params(tmp_path, text)

    assert settings.system_settings("other").train.init_from.folder == "inputs/x"


@pytest.mark.parametrize("place", [with_weights, with_pieces])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "{huggingface: Helsinki-NLP/opus-mt-en-de, revision: main}",
            "revision: 'main' is not a commit, and a branch may change. Write the 40 digits under "
            "Files and versions at https://huggingface.co/Helsinki-NLP/opus-mt-en-de",
            id="branch",
        ),
        pytest.param(
            f"{{huggingface: Helsinki-NLP/opus-mt-en-de, revision: {COMMIT[:7]}}}",
            "revision: 'c123456' is not a commit",
            id="short commit",
        ),
        pytest.param(
            "{huggingface: Helsinki-NLP/opus-mt-en-de}",
            "huggingface: the commit of the model is missing. Add revision: COMMIT, with the 40 "
            "digits under Files and versions at https://huggingface.co/Helsinki-NLP/opus-mt-en-de",
            id="no revision",
        ),
        pytest.param(
            f"{{huggingface: opus-mt-en-de, revision: {COMMIT}}}",
            "huggingface: 'opus-mt-en-de' is not a model of Hugging Face. Write OWNER/NAME",
            id="no owner",
        ),
        pytest.param(
            f"{{huggingface: ../.., revision: {COMMIT}}}",
            "huggingface: '../..' is not a model of Hugging Face",
            id="a path",
        ),
        pytest.param(
            f"{{revision: {COMMIT}}}", "revision: name one model: folder", id="only a revision"
        ),
        pytest.param(
            "{marian: inputs/a, folder: inputs/b}", "marian: name one model", id="two folders"
        ),
        pytest.param("{marian: 7}", "marian: 7 is not a name. Quote it", id="number"),
    ],
)
def test_a_wrong_name_is_reported_with_its_line(tmp_path, place, name, message):
    text = place(name)
    line = text[: text.index(name)].count("\n") + 1

    error = params_error(tmp_path, text)

    assert f"params.yaml:{line}: " in error
    assert message in error
