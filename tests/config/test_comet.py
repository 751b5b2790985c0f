"""The section `comet` of params.yaml, which names the model that scores translations."""

import re

from params import PARAMS, params_error, read_params, replace_once

SHA256 = "c0" * 32
MODEL = f"{{python: comet/bin/python, folder: comet/own-model, sha256: {SHA256}}}"


def test_params_without_the_section_name_no_comet_model(tmp_path):
    assert read_params(tmp_path).comet is None


def test_the_section_comet_names_the_model_that_scores_translations(tmp_path):
    """MODEL is the entry of a model in the folder comet/own-model, with its hash."""
    settings = read_params(tmp_path, f"{PARAMS}comet:\n  own-model: {MODEL}\n")

    assert list(settings.comet) == ["own-model"]
    model = settings.comet["own-model"]
    assert model.folder == "comet/own-model"
    assert model.sha256 == SHA256


def test_a_second_comet_model_is_refused(tmp_path):
    """The report has one column for COMET, so a project scores with one model."""
    text = f"{PARAMS}comet:\n  own-model: {MODEL}\n  other-model: {MODEL}\n"

    message = params_error(tmp_path, text)

    assert re.search(r"params\.yaml:\d+: comet: {.* has more than 1", message)


def test_an_empty_comet_section_is_refused(tmp_path):
    """The key `comet:` stands without a model after it."""
    text = replace_once(PARAMS, "systems:\n", "comet:\nsystems:\n")

    message = params_error(tmp_path, text)

    assert re.search(r"params\.yaml:\d+: comet: is empty. Remove the key", message)


def test_a_sha256_of_a_comet_model_in_capitals_is_refused(tmp_path):
    """Hashes are computed in lower case, so one in capitals would equal none of them."""
    model = replace_once(MODEL, SHA256, SHA256.upper())

    message = params_error(tmp_path, f"{PARAMS}comet:\n  own-model: {model}\n")

    assert re.search(r"params\.yaml:\d+: comet\.own-model\.sha256: .*'C0C0", message)
