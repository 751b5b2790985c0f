"""A file on a web server, for the tests of downloads."""

import pytest

from bleuprint.config.corpus_files import File
from downloads import CONTENT, sha256_of


@pytest.fixture
def file(host):
    """A file at /x of the host, with the SHA-256 of its content."""
    return File(url=host.put("/x", CONTENT), sha256=sha256_of(CONTENT))
