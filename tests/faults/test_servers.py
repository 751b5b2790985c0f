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
from servers import break_off_after, hang_up, in_chunks, status

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


for_each_wrong_response = pytest.mark.parametrize(
    "response", [pytest.param(case.values[0], id=case.id) for case in WRONG_RESPONSES]
)


@pytest.mark.parametrize(("response", "message"), WRONG_RESPONSES)
def test_the_error_for_a_wrong_download_says_what_is_wrong(corpus, host, response, message):
    """A corpus has a German file at /x and an English file at /y; /x answers wrongly once.

    WRONG_RESPONSES are, for example, the login page of a hotel, or a truncated file.
    """
    host.script["/x"] = [response]

    error_line = corpus.download_error()

    assert message in error_line


@for_each_wrong_response
def test_the_error_names_the_stored_file_if_the_wrong_download_was_kept(corpus, host, response):
    """A wrong response is, for example, the login page of a hotel, or a truncated file.

    The next run would read a kept file again, so the user has to remove it.
    """
    host.script["/x"] = [response]

    error_line = corpus.download_error()

    is_named = str(corpus.stored_german()) in error_line
    is_kept = corpus.stored_german().exists()
    assert is_named == is_kept


@for_each_wrong_response
def test_the_right_file_is_read_after_a_wrong_download(corpus, host, response):
    """A wrong response is, for example, the login page of a hotel, or a truncated file.

    The user removes the wrong file, and the server answers rightly from now on.
    """
    host.script["/x"] = [response]
    corpus.download_error()
    corpus.stored_german().unlink(missing_ok=True)

    text = corpus.download()

    assert text == GERMAN + ENGLISH
    assert corpus.locked_downloads()[corpus.german.url]["sha256"] == sha256_of(GERMAN)


@for_each_wrong_response
def test_the_right_file_is_downloaded_only_once_after_a_wrong_download(corpus, host, response):
    """After the second run, the store contains both files, so the third run sends no request."""
    host.script["/x"] = [response]
    corpus.download_error()
    corpus.stored_german().unlink(missing_ok=True)
    corpus.download()
    host.requests.clear()  # the list of requests

    text = corpus.download()

    assert text == GERMAN + ENGLISH
    assert host.requests == []


def test_a_login_page_that_answers_every_address_is_not_taken_for_a_corpus(corpus, host):
    """In a hotel, a network answers every request with its login page until the user logs in.

    Both files of the corpus would be this page, and so have equally many lines. The third download
    succeeds, since each address answers wrongly only once.
    """
    host.script["/x"] = [status(200, LOGIN_PAGE)]
    host.script["/y"] = [status(200, LOGIN_PAGE)]

    first_error = corpus.download_error()
    second_error = corpus.download_error()
    text = corpus.download()

    assert f"{corpus.german.url}: the host sent a web page in place of the file" in first_error
    assert f"{corpus.english.url}: the host sent a web page in place of the file" in second_error
    assert text == GERMAN + ENGLISH


def times_in_store(folder):
    """Return the modification time of each file in the store of downloads, by path."""
    return {file: file.stat().st_mtime_ns for file in files_in_store(folder)}


def test_correcting_the_address_of_one_file_does_not_download_the_other_file_again(corpus, host):
    """The user first gives the address of a wrong English file, with one line too many.

    After the correction, the right file is new in the store; the German file there is the old one.
    """
    english_url = corpus.english.url
    corpus.english = File(url=host.put("/wrong", ENGLISH + b"one more\n"))
    assert "not parallel" in corpus.download_error()
    times_before = times_in_store(corpus.folder)
    corpus.english = File(url=english_url)

    text = corpus.download()

    assert text == GERMAN + ENGLISH
    times_after = times_in_store(corpus.folder)
    assert times_before.items() <= times_after.items()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_compressed_file_is_unpacked_although_the_header_also_says_gzip(tmp_path, host, encoding):
    """By default, Apache sends files that end in .gz with the header Content-Encoding: x-gzip.

    A client that believes the header unpacks the file while it downloads, and once more afterwards.
    """
    corpus = ServedCorpus(tmp_path, host)
    compressed = gzip.compress(GERMAN)
    corpus.german = File(url=host.put("/x.de.gz", compressed, Content_Encoding=encoding))

    text = corpus.download()

    assert text == GERMAN + ENGLISH


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
    """The server sends 600 bytes in 5 seconds, and at least 500 are required."""
    slow_server(500)

    text = corpus.download()

    assert text == GERMAN + ENGLISH
    requests = host.requests
    assert len(requests) == 2  # one for each file


def test_a_server_that_is_too_slow_is_given_up_after_all_attempts(corpus, host, slow_server):
    """The server sends 600 bytes in 5 seconds, and at least 1,000 are required."""
    slow_server(1000)

    error_line = corpus.download_error()

    assert "fewer than 1000 bytes came in 5 seconds" in error_line
    requests = host.requests
    assert len(requests) == http.MAX_ATTEMPTS


@pytest.mark.parametrize("path", ["/x", "/y"])
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(hang_up, id="hung up"),
        pytest.param(status(503), id="503"),
        pytest.param(status(429, Retry_After="1"), id="429"),
        pytest.param(break_off_after(17), id="cut"),
        pytest.param(break_off_after(0), id="no body"),
        pytest.param(in_chunks(GERMAN[:HALF_SIZE], end=False), id="chunks cut"),
    ],
)
def test_a_file_is_read_after_two_failures_of_the_server(corpus, host, path, failure):
    """The German file is at /x, the English file at /y. The third request is answered rightly."""
    host.script[path] = [failure, failure]

    text = corpus.download()

    assert text == GERMAN + ENGLISH


@pytest.mark.parametrize(
    "redirects",
    [
        pytest.param({"/x": "/x"}, id="to itself"),
        pytest.param({"/x": "/a", "/a": "/b", "/b": "/x"}, id="circle of three"),
        pytest.param({"/x": "//"}, id="no host"),
        pytest.param({"/x": "http://[::"}, id="no address"),
    ],
)
def test_the_error_for_redirects_that_lead_nowhere_names_the_address_of_the_file(
    corpus, host, redirects
):
    """The server answers with HTTP status 302 and another address, 40 times in all.

    When the server is repaired, the next run downloads the file.
    """
    for path, location in redirects.items():
        host.script[path] = [status(302, Location=location)] * 40

    error_line = corpus.download_error()
    host.script.clear()  # The server is repaired.
    text = corpus.download()

    assert corpus.german.url in error_line
    assert text == GERMAN + ENGLISH


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
    """The connection breaks after half of CONTENT; the second response does not fit the first half.

    The two parts must never be joined. The stage may fail then, and the next run downloads the
    whole file. CONTENT is binary: once it is complete, the error is "not UTF-8".
    """
    host.put("/z", CONTENT, ETag='"one"')
    host.script["/z"] = [break_off_after(HALF_SIZE), second_response]
    corpus = ServedCorpus(tmp_path, host)
    corpus.german = File(url=host.url("/z"), sha256=sha256_of(CONTENT))
    line_count = CONTENT.count(b"\n") + (0 if CONTENT.endswith(b"\n") else 1)
    corpus.english = File(url=host.put("/y", b"x\n" * line_count))

    error_line = corpus.download_error()
    if "not UTF-8" not in error_line:
        error_line = corpus.download_error()

    assert "not UTF-8" in error_line
    stored_checksums = [sha256_of(file.read_bytes()) for file in files_in_store(tmp_path)]
    assert sha256_of(CONTENT) in stored_checksums
