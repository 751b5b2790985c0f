"""Downloads over HTTP, whole and resumed, in one process or in the next."""

import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from dataclasses import replace

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress
from downloads import BODY, CHILD, HALF, get, kept, left, ranges, refused, sum_of
from servers import cut, hang_up, in_chunks, serve, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

REST = f"bytes={HALF}-"


@pytest.fixture
def file(host):
    return File(url=host.put("/x", BODY), sha256=sum_of(BODY))


# Whole files


def test_a_file_is_fetched_once_and_kept(tmp_path, host, file):
    assert get(tmp_path, file) == get(tmp_path, file) == BODY
    assert [seen.headers["Accept-Encoding"] for seen in host.seen] == ["identity"]
    assert left(tmp_path) == kept(tmp_path)
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())


def test_redirects_are_followed_also_when_resuming(tmp_path, host, file):
    host.script["/old"] = [status(302, Location=file.url)] * 2
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=host.url("/old"), sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, REST]


def test_a_public_host_cannot_redirect_to_this_machine(tmp_path, host, file, monkeypatch):
    """The test's host stands for a public one; localhost is this machine."""
    target = file.url.replace("127.0.0.1", "localhost")
    host.script["/old"] = [status(302, Location=target)] * 2
    given = File(url=host.url("/old"), sha256=sum_of(BODY))
    assert get(tmp_path, given) == BODY  # a mirror on this machine
    monkeypatch.setattr(http, "_is_internal", lambda url: "localhost" in url)
    asked = len(host.asked("/x"))
    message = refused(tmp_path, replace(given, sha256="0" * 64))
    assert f"{given.url}: redirects to {target}, an address of this machine" in message
    assert len(host.asked("/x")) == asked


@pytest.mark.parametrize(
    ("host", "internal"),
    [
        ("127.0.0.1", True),
        ("127.1", True),
        ("localhost:8080", True),
        ("[::1]", True),
        ("10.1.2.3", True),
        ("192.168.0.1", True),
        ("169.254.169.254", True),
        ("[fe80::1]", True),
        ("[::ffff:127.0.0.1]", True),
        ("0.0.0.0", True),
        ("93.184.216.34", False),
        ("[2606:2800:220:1::1]", False),
        ("no-such-host.invalid", False),
    ],
)
def test_addresses_that_are_not_of_the_internet(host, internal):
    assert http._is_internal(f"http://{host}/x") == internal


@pytest.mark.parametrize("code", [404, 403, 410])
def test_a_missing_page_is_requested_once(tmp_path, host, code, pauses):
    host.script["/no"] = [status(code)] * 9
    message = refused(tmp_path, File(url=host.url("/no")))
    assert host.url("/no") in message and f"HTTP {code}" in message
    assert "BLEUPRINT_MIRROR" in message
    assert len(host.seen) == 1 and pauses == []


@pytest.mark.parametrize(
    ("known", "shown"),
    [({"sha256": "0" * 64}, ("0" * 64, sum_of(BODY))), ({"size": 7}, ("7 bytes", str(len(BODY))))],
)
def test_a_wrong_sum_or_size_shows_both_and_leaves_nothing(tmp_path, host, known, shown):
    url = host.put("/x", BODY)
    message = refused(tmp_path, File(url=url, **known))
    assert all(part in message for part in (url, *shown))
    assert left(tmp_path) == [] and len(host.seen) == 1


def test_letters_of_a_url_are_quoted_once(tmp_path, host):
    host.put("/%C3%A4%25?q=%C3%B6&r=1", BODY)
    assert get(tmp_path, File(url=host.url("/ä%25?q=ö&r=1"))) == BODY


def test_a_file_without_a_length_ends_with_its_last_chunk(tmp_path, host):
    url = host.url("/x")
    host.script["/x"] = [in_chunks(BODY[:HALF], BODY[HALF:])]
    assert get(tmp_path, File(url=url)) == BODY
    assert len(host.seen) == 1


# Errors that may pass


@pytest.mark.parametrize("error_of", [status(503), hang_up, cut(9)])
def test_a_lasting_error_ends_after_five_attempts_with_growing_pauses(
    tmp_path, host, pauses, capfd, error_of
):
    url = host.put("/x", BODY, ranges=False)
    host.script["/x"] = [error_of] * 99
    assert "cannot be fetched" in refused(tmp_path, File(url=url))
    assert len(host.seen) == http.ATTEMPTS == 5
    assert pauses == [1, 2, 4, 8]
    assert capfd.readouterr().err.count(f"{url}: ") == 4
    assert kept(tmp_path) == []


