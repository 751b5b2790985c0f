"""URLs of corpus files must not contain a password, since params.yaml is published."""

import pytest

from params import PARAMS, params_error, replace_once


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://user:secret@host/x", id="password before the host"),
        pytest.param("https://host/x?id=1&token=secret", id="token as a parameter"),
    ],
)
@pytest.mark.parametrize("setting", ["url: {}", "url: http://x/y, mirrors: [{}]", "path: {}"])
def test_a_url_with_a_password_is_refused_and_the_password_is_not_printed(tmp_path, url, setting):
    """Line 9 of PARAMS names the source file of a training text: `path: inputs/a.de`."""
    file = setting.format(repr(url))

    message = params_error(tmp_path, replace_once(PARAMS, "path: inputs/a.de", file))

    assert "params.yaml:9: corpora.own.files.train.a.source: " in message
    assert "secret" not in message
    # Users may write passwords to the file ~/.netrc instead, in this form.
    assert "machine HOST login USER password PASSWORD" in message
