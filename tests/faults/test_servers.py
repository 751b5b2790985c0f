"""Hostile and broken servers, one behavior a path, between a user's corpus and its download.

Each is a local server. The promise: the corpus is read as published, or the stage ends in one line
and leaves nothing that looks finished. When the server is right again, running again is all that it
takes, once the download that the line may name is removed.
"""

import gzip
import json
from itertools import count
from types import SimpleNamespace

import pytest

from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.corpus.download import http
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from downloads import CONTENT, HALF_SIZE, NEW_CONTENT, files_in_store, sha256_of
from servers import cut, hang_up, in_chunks, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

GERMAN = b"".join(b"Satz %d.\n" % number for number in range(1000))
ENGLISH = b"".join(b"Sentence %d.\n" % number for number in range(1000))
LOGIN_PAGE = b"<!DOCTYPE html>\n<html><head><title>Hotel Wi-Fi: log in</title></head>\n</html>\n"


class ServedCorpus:
    """A corpus of two files on a server: German at /x, English at /y.

    Attributes:
        folder: Where the stage works.
        german: The settings of the German file.
        english: The settings of the English file.
    """

    def __init__(self, folder, host, **german_settings):
        self.folder = folder
        self.german = File(url=host.put("/x", GERMAN), **german_settings)
        self.english = File(url=host.put("/y", ENGLISH))

    def download(self):
        """Run the stage download, and return the text of both files, one after the other."""
        text = Text("x", source=self.german, target=self.english)
        files = Files({"a": text}, {}, {})
        raw_folder = TextFolder(self.folder / "raw", "de", "en")
        downloads = Downloads(None, self.folder / "store", self.folder / "downloads.lock")
        statistics_file = self.folder / "filter_stats.json"
        download_corpus("c", files, raw_folder, statistics_file, downloads)
        return b"".join(path.read_bytes() for path in raw_folder.files("train"))

    def download_error(self):
        """Run the stage download, which must fail and leave nothing; return the error's line."""
        with pytest.raises(UserError) as error:
            self.download()
        assert not (self.folder / "raw").exists()
        assert not (self.folder / "filter_stats.json").exists()
        assert self.german.url not in self.locked_downloads()
        assert "\n" not in str(error.value)
        return str(error.value)

    def locked_downloads(self):
        """Return what downloads.lock records of each address."""
        lock_file = self.folder / "downloads.lock"
        if not lock_file.exists():
            return {}
        return json.loads(lock_file.read_text())

    def stored_german(self):
        """Return where the store keeps the German file: under the hash of its address."""
        return self.folder / "store" / sha256_of(self.german.url.encode())


@pytest.fixture
def corpus(tmp_path, host):
    """Return a corpus whose files are on the server `host`."""
    return ServedCorpus(tmp_path, host)


# The first response is wrong, the next one right.


