"""Files are downloaded over HTTP: requests, errors, pauses, and user names with passwords."""

import socket
import time
from base64 import b64encode
from dataclasses import replace

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.runtime.errors import UserError
from downloads import (
    CONTENT,
    HALF_SIZE,
    complete_files,
    download,
    download_error,
    files_in_store,
    requested_ranges,
    sha256_of,
)
from servers import break_off_after, hang_up, in_chunks, serve, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")


# Whole files


def test_a_file_is_downloaded_once_and_kept(tmp_path, host, file):
    """The second download finds the file in the store; its name there is the SHA-256 of its URL."""
    assert download(tmp_path, file) == CONTENT
    assert download(tmp_path, file) == CONTENT

    requests = host.requests
    assert len(requests) == 1
    assert files_in_store(tmp_path) == complete_files(tmp_path)
    assert complete_files(tmp_path)[0].name == sha256_of(file.url.encode())


def test_a_file_is_requested_without_compression(tmp_path, host, file):
    download(tmp_path, file)

    assert host.requests[0].headers["Accept-Encoding"] == "identity"


def test_redirects_are_followed_also_when_a_download_is_resumed(tmp_path, host, file):
    """The server redirects /old to /x, and breaks off the first response."""
    redirect = status(302, Location=file.url)
    host.respond_with("/old", [redirect, redirect])
    # The first response ends after half of the file.
    host.respond_with("/x", [break_off_after(HALF_SIZE)])

    content = download(tmp_path, File(url=host.url("/old"), sha256=sha256_of(CONTENT)))

    assert content == CONTENT
    assert requested_ranges(host) == [None, f"bytes={HALF_SIZE}-"]


def test_a_host_on_this_machine_may_redirect_to_this_machine(tmp_path, host, file):
    """A mirror may run on this machine; only public hosts must not redirect to it."""
    url_on_this_machine = file.url.replace("127.0.0.1", "localhost")
    host.respond_with("/old", [status(302, Location=url_on_this_machine)])

    content = download(tmp_path, File(url=host.url("/old"), sha256=sha256_of(CONTENT)))

    assert content == CONTENT


def test_a_public_host_cannot_redirect_to_this_machine(tmp_path, host, file, monkeypatch):
    """A malicious host could otherwise make the download read private services of this machine."""
    # In this test, 127.0.0.1 counts as a public host, and localhost is this machine.
    monkeypatch.setattr(http, "_is_internal", lambda url: "localhost" in url)
    url_on_this_machine = file.url.replace("127.0.0.1", "localhost")
    host.respond_with("/old", [status(302, Location=url_on_this_machine)])
    redirected_url = host.url("/old")

    message = download_error(tmp_path, replace(file, url=redirected_url))

    assert (
        f"{redirected_url}: redirects to {url_on_this_machine}, an address of this machine"
    ) in message
    assert host.requests_for("/x") == []


