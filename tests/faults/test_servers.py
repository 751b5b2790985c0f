"""Hostile and broken servers, one behaviour a path, between a user's corpus and its download.

Each is a local server. What is promised: the corpus is read as published, or the stage ends in one
line and leaves nothing that looks finished; and when the server is right again, running again is
all that it takes, once the download that the line may name is removed.
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
        source = Downloads(None, self.folder / "store", self.folder / "downloads.lock")
        download_corpus("c", files, raw, self.folder / "filter_stats.json", source)
        return b"".join(path.read_bytes() for path in raw.files("train"))

    def refusal(self):
        with pytest.raises(UserError) as error:
            self.read()
        assert (
            not (self.folder / "raw").exists() and not (self.folder / "filter_stats.json").exists()
        )
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


# Wrong the first time, right the next


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (page(PORTAL), "a web page came in its place"),
        (page(b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x">'), "a web page came in"),
        (page(b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code>'), "a web page came in"),
        (page(GERMAN[:5000]), "not parallel"),  # the length is that of what is sent
        (page(gzip.compress(GERMAN), Content_Encoding="gzip"), "the file is packed: gzip -dc <"),
        (page(b""), "not parallel"),
        (page(GERMAN.replace(b"7", b"7\xe4")), "is 0xe4: not UTF-8"),
        (status(204), "HTTP 204"),
        (status(206, GERMAN[5:], Content_Range="bytes 5-9/10"), "HTTP 206"),
        (status(302, Location="file:///etc/hostname"), "No connection adapters"),
    ],
    ids=[
        *("captive portal", "xhtml", "error of a store", "cut short", "packed", "empty"),
        *("another encoding", "no content", "part", "local file"),
    ],
)
def test_a_wrong_first_download_is_not_there_or_named(corpus, host, wrong, message):
    host.script["/x"] = [wrong]
    refusal = corpus.refusal()
    assert message in refusal
    kept = corpus.folder / "store" / sum_of(corpus.german.url.encode())
    assert kept.exists() == (str(kept) in refusal)
    kept.unlink(missing_ok=True)
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


def test_a_setting_that_is_wrong_costs_no_second_download(corpus, host):
    corpus.english = File(url=host.put("/wrong", ENGLISH + b"one more\n"))
    assert "not parallel" in corpus.refusal()
    corpus.english = File(url=host.url("/y"))
    written = {file: file.stat().st_mtime_ns for file in left(corpus.folder)}
    assert corpus.read() == WHOLE
    assert (
        written.items() <= {file: file.stat().st_mtime_ns for file in left(corpus.folder)}.items()
    )


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_packed_file_may_be_said_to_be_packed(tmp_path, host, encoding):
    """As Apache does by its default settings."""
    packed = gzip.compress(GERMAN)
    corpus = Corpus(tmp_path, host)
    corpus.german = File(url=host.put("/x.de.gz", packed, Content_Encoding=encoding))
    assert corpus.read() == WHOLE


# Servers that break off, go in circles or change their mind


@pytest.mark.parametrize(("slowest", "is_enough"), [(500, True), (1000, False)])
def test_a_slow_server_is_read_from_if_it_is_fast_enough(
    corpus, host, monkeypatch, slowest, is_enough
):
    """By a clock that goes on by a second at each look: 600 bytes come in a period."""
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None)
    monkeypatch.setattr(http, "time", clock)
    monkeypatch.setattr(http, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(http, "PERIOD", 5)
    monkeypatch.setattr(http, "SLOWEST", slowest)
    if is_enough:
        assert corpus.read() == WHOLE
    else:
        assert "fewer than 1000 bytes in 5 seconds" in corpus.refusal()
    assert len(host.seen) == (2 if is_enough else http.ATTEMPTS)


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