def test_attempts_that_make_progress_do_not_count(tmp_path, host, file, monkeypatch):
    monkeypatch.setattr(http, "MIN_PROGRESS", 10_000)
    host.script["/x"] = [cut(20_000)] * 12
    assert get(tmp_path, file) == BODY
    assert ranges(host)[1:] == [f"bytes={20_000 * n}-" for n in range(1, 13)]


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
def test_an_error_of_a_server_that_may_pass_is_tried_again(tmp_path, host, file, code):
    host.script["/x"] = [status(code)]
    assert get(tmp_path, file) == BODY
    assert len(host.seen) == 2


def test_attempts_that_download_the_same_bytes_again_count(tmp_path, host, monkeypatch):
    """Without a SHA-256 each attempt begins at the first byte, so none of them is progress."""
    monkeypatch.setattr(http, "MIN_PROGRESS", 10_000)
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(20_000)] * 99
    assert "IncompleteRead(20000 bytes read, " in refused(tmp_path, File(url=url))
    assert len(host.seen) == http.ATTEMPTS


def test_retry_after_in_seconds(tmp_path, host, file, pauses):
    host.script["/x"] = [status(503, Retry_After="77"), status(429, Retry_After="0")]
    assert get(tmp_path, file) == BODY
    assert pauses == [77, 2]


def test_a_retry_after_that_is_too_long_ends_the_download(tmp_path, host, pauses):
    host.script["/x"] = [status(503, Retry_After="86400")]
    message = refused(tmp_path, File(url=host.url("/x")))
    assert "HTTP 503" in message and "Retry-After: 86400" in message and pauses == []


@pytest.mark.parametrize(("listens", "message"), [(False, "refused"), (True, "timed out")])
def test_a_host_that_does_not_answer_is_named(tmp_path, monkeypatch, listens, message):
    monkeypatch.setattr(http, "TIMEOUT", 0.05)
    monkeypatch.setattr(http, "ATTEMPTS", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        found = refused(tmp_path, File(url=url))
    assert url in found and message in found and "BLEUPRINT_MIRROR" in found


def test_a_server_without_length_does_not_fill_the_disk_nor_drip_for_ever(
    tmp_path, host, monkeypatch
):
    def answer(bytes_, pause):
        def send(handler, _):
            handler.head(200, {})
            for _ in range(1000):
                handler.body(bytes_)
                time.sleep(pause)

        return send

    host.script["/x"] = [answer(bytes(200_000), 0)]
    assert "expected 7 bytes, found " in refused(tmp_path, File(url=host.url("/x"), size=7))
    monkeypatch.setattr(http, "PERIOD", 0.5)
    monkeypatch.setattr(http, "ATTEMPTS", 2)
    host.script["/x"] = [answer(b"x", 0.02)] * 2
    message = refused(tmp_path, File(url=host.url("/x")))
    assert "fewer than 65536 bytes in 0.5 seconds" in message
    assert host.seen[0].sent < 100_000_000 and max(seen.sent for seen in host.seen[1:]) < 500


# Downloads that break off and are resumed


@pytest.mark.parametrize("ranges_known", [True, False])
@pytest.mark.parametrize("known", [{}, {"sha256": sum_of(BODY)}])
def test_only_a_file_with_a_sum_is_resumed(tmp_path, host, known, ranges_known):
    url = host.put("/x", BODY, ranges=ranges_known, ETag='"one"')
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url, **known)) == BODY
    assert ranges(host) == [None, REST if known else None]
    assert host.seen[1].sent == len(BODY) - (HALF if known and ranges_known else 0)
    assert left(tmp_path) == kept(tmp_path)


def test_a_download_that_stalls_is_resumed(tmp_path, host, file, monkeypatch):
    monkeypatch.setattr(http, "TIMEOUT", 1.0)
    over = threading.Event()
    host.script["/x"] = [stall(HALF, over)]
    assert get(tmp_path, file) == BODY
    assert HALF - (1 << 16) < int(ranges(host)[1].removeprefix("bytes=").removesuffix("-")) <= HALF
    over.set()