@pytest.mark.parametrize(
    ("host", "is_internal"),
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
def test_addresses_outside_of_the_internet_are_internal(host, is_internal):
    assert http._is_internal(f"http://{host}/x") == is_internal


@pytest.mark.parametrize("code", [404, 403, 410])
def test_a_missing_page_is_requested_once(tmp_path, host, code, pauses):
    """A second attempt would fail in the same way, so that no time is lost on pauses."""
    host.respond_with("/no", [status(code)] * 9)

    message = download_error(tmp_path, File(url=host.url("/no")))

    assert host.url("/no") in message
    assert f"HTTP {code}" in message
    assert "BLEUPRINT_MIRROR" in message
    assert len(host.requests) == 1  # Requests.
    assert pauses == []


def test_a_wrong_sum_is_an_error_that_shows_both_sums_and_leaves_no_file(tmp_path, host):
    """The settings of the file contain a SHA-256 that its content does not have."""
    url = host.put("/x", CONTENT)
    expected_sum = "0" * 64

    message = download_error(tmp_path, File(url=url, sha256=expected_sum))

    assert url in message
    assert expected_sum in message
    assert sha256_of(CONTENT) in message
    assert files_in_store(tmp_path) == []
    assert len(host.requests) == 1  # Another attempt would give the same file.


def test_a_wrong_size_is_an_error_that_shows_both_sizes_and_leaves_no_file(tmp_path, host):
    """The settings of the file contain a size that its content does not have."""
    url = host.put("/x", CONTENT)

    message = download_error(tmp_path, File(url=url, size=7))

    assert url in message
    assert "7 bytes" in message
    assert str(len(CONTENT)) in message
    assert files_in_store(tmp_path) == []
    assert len(host.requests) == 1  # Another attempt would give the same file.


def test_letters_of_a_url_are_quoted_but_not_twice(tmp_path, host):
    host.put("/%C3%A4%25?q=%C3%B6&r=1", CONTENT)

    assert download(tmp_path, File(url=host.url("/ä%25?q=ö&r=1"))) == CONTENT


def test_a_response_in_chunks_without_a_length_is_read_to_its_end(tmp_path, host):
    host.respond_with("/x", [in_chunks(CONTENT[:HALF_SIZE], CONTENT[HALF_SIZE:])])

    assert download(tmp_path, File(url=host.url("/x"))) == CONTENT
    assert len(host.requests) == 1


# Errors that may pass


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(status(503), id="HTTP 503"),
        pytest.param(hang_up, id="connection closed"),
        pytest.param(break_off_after(9), id="cut short after 9 bytes"),
    ],
)
def test_a_download_fails_after_five_attempts_with_growing_pauses(
    tmp_path, host, pauses, capfd, failure
):
    """The server answers every request with the failure."""
    url = host.put("/x", CONTENT, ranges=False)
    host.respond_with("/x", [failure] * 99)

    message = download_error(tmp_path, File(url=url))

    assert "cannot be downloaded" in message
    assert http.MAX_ATTEMPTS == 5
    assert len(host.requests) == 5  # Requests.
    assert pauses == [1, 2, 4, 8]  # Seconds.
    # One line before each pause.
    assert capfd.readouterr().err.count(f"{url}: ") == 4
    assert complete_files(tmp_path) == []


def test_attempts_that_make_progress_are_not_counted(tmp_path, host, file, monkeypatch):
    """A large file may need many attempts over a bad connection.

    Each of 12 responses breaks off after 20,000 bytes, which is more than the 10,000 that count as
    progress here.
    """
    monkeypatch.setattr(http, "MIN_PROGRESS_BYTES", 10_000)
    # More attempts than are allowed without progress.
    host.respond_with("/x", [break_off_after(20_000)] * 12)

    assert download(tmp_path, file) == CONTENT

    expected_ranges = [None]  # The first request is for the whole file.
    for finished_attempts in range(1, 13):
        expected_ranges.append(f"bytes={20_000 * finished_attempts}-")
    assert requested_ranges(host) == expected_ranges


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
def test_a_server_error_that_may_pass_is_tried_again(tmp_path, host, file, code):
    host.respond_with("/x", [status(code)])

    assert download(tmp_path, file) == CONTENT
    assert len(host.requests) == 2


def test_attempts_that_download_the_same_bytes_again_are_counted(tmp_path, host, monkeypatch):
    """Without a known SHA-256, each attempt begins at the first byte and makes no progress.

    Each response breaks off after 20,000 bytes; with a SHA-256, 10,000 would count as progress
    here.
    """
    monkeypatch.setattr(http, "MIN_PROGRESS_BYTES", 10_000)
    url = host.put("/x", CONTENT)
    host.respond_with("/x", [break_off_after(20_000)] * 99)

    message = download_error(tmp_path, File(url=url))

    assert "IncompleteRead(20000 bytes read, " in message
    assert len(host.requests) == http.MAX_ATTEMPTS


def test_a_longer_pause_is_made_if_the_server_asks_for_it(tmp_path, host, file, pauses):
    """The header Retry-After contains the seconds to wait; it cannot make a pause shorter."""
    host.respond_with("/x", [status(503, Retry_After="77"), status(429, Retry_After="0")])

    assert download(tmp_path, file) == CONTENT

    # Without Retry-After, the pauses would be 1 and 2 seconds.
    assert pauses == [77, 2]


def test_a_download_fails_if_the_server_asks_for_a_pause_of_a_day(tmp_path, host, pauses):
    """Waiting so long without a message would look like a program that hangs."""
    host.respond_with("/x", [status(503, Retry_After="86400")])  # Seconds of a day.

    message = download_error(tmp_path, File(url=host.url("/x")))

    assert "HTTP 503" in message
    assert "Retry-After: 86400" in message
    assert pauses == []


