"""URLs of corpus files hold no password."""

import pytest

from bleuprint.runtime.errors import UserError
from params import PARAMS, read


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@host/x",
        "https://host/x?id=1&token=secret",
    ],
)
@pytest.mark.parametrize("key", ["url: {}", "url: http://x/y, mirrors: [{}]", "path: {}"])
def test_a_password_in_a_url_is_refused_and_not_printed(tmp_path, url, key):
    file = f"{{{key.format(repr(url))}}}"
    with pytest.raises(UserError) as error:
        read(tmp_path, PARAMS.replace("{path: inputs/a.de}", file))
    assert ":9: corpora.own.files.train.a.source: " in str(error.value)
    assert "secret" not in str(error.value)
    assert "machine HOST login USER password PASSWORD" in str(error.value)