@pytest.fixture
def partial(tmp_path, host, file, monkeypatch):
    """What an earlier process left of `file`: its first half."""
    host.script["/x"] = [cut(HALF)]
    with monkeypatch.context() as patch:
        patch.setattr(http, "ATTEMPTS", 1)
        refused(tmp_path, file)
    host.seen.clear()
    (partial,) = left(tmp_path)
    assert partial.read_bytes() == BODY[:HALF]
    return partial


@pytest.mark.usefixtures("partial")
def test_another_process_resumes_with_its_progress(tmp_path, host, file, monkeypatch):
    shown = []

    class Shown(Progress):
        def __init__(self, what, total, unit, start):
            shown.append([what, total, unit, start])
            super().__init__(what, total, unit, start)

        def advance(self, count):
            shown[-1][-1] += count

    monkeypatch.setattr(http, "Progress", Shown)
    host.script["/x"] = [cut(1000)]
    assert get(tmp_path, file) == BODY
    assert ranges(host) == [REST, f"bytes={HALF + 1000}-"]
    assert shown == [["x", len(BODY), "B", end] for end in (HALF + 1000, len(BODY))]


def test_a_partial_file_that_is_complete_is_used(tmp_path, host, file, partial):
    partial.write_bytes(BODY)  # killed before it could be renamed
    assert get(tmp_path, file) == BODY
    assert [(seen.range, seen.sent) for seen in host.seen] == [(f"bytes={len(BODY)}-", 0)]


@pytest.fixture
def child(tmp_path, host):
    """Starts a process that downloads the file, whose sum is locked."""
    url = host.put("/x", BODY)
    (tmp_path / "downloads.lock").write_text(
        f'{{"{url}": {{"sha256": "{sum_of(BODY)}", "size": {len(BODY)}}}}}'
    )
    return lambda: subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), url])


def test_a_killed_process_costs_no_byte_twice(tmp_path, host, child):
    over = threading.Event()
    host.script["/x"] = [stall(HALF, over)]
    process = child()
    partial = tmp_path / "store" / f"{sum_of(host.url('/x').encode())}.partial"
    while not partial.exists() or partial.stat().st_size < 100_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    over.set()
    size = partial.stat().st_size
    assert partial.read_bytes() == BODY[:size]
    assert kept(tmp_path) == []
    assert get(tmp_path, File(url=host.url("/x"))) == BODY
    rest = host.seen[1:]
    assert [(seen.range, seen.sent) for seen in rest] == [(f"bytes={size}-", len(BODY) - size)]


def test_two_processes_download_a_file_once(host, child):
    assert [process.wait() for process in [child(), child()]] == [0, 0]
    assert len(host.seen) == 1


# User names and passwords


def locked(handler, page):
    """Serve the page to user me with password secret alone."""
    if handler.headers["Authorization"] == f"Basic {b64encode(b'me:secret').decode()}":
        serve(handler, page)
    else:
        status(401, WWW_Authenticate='Basic realm="corpora"')(handler, page)


@pytest.fixture
def netrc(tmp_path, monkeypatch):
    path = tmp_path / "netrc"
    monkeypatch.setenv("NETRC", str(path))
    return path


def test_a_password_comes_from_netrc(tmp_path, host, netrc):
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    url = host.put("/x", BODY)
    host.script["/x"] = [locked, locked]
    assert get(tmp_path, File(url=url)) == BODY
    lock = (tmp_path / "downloads.lock").read_text()
    assert url in lock and "secret" not in lock


def test_a_password_goes_to_no_other_host(tmp_path, host, netrc):
    """Other names of the same machine are other hosts."""
    netrc.write_text("machine localhost login me password secret\n")
    url = host.put("/x", BODY)
    host.script["/old"] = [status(302, Location=url)]
    host.script["/x"] = [locked, locked]
    named = host.url("/old").replace("127.0.0.1", "localhost")
    message = refused(tmp_path, File(url=named))
    assert "HTTP 401 Unauthorized (user name and password: " in message and "secret" not in message
    assert "Authorization" in host.asked("/old")[0].headers
    assert not any("Authorization" in seen.headers for seen in host.asked("/x"))


def test_a_mirror_with_a_password_is_refused(monkeypatch):
    monkeypatch.setenv("BLEUPRINT_MIRROR", "http://me:secret@127.0.0.1/mirror")
    with pytest.raises(UserError, match="BLEUPRINT_MIRROR holds a user name, password") as error:
        downloads_of_environment()
    assert "secret" not in str(error.value)