@pytest.mark.parametrize(
    ("listens", "problem"),
    [
        pytest.param(False, "refused", id="no server"),
        pytest.param(True, "timed out", id="server that never answers"),
    ],
)
def test_a_host_that_does_not_answer_is_named(tmp_path, monkeypatch, listens, problem):
    """The message also names BLEUPRINT_MIRROR, the way to work without this host."""
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(http, "MAX_ATTEMPTS", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"

        message = download_error(tmp_path, File(url=url))

    assert url in message
    assert problem in message
    assert "BLEUPRINT_MIRROR" in message


def send_repeatedly(content, pause):
    """Return a response without a length that sends content 1,000 times.

    Args:
        content: The bytes.
        pause: The seconds between two times.
    """

    def send(handler, _):
        handler.head(200, {})
        for _ in range(1000):
            handler.body(content)
            time.sleep(pause)

    return send


def test_a_response_that_is_longer_than_the_known_size_is_not_read_to_its_end(tmp_path, host):
    """Reading it would fill the disk: the server would send 200 MB instead of 7 bytes."""
    host.respond_with("/x", [send_repeatedly(bytes(200_000), pause=0)])

    message = download_error(tmp_path, File(url=host.url("/x"), size=7))

    assert "expected 7 bytes, found " in message
    assert host.requests[0].sent_bytes < 100_000_000


def test_a_response_that_is_too_slow_is_not_read_to_its_end(tmp_path, host, monkeypatch):
    """The server sends a byte every 0.02 seconds, so that the connection never times out."""
    monkeypatch.setattr(http, "PERIOD_SECONDS", 0.5)
    monkeypatch.setattr(http, "MAX_ATTEMPTS", 2)
    slow_response = send_repeatedly(b"x", pause=0.02)
    host.respond_with("/x", [slow_response, slow_response])

    message = download_error(tmp_path, File(url=host.url("/x")))

    assert "fewer than 65536 bytes came in 0.5 seconds" in message
    assert len(host.requests) == 2
    for request in host.requests:
        assert request.sent_bytes < 500


# User names and passwords


def serve_with_password(handler, page):
    """Serve the page to user me with password secret alone."""
    credentials = b64encode(b"me:secret").decode()
    if handler.headers["Authorization"] == f"Basic {credentials}":
        serve(handler, page)
    else:
        status(401, WWW_Authenticate='Basic realm="corpora"')(handler, page)


@pytest.fixture
def netrc(tmp_path, monkeypatch):
    """The path of the file with user names and passwords."""
    path = tmp_path / "netrc"
    monkeypatch.setenv("NETRC", str(path))
    return path


def test_a_password_comes_from_netrc_and_is_not_recorded(tmp_path, host, netrc):
    """The lock is committed to Git, so that it must not contain passwords."""
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    url = host.put("/x", CONTENT)
    host.respond_with("/x", [serve_with_password, serve_with_password])

    assert download(tmp_path, File(url=url)) == CONTENT

    lock = (tmp_path / "downloads.lock").read_text()
    assert url in lock
    assert "secret" not in lock  # The password.


def test_a_password_is_not_sent_to_the_host_of_a_redirect(tmp_path, host, netrc):
    """The password is for localhost, which redirects to 127.0.0.1: for HTTP, a different host."""
    netrc.write_text("machine localhost login me password secret\n")
    url = host.put("/x", CONTENT)
    host.respond_with("/old", [status(302, Location=url)])
    host.respond_with("/x", [serve_with_password, serve_with_password])
    url_at_localhost = host.url("/old").replace("127.0.0.1", "localhost")

    message = download_error(tmp_path, File(url=url_at_localhost))

    assert "HTTP 401 Unauthorized (user name and password belong in " in message
    assert "secret" not in message
    assert "Authorization" in host.requests_for("/old")[0].headers
    for request in host.requests_for("/x"):
        assert "Authorization" not in request.headers


def test_a_mirror_with_a_password_in_its_url_is_refused(monkeypatch):
    """Messages name the mirror, so that a password in its URL would end up in logs."""
    monkeypatch.setenv("BLEUPRINT_MIRROR", "http://me:secret@127.0.0.1/mirror")

    with pytest.raises(UserError, match="BLEUPRINT_MIRROR contains a user name, password") as error:
        downloads_of_environment()

    assert "secret" not in str(error.value)