WRONG_RESPONSES = [
    pytest.param(
        status(200, LOGIN_PAGE),
        "the host sent a web page in place of the file",
        id="captive portal",
    ),
    pytest.param(
        status(200, b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">'),
        "the host sent a web page",
        id="xhtml",
    ),
    pytest.param(
        status(200, b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code>'),
        "the host sent a web page",
        id="error of a store",
    ),
    # Its Content-Length is that of the bytes that are sent, so only the other file shows it.
    pytest.param(status(200, GERMAN[:5000]), "not parallel", id="cut short"),
    pytest.param(
        status(200, gzip.compress(GERMAN), Content_Encoding="gzip"),
        "the file is compressed. Unpack it: gzip -dc <",
        id="packed",
    ),
    pytest.param(status(200, b""), "not parallel", id="empty"),
    pytest.param(
        status(200, GERMAN.replace(b"7", b"7\xe4")), "is 0xe4: not UTF-8", id="another encoding"
    ),
    pytest.param(status(204), "HTTP 204", id="no content"),
    pytest.param(
        status(206, GERMAN[5:], Content_Range="bytes 5-9/10"), "HTTP 206", id="a part of the file"
    ),
    pytest.param(
        status(302, Location="file:///etc/hostname"), "No connection adapters", id="local file"
    ),
]


@pytest.mark.parametrize(("response", "message"), WRONG_RESPONSES)
def test_a_wrong_download_ends_the_stage_with_its_reason(corpus, host, response, message):
    host.script["/x"] = [response]

    assert message in corpus.download_error()


@pytest.mark.parametrize(("response", "message"), WRONG_RESPONSES)
def test_a_wrong_download_that_is_kept_is_named(corpus, host, response, message):  # noqa: ARG001
    """A user who removes the named file gets the right one by running again."""
    host.script["/x"] = [response]

    error_line = corpus.download_error()

    is_named = str(corpus.stored_german()) in error_line
    assert corpus.stored_german().exists() == is_named


@pytest.mark.parametrize(("response", "message"), WRONG_RESPONSES)
def test_the_right_file_is_read_after_a_wrong_download(corpus, host, response, message):  # noqa: ARG001
    host.script["/x"] = [response]
    corpus.download_error()
    corpus.stored_german().unlink(missing_ok=True)

    assert corpus.download() == GERMAN + ENGLISH
    assert corpus.locked_downloads()[corpus.german.url]["sha256"] == sha256_of(GERMAN)

    # From then on the store has the files.
    host.seen.clear()
    assert corpus.download() == GERMAN + ENGLISH
    assert host.seen == []


def test_a_login_page_that_answers_every_address_is_not_a_corpus(corpus, host):
    """Both files would be the same page, and so have equally many lines."""
    host.script["/x"] = [status(200, LOGIN_PAGE)]
    host.script["/y"] = [status(200, LOGIN_PAGE)]

    first_error = corpus.download_error()
    second_error = corpus.download_error()

    assert f"{corpus.german.url}: the host sent a web page in place of the file" in first_error
    assert f"{corpus.english.url}: the host sent a web page in place of the file" in second_error
    assert corpus.download() == GERMAN + ENGLISH


def test_a_corrected_setting_costs_no_second_download(corpus, host):
    english_url = corpus.english.url
    corpus.english = File(url=host.put("/wrong", ENGLISH + b"one more\n"))
    assert "not parallel" in corpus.download_error()
    corpus.english = File(url=english_url)
    times_before = {file: file.stat().st_mtime_ns for file in files_in_store(corpus.folder)}

    assert corpus.download() == GERMAN + ENGLISH

    times_after = {file: file.stat().st_mtime_ns for file in files_in_store(corpus.folder)}
    # The file at /y was not downloaded before, so it is new.
    assert times_before.items() <= times_after.items()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_packed_file_is_read_if_its_header_says_that_it_is_packed(tmp_path, host, encoding):
    """Apache sends this header for files that end in .gz by its default settings."""
    corpus = ServedCorpus(tmp_path, host)
    packed = gzip.compress(GERMAN)
    corpus.german = File(url=host.put("/x.de.gz", packed, Content_Encoding=encoding))

    assert corpus.download() == GERMAN + ENGLISH


# Servers that break off, redirect without end or change their mind.


@pytest.fixture
def slow_server(monkeypatch):
    """Return a function that sets the least bytes per period of 5 seconds.

    A clock goes on by a second each time it is read, and it is read after every 100 bytes, with one
    more look per period: 600 bytes come in a period.
    """
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None)
    monkeypatch.setattr(http, "time", clock)
    monkeypatch.setattr(http, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(http, "PERIOD_SECONDS", 5)

    def set_least_bytes(byte_count):
        monkeypatch.setattr(http, "MIN_BYTES_PER_PERIOD", byte_count)

    return set_least_bytes


def test_a_slow_server_that_is_fast_enough_is_read_to_the_end(corpus, host, slow_server):
    slow_server(500)

    assert corpus.download() == GERMAN + ENGLISH

    requests_per_file = 1
    assert len(host.seen) == 2 * requests_per_file


def test_a_server_that_is_too_slow_is_given_up_after_all_attempts(corpus, host, slow_server):
    slow_server(1000)

    assert "fewer than 1000 bytes in 5 seconds" in corpus.download_error()

    assert len(host.seen) == http.MAX_ATTEMPTS


@pytest.mark.parametrize("path", ["/x", "/y"])
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(hang_up, id="hung up"),
        pytest.param(status(503), id="503"),
        pytest.param(status(429, Retry_After="1"), id="429"),
        pytest.param(cut(17), id="cut"),
        pytest.param(cut(0), id="no body"),
        pytest.param(in_chunks(GERMAN[:HALF_SIZE], end=False), id="chunks cut"),
    ],
)
def test_a_file_is_read_after_two_failures_of_the_server(corpus, host, path, failure):
    host.script[path] = [failure, failure]

    assert corpus.download() == GERMAN + ENGLISH


