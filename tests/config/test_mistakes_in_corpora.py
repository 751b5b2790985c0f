"""A mistake in a corpus of params.yaml is reported with its line and its key.

Each test changes one place of PARAMS, a valid params.yaml (see tests/support/params.py).
"""

import pytest

from params import PARAMS, error_after_change, params_error, replace_once


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            'target: "no"',
            'target: "de"',
            "simplification, write target: qaa, a code for",
            id="one language on both sides",
        ),
        pytest.param(
            "seed: 1}",
            "seed: 1, every: 23}",
            "valid 0.05 and every 23 both choose",
            id="two ways to draw the validation set",
        ),
        pytest.param(
            "test: 0.05",
            "test: 0",
            "15: corpora.own.split.test: the share is 0, but files has no test text",
            id="no test set",
        ),
        pytest.param(
            "name: moses, lowercase: false, hyphens: false",
            "name: none, lowercase: false, hyphens: true",
            "option hyphens belongs to moses, not to none",
            id="option of another tokenizer",
        ),
        pytest.param(
            "joint: true",
            "joint: false",
            "39: systems.base: model.tie_embeddings all needs",
            id="tied embeddings without a joint vocabulary",
        ),
        pytest.param(
            "threshold: 0}",
            "threshold: 0}, words: {max_size: 9}",
            "needs exactly one of bpe, words",
            id="two kinds of vocabulary",
        ),
    ],
)
def test_settings_of_a_corpus_that_contradict_each_other_are_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "citation: own, source",
            "citation: wmt, source",
            "train.a.license_and_citation: license_and_citation of the corpus has no",
            id="unknown name of a license",
        ),
        pytest.param(
            '"@misc{own,}"',
            "own (2026)",
            "7: corpora.own.license_and_citation.own.bibtex: 'own",
            id="not BibTeX",
        ),
        pytest.param(
            '"@misc{own,}"',
            '"@misc{own,"',
            "'@misc{own,' is not a BibTeX entry. Write '@type{key, ...}'",
            id="open brace in BibTeX",
        ),
    ],
)
def test_an_invalid_license_or_citation_is_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "source: {path: inputs/a.de}",
            "source: {path: /etc/a}",
            "must be below inputs/",
            id="file outside inputs/",
        ),
        pytest.param(
            "citation: own, source",
            "citation: own, format: tmx, source",
            "both sides in one file",
            id="tmx in two files",
        ),
        pytest.param(
            "citation: own, source",
            "citation: own, columns: [1, 2], source",
            "columns are only for formats csv",
            id="columns of a plain file",
        ),
        pytest.param(
            "target: {path: inputs/a.no}",
            "both: {path: inputs/a.no}",
            "needs two files",
            id="plain text in one file",
        ),
        pytest.param(
            "train: {a: {",
            "train: {a: {pairs_seed: 1, ",
            "train.a: pairs_seed 1 has no effect",
            id="pairs_seed without pairs",
        ),
        pytest.param(
            "{path: inputs/a.de}",
            "{path: inputs/a.de, mirrors: [http://x/y]}",
            "mirrors needs url",
            id="mirrors of a local file",
        ),
    ],
)
def test_files_that_do_not_fit_the_text_are_reported(tmp_path, old, new, message):
    assert message in error_after_change(tmp_path, old, new)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        pytest.param(
            '{url: "phrasebook:tets.en"}',
            "one of phrasebook:train.en, ",
            id="unknown file of the phrasebook",
        ),
        pytest.param('{url: "file:///a.de"}', "without sha256", id="file url without hash"),
        pytest.param(
            "{url: inputs/a.de}", "'inputs/a.de'. Write an http, https or file", id="path as url"
        ),
        pytest.param(
            '{url: "http://[::1/x"}', "not a valid URL: Invalid IPv6 URL", id="open bracket"
        ),
        pytest.param(
            '{url: "http://a:b/x"}',
            "not a valid URL: Port could not be cast",
            id="port not a number",
        ),
        pytest.param(
            "{url: http://x/a, mirrors: [ftp://x/a]}", "mirrors is 'ftp://x/a'", id="ftp mirror"
        ),
        pytest.param(
            '{url: "http://x/a "}', "'http://x/a ', which contains a space or", id="space in a url"
        ),
    ],
)
def test_an_invalid_url_is_reported(tmp_path, file, message):
    assert message in error_after_change(tmp_path, "{path: inputs/a.de}", file)


TEXT_FILES = "license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}"


def test_a_test_set_cannot_be_reduced_to_some_pairs(tmp_path):
    """Systems with different test sets could not be compared."""
    message = error_after_change(
        tmp_path, "tests: {}", f"tests: {{x: {{a: {{{TEXT_FILES}, pairs: 9}}}}}}"
    )

    assert "files: test.x.a: pairs 9 is only for training texts" in message


def test_a_validation_set_cannot_be_documents(tmp_path):
    """Aligning the sentences of documents would leave some out."""
    message = error_after_change(
        tmp_path, "valid: {}", f"valid: {{a: {{{TEXT_FILES}, format: documents}}}}"
    )

    assert "valid.a: format documents is only for training texts" in message


def test_a_test_set_cannot_be_documents(tmp_path):
    """Aligning the sentences of documents would leave some out."""
    message = error_after_change(
        tmp_path, "tests: {}", f"tests: {{x: {{a: {{{TEXT_FILES}, format: documents}}}}}}"
    )

    assert "test.x.a: format documents is only for training texts" in message


def test_a_language_that_a_rule_does_not_support_is_reported(tmp_path):
    """The rule character_score counts letters of a language's script; none is known for `qaa`."""
    text = replace_once(PARAMS, "length_ratio: {max: 3.0}", "character_score: {min: 0.5}")
    text = replace_once(text, 'target: "no"', 'target: "qaa"')

    message = params_error(tmp_path, text)

    assert "yaml:4: corpora.own: rule character_score does not support " in message
    assert "'qaa'" in message
