"""Published scores in params.yaml, which the report shows beside the experiment's own scores."""

import re

import pytest

from params import PARAMS, line_number, params_error, read_params, replace_once

SCORE = "{name: A, source: x, corpus: own, test: held-out, bleu: 3, metric: intl}"


def params_with_published(*scores):
    """Return a params.yaml with these published scores."""
    return replace_once(PARAMS, "published: []", f"published: [{', '.join(scores)}]")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(r"A\vB", id="vertical tab"),
        pytest.param(r"A\nB", id="newline"),
        pytest.param(r"\u202eA", id="right-to-left override"),
    ],
)
def test_a_name_with_a_non_printing_character_is_refused(tmp_path, name):
    """The character could garble the table in a terminal."""
    score = replace_once(SCORE, "name: A", f'name: "{name}"')

    message = params_error(tmp_path, params_with_published(score))

    assert re.search(r"published\.0\.name: .* contains a non-printing char", message)


@pytest.mark.parametrize(
    ("bibtex", "shown_text"),
    [
        pytest.param("Doe 2020", "Doe 2020", id="plain text"),
        pytest.param("@misc{doe, title = {A}", "@misc{doe, title = {A}", id="open brace"),
        pytest.param("@misc{doe, title = {A}} and B", "and B", id="text after the entry"),
    ],
)
def test_the_message_about_invalid_bibtex_shows_the_invalid_text(tmp_path, bibtex, shown_text):
    """A published score may have a BibTeX entry for the paper that it comes from."""
    score = replace_once(SCORE, "metric: intl", f'metric: intl, bibtex: "{bibtex}"')

    message = params_error(tmp_path, params_with_published(score))

    assert f"published.0.bibtex: {shown_text!r} is not a BibTeX entry" in message


def test_a_second_score_of_the_same_system_on_the_same_test_set_is_refused(tmp_path):
    """Both would be one cell of the table, which would show only the second."""
    second_score = replace_once(SCORE, "bleu: 3", "bleu: 4")

    message = params_error(tmp_path, params_with_published(SCORE, second_score))

    assert "published.1: a second score for A, x, own, held-" in message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("name: A", "name: B", id="name"),
        pytest.param("source: x", "source: y", id="source"),
        pytest.param("metric: intl", "metric: sacrebleu", id="metric"),
    ],
)
def test_two_scores_may_differ_in_name_source_or_metric(tmp_path, old, new):
    """Both scores are for the same test set; each case changes one field of the second."""
    second_score = replace_once(SCORE, old, new)

    settings = read_params(tmp_path, params_with_published(SCORE, second_score))

    assert len(settings.published) == 2


@pytest.mark.parametrize("key", ["name", "source"])
def test_a_blank_name_or_source_is_refused(tmp_path, key):
    """The table of published scores would have a row without a label."""
    score = re.sub(rf"{key}: \w+", f'{key}: " "', SCORE)

    message = params_error(tmp_path, params_with_published(score))

    assert re.search(rf"yaml:\d+: published\.0\.{key}: ' ' is blank: write", message)


def test_a_published_score_cannot_be_compared_with_an_external_system(tmp_path):
    """With `system`, the report shows the difference to a system that is trained here."""
    translations = f"{{held-out: {{path: inputs/external/a, sha256: {64 * 'a'}}}}}"
    external_system = f"  online: {{about: A, translations: {translations}}}\n"
    score = replace_once(SCORE, "metric: intl", "metric: intl, system: online")
    text = replace_once(PARAMS, "published: []", f"{external_system}published: [{score}]")

    message = params_error(tmp_path, text)

    line = line_number(text, "published:")
    assert message.endswith(
        f"params.yaml:{line}: published.0.system: online is an external system. Name a system "
        "that is trained here"
    )