@pytest.mark.parametrize(
    "redirects",
    [
        pytest.param({"/x": "/x"}, id="to itself"),
        pytest.param({"/x": "/a", "/a": "/b", "/b": "/x"}, id="circle of three"),
        pytest.param({"/x": "//"}, id="no host"),
        pytest.param({"/x": "http://[::"}, id="no address"),
    ],
)
def test_redirects_that_lead_nowhere_end_with_the_address_of_the_file(corpus, host, redirects):
    for path, location in redirects.items():
        # More than any client follows.
        host.script[path] = [status(302, Location=location)] * 40

    assert corpus.german.url in corpus.download_error()

    host.script.clear()
    assert corpus.download() == GERMAN + ENGLISH


LAST_BYTE = len(CONTENT) - 1


@pytest.mark.parametrize(
    "second_response",
    [
        pytest.param(
            status(
                206,
                NEW_CONTENT[HALF_SIZE:],
                Content_Range=f"bytes {HALF_SIZE}-{LAST_BYTE}/{len(CONTENT)}",
            ),
            id="the rest of another version",
        ),
        pytest.param(
            status(206, CONTENT[HALF_SIZE:], Content_Range=f"bytes 0-{LAST_BYTE}/{len(CONTENT)}"),
            id="the rest as if it were all",
        ),
        pytest.param(
            status(206, CONTENT[:HALF_SIZE], Content_Range="bytes 0-9/9"), id="the wrong part"
        ),
        pytest.param(status(206, CONTENT[HALF_SIZE:]), id="the rest without its range"),
        pytest.param(status(200, NEW_CONTENT, ETag='"two"'), id="all of another version"),
        pytest.param(status(416, Content_Range="bytes */10"), id="416 with another length"),
        pytest.param(
            status(206, CONTENT[HALF_SIZE:], Content_Range=f"bytes {HALF_SIZE}-/{len(CONTENT)}"),
            id="a range without an end",
        ),
    ],
)
def test_a_download_continued_after_a_break_is_the_published_file_or_none(
    tmp_path, host, second_response
):
    """CONTENT is binary, so that "not UTF-8" is the error once it has been downloaded whole."""
    host.put("/z", CONTENT, ETag='"one"')
    host.script["/z"] = [cut(HALF_SIZE), second_response]
    corpus = ServedCorpus(tmp_path, host)
    corpus.german = File(url=host.url("/z"), sha256=sha256_of(CONTENT))
    line_count = CONTENT.count(b"\n") + (0 if CONTENT.endswith(b"\n") else 1)
    corpus.english = File(url=host.put("/y", b"x\n" * line_count))

    # Where the second response is refused, the stage fails, and running again downloads the file.
    error_line = corpus.download_error()
    if "not UTF-8" not in error_line:
        error_line = corpus.download_error()

    assert "not UTF-8" in error_line
    assert sha256_of(CONTENT) in [sha256_of(file.read_bytes()) for file in files_in_store(tmp_path)]
