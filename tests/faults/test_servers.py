"""Hostile and broken servers, one behaviour a path, between a user's corpus and its download.

Each is a local server. What is promised: the corpus is read as published, or the stage ends in one
line and leaves nothing that looks finished; and when the server is right again, running again is
all that it takes.
"""

import json
import threading
import time

import pytest

from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.corpus.download import http
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Source
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from downloads import BODY, HALF, NEW, left, sum_of
from servers import cut, hang_up, in_chunks, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

GERMAN = b"".join(b"Satz %d.\n" % number for number in range(1000))
ENGLISH = b"".join(b"Sentence %d.\n" % number for number in range(1000))
PORTAL = b"<!DOCTYPE html>\n<html><head><title>Hotel Wi-Fi: log in</title></head>\n</html>\n"


class Corpus:
    """A corpus of two files on a server; `read` is the stage download, in a run of its own."""

    def __init__(self, folder, host, **german):
        self.folder = folder
        self.german = File(url=host.put("/x", GERMAN), **german)
        self.english = File(url=host.put("/y", ENGLISH))

    def read(self):
        files = Files({"a": Text("x", source=self.german, target=self.english)}, {}, {})
        raw = TextFolder(self.folder / "raw", "de", "en")
        source = Source(None, self.folder / "store", self.folder / "downloads.lock")
        download_corpus("c", files, raw, self.folder / "ledger.json", source)
        return b"".join(path.read_bytes() for path in raw.files("train"))

    def refusal(self):
        with pytest.raises(UserError) as error:
            self.read()
        assert not (self.folder / "raw").exists() and not (self.folder / "ledger.json").exists()
        assert self.german.url not in self.locked()
        assert "\n" not in str(error.value)
        return str(error.value)

    def locked(self):
        lock = self.folder / "downloads.lock"
        return json.loads(lock.read_text()) if lock.exists() else {}


WHOLE = GERMAN + ENGLISH


@pytest.fixture
def corpus(tmp_path, host):
    return Corpus(tmp_path, host)


def page(body, **headers):
    return status(200, body, **headers)


def drip(delay, count, head=b""):
    """Send the page's first `count` bytes one by one; before the headers if there is a `head`."""

    def answer(handler, it):
        if head:
            handler.wfile.write(head)
        else:
            handler.head(200, {"Content-Length": len(it.body)})
        for place in range(count):
            handler.body(it.body[place : place + 1] if not head else b"x")
            time.sleep(delay)

    return answer


def without_end(handler, _):
    """A body in chunks that goes on, far beyond the file, until the client closes it."""
    handler.head(200, {"Transfer-Encoding": "chunked"})
    for _ in range(3200):
        handler.body(b"10000\r\n%s\r\n" % (b"x" * (1 << 16)))


# Wrong the first time, right the next


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (page(PORTAL), "a web page came in its place ('Hotel Wi-Fi: log in')"),
        (page(b"\xef\xbb\xbf\n<HTML>"), "a web page came in its place"),
        (page(b'{"error": {"code": 404}}\n'), "a web page came in its place (JSON)"),
        (page(b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">'), "a web page came in"),
        (page(b"<!-- login -->\n<html>"), "a web page came in its place"),
        (page(b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code>'), "a web page came in"),
        (page(GERMAN[:5000]), "not parallel"),  # the length is that of what is sent
        (page(b"\x1f\x8b" + GERMAN, Content_Encoding="gzip"), "Content-Encoding: gzip, which was"),
        (page(GERMAN, Content_Encoding="br"), "Content-Encoding: br, which was not asked for"),
        (page(b""), "not parallel"),
        (page(GERMAN.replace(b"7", b"7\xe4")), "is 0xe4: not UTF-8"),
        (status(204), "HTTP 204"),
        (status(206, GERMAN[5:], Content_Range="bytes 5-9/10"), "HTTP 206"),
        (status(302, Location="file:///etc/hostname"), "No connection adapters"),
    ],
    ids=[
        *(
            "captive portal",
            "page with mark",
            "json",
            "xhtml",
            "page with comment",
            "error of a store",
            "cut short",
            "packed",
            "packed by br",
            "empty",
        ),
        *("another encoding", "no content", "part", "local file"),
    ],
)
def test_running_again_is_enough_after_a_wrong_first_download(corpus, host, wrong, message):
    host.script["/x"] = [wrong]
    assert message in corpus.refusal()
    assert corpus.read() == WHOLE
    assert corpus.locked()[corpus.german.url]["sha256"] == sum_of(GERMAN)
    host.seen.clear()
    assert corpus.read() == WHOLE and host.seen == []


def test_a_portal_that_answers_every_address_is_not_a_corpus(corpus, host):
    """Both files would be the same page, and parallel."""
    host.script["/x"], host.script["/y"] = [page(PORTAL)], [page(PORTAL)]
    for url in (corpus.german.url, corpus.english.url):
        assert f"{url}: a web page came in its place" in corpus.refusal()
    assert corpus.read() == WHOLE


def test_a_portal_that_redirects_is_named(corpus, host):
    login = host.put("/login?session=1", PORTAL)
    host.script["/x"] = [status(302, Location=login)]
    assert f"{corpus.german.url}: a web page came in its place from {login}" in corpus.refusal()
    assert corpus.read() == WHOLE


def test_a_wrong_file_of_the_right_length_is_named_until_it_is_removed(corpus, host):
    host.script["/x"] = [page(b"x" * (len(GERMAN) - 1) + b"\n")]
    for _ in range(2):
        message = corpus.refusal()
        assert "not parallel" in message
        path = corpus.folder / "store" / sum_of(corpus.german.url.encode())
        assert str(path) in message
    path.unlink()
    assert corpus.read() == WHOLE


def test_a_setting_that_is_wrong_costs_no_second_download(corpus, host):
    corpus.english = File(url=host.put("/wrong", ENGLISH + b"one more\n"))
    assert "not parallel" in corpus.refusal()
    corpus.english = File(url=host.url("/y"))
    written = {file: file.stat().st_mtime_ns for file in left(corpus.folder)}
    assert corpus.read() == WHOLE
    assert (
        written.items() <= {file: file.stat().st_mtime_ns for file in left(corpus.folder)}.items()
    )


def test_a_server_that_is_down_leaves_what_is_here(corpus, host):
    corpus.english = File(url=host.url("/no"))
    assert "HTTP 404" in corpus.refusal()
    host.script["/x"] = [status(503)]
    corpus.english = File(url=host.put("/y", ENGLISH))
    assert corpus.read() == WHOLE


def test_where_a_file_came_from_in_the_end_is_in_the_ledger(corpus, host):
    there = host.put("/store/v2?signature=secret", GERMAN)
    host.script["/x"] = [status(302, Location="/hop"), status(404)]
    host.script["/hop"] = [status(307, Location=there)]
    for _ in range(2):
        assert corpus.read() == WHOLE
        redirected = json.loads((corpus.folder / "ledger.json").read_text())["redirected"]
        assert redirected == {corpus.german.url: host.url("/store/v2")}
    assert "secret" not in (corpus.folder / "downloads.lock").read_text()


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_packed_file_may_be_said_to_be_packed(tmp_path, host, encoding):
    """As Apache does by its default settings."""
    import gzip

    packed = gzip.compress(GERMAN)
    corpus = Corpus(tmp_path, host)
    corpus.german = File(url=host.put("/x.de.gz", packed, Content_Encoding=encoding))
    assert corpus.read() == WHOLE


# Servers that do not end


@pytest.mark.parametrize("known", [{"size": len(GERMAN)}, {"size": 7, "sha256": "0" * 64}])
def test_no_length_and_no_end(tmp_path, host, known):
    corpus = Corpus(tmp_path, host, **known)
    host.script["/x"] = [without_end]
    message = corpus.refusal()
    assert f"expected {known['size']} bytes, and the server sends more" in message
    assert host.seen[0].sent < 100_000_000  # of 200: what the sockets hold; one block is read
    assert left(tmp_path) == []


@pytest.mark.parametrize("known", [{}, {"sha256": sum_of(GERMAN)}])
def test_a_byte_now_and_then(tmp_path, host, monkeypatch, known):
    monkeypatch.setattr(http, "PERIOD", 0.5)
    monkeypatch.setattr(http, "ATTEMPTS", 2)
    corpus = Corpus(tmp_path, host, **known)
    host.script["/x"] = [drip(0.02, 1000)] * 2
    assert "fewer than 65536 bytes in 0.5 seconds" in corpus.refusal()
    assert max(seen.sent for seen in host.seen) < 500  # of 1,000 in 20 seconds
    host.script["/x"] = []
    assert corpus.read() == WHOLE


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\nX-Slow: ", b"HTTP/1.1 2"])
def test_headers_that_do_not_end(corpus, host, monkeypatch, head):
    monkeypatch.setattr(http, "PERIOD", 0.5)
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    host.script["/x"] = [drip(0.02, 200, head)]
    assert "no answer in 0.5 seconds" in corpus.refusal()
    monkeypatch.setattr(http, "PERIOD", 60.0)
    assert corpus.read() == WHOLE


def test_a_chunk_size_that_does_not_end(corpus, host, monkeypatch):
    monkeypatch.setattr(http, "PERIOD", 0.5)
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    host.script["/x"] = [drip(0.02, 1000, head)]
    assert "fewer than 65536 bytes" in corpus.refusal()
    assert host.seen[0].sent < 500


def test_a_slow_server_that_is_fast_enough(corpus, host, monkeypatch):
    monkeypatch.setattr(http, "PERIOD", 0.3)
    monkeypatch.setattr(http, "SLOWEST", 1000)
    monkeypatch.setattr(http, "_BLOCK", 100)

    def slowly(handler, it):
        handler.head(200, {"Content-Length": len(it.body)})
        for start in range(0, len(it.body), 500):
            handler.wfile.write(it.body[start : start + 500])
            time.sleep(0.03)

    host.script["/x"] = [slowly]
    assert corpus.read() == WHOLE


# Servers that break off, go in circles or change their mind


@pytest.mark.parametrize("path", ["/x", "/y"])
@pytest.mark.parametrize(
    "broken",
    [
        *(hang_up, status(503), status(429, Retry_After="1"), cut(17), cut(0)),
        in_chunks(GERMAN[:HALF], end=False),
    ],
    ids=["hung up", "503", "429", "cut", "no body", "chunks cut"],
)
def test_a_fault_that_passes(corpus, host, path, broken):
    host.script[path] = [broken] * 2
    assert corpus.read() == WHOLE


@pytest.mark.parametrize("hops", [["/x"], ["/a", "/b", "/x"], ["//"], ["http://[::"]])
def test_redirects_that_lead_nowhere(corpus, host, hops):
    for here, there in zip(["/x", *hops], hops, strict=False):
        host.script[here] = [status(302, Location=there)] * 40
    assert corpus.german.url in corpus.refusal()
    host.script.clear()
    assert corpus.read() == WHOLE


@pytest.mark.parametrize(
    "second",
    [
        status(206, NEW[HALF:], Content_Range=f"bytes {HALF}-{len(BODY) - 1}/{len(BODY)}"),
        status(206, BODY[HALF:], Content_Range=f"bytes 0-{len(BODY) - 1}/{len(BODY)}"),
        status(206, BODY[:HALF], Content_Range="bytes 0-9/9"),
        status(206, BODY[HALF:]),
        status(200, NEW, ETag='"two"'),
        status(416, Content_Range="bytes */10"),
        status(206, BODY[HALF:], Content_Range=f"bytes {HALF}-/{len(BODY)}"),
    ],
    ids=["other version", "range from 0", "wrong part", "no range", "ETag changed", "416", "open"],
)
def test_a_download_that_is_gone_on_with_is_the_published_file_or_none(tmp_path, host, second):
    lines = BODY.count(b"\n") + (not BODY.endswith(b"\n"))
    host.put("/z", BODY, ETag='"one"')
    host.script["/z"] = [cut(HALF), second]
    corpus = Corpus(tmp_path, host)
    corpus.german = File(url=host.url("/z"), sha256=sum_of(BODY))
    corpus.english = File(url=host.put("/y", b"x\n" * lines))
    for _ in range(2):
        message = corpus.refusal()  # BODY is no text: it was read when it was whole
        if "not UTF-8" in message:
            break
    assert "not UTF-8" in message
    assert sum_of(BODY) in [sum_of(file.read_bytes()) for file in left(tmp_path)]


def test_two_runs_at_once_under_a_broken_server(tmp_path, host):
    host.script["/x"], host.script["/y"] = [cut(100), hang_up], [status(503)]
    corpora = [Corpus(tmp_path, host) for _ in range(2)]
    done = []

    def run(corpus, name):
        corpus.folder = tmp_path / name
        corpus.folder.mkdir()
        done.append(corpus.read())

    threads = [
        threading.Thread(target=run, args=(c, n)) for c, n in zip(corpora, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [WHOLE] * 2
