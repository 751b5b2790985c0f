import socket
import threading
from base64 import b64encode

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.corpus.download.fetch import source_of_environment
from bleuprint.runtime.errors import UserError, say
from downloads import BODY, HALF, NEW, get, kept, left, ranges, refused, sum_of
from servers import cut, hang_up, in_chunks, serve, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

# Whole files


def test_a_file_is_fetched_once_and_kept(tmp_path, host):
    file = File(url=host.put("/x", BODY), sha256=sum_of(BODY), size=len(BODY))
    assert get(tmp_path, file) == get(tmp_path, file) == BODY
    assert len(host.seen) == 1
    assert left(tmp_path) == kept(tmp_path)
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())


def test_requests_accept_no_content_encoding(tmp_path, host):
    get(tmp_path, File(url=host.put("/x", BODY)))
    assert host.seen[0].headers["Accept-Encoding"] == "identity"


def test_an_empty_file_is_a_file(tmp_path, host):
    assert get(tmp_path, File(url=host.put("/x", b""))) == b""


def test_a_file_without_a_length_ends_with_its_last_chunk(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [in_chunks(BODY[:HALF], end=False), in_chunks(BODY[:HALF], BODY[HALF:])]
    assert get(tmp_path, File(url=url)) == BODY
    assert len(host.seen) == 2


def test_spaces_and_accents_in_a_url_are_quoted(tmp_path, host):
    host.put("/a%20b/%C3%A4%25?q=%C3%B6&r=1", BODY)
    assert get(tmp_path, File(url=host.url("/a b/ä%25?q=ö&r=1"))) == BODY


def test_redirects_are_followed_also_when_resuming(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/old"] = [status(302, Location=url)] * 2
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=host.url("/old"), sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("code", [404, 403, 410])
def test_a_missing_page_is_requested_once(tmp_path, host, code, pauses):
    host.script["/no"] = [status(code)] * 9
    message = refused(tmp_path, File(url=host.url("/no")))
    assert host.url("/no") in message and f"HTTP {code}" in message
    assert "BLEUPRINT_MIRROR" in message
    assert len(host.seen) == 1 and pauses == []


def test_a_stored_file_with_another_sum_is_fetched_again(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    host.put("/x", NEW)
    assert get(tmp_path, File(url=url, sha256=sum_of(NEW))) == NEW
    assert len(host.seen) == 2


def test_a_wrong_sum_shows_both_and_leaves_nothing(tmp_path, host):
    url = host.put("/x", BODY)
    message = refused(tmp_path, File(url=url, sha256="0" * 64))
    assert "0" * 64 in message and sum_of(BODY) in message and url in message
    assert left(tmp_path) == [] and len(host.seen) == 1


def test_a_wrong_size_is_found_before_the_download(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "TIMEOUT", 1.0)
    over = threading.Event()
    url = host.put("/x", BODY)
    host.script["/x"] = [stall(0, over)]
    assert f"expected 7 bytes, found {len(BODY)}" in refused(tmp_path, File(url=url, size=7))
    assert left(tmp_path) == [] and len(host.seen) == 1
    over.set()


def test_a_file_without_a_length_that_is_too_short_shows_both_sizes(tmp_path, host):
    host.script["/x"] = [in_chunks(BODY)]
    message = refused(tmp_path, File(url=host.url("/x"), size=len(BODY) + 7))
    assert f"expected {len(BODY) + 7} bytes, found {len(BODY)}" in message
    assert left(tmp_path) == []


# Errors that may pass


@pytest.mark.parametrize("error_of", [status(503), status(500), status(429), hang_up, cut(9)])
def test_a_transient_error_is_retried(tmp_path, host, capfd, error_of):
    url = host.put("/x", BODY)
    host.script["/x"] = [error_of, error_of]
    assert get(tmp_path, File(url=url)) == BODY
    assert capfd.readouterr().err.count(f"{url}: ") == 2


@pytest.mark.parametrize("error_of", [status(503), hang_up, cut(9)])
def test_a_lasting_error_ends_after_five_attempts_with_growing_pauses(
    tmp_path, host, pauses, error_of
):
    url = host.put("/x", BODY, ranges=False)
    host.script["/x"] = [error_of] * 99
    assert "cannot be fetched" in refused(tmp_path, File(url=url))
    assert len(host.seen) == http.ATTEMPTS == 5
    assert pauses == [1, 2, 4, 8]
    assert kept(tmp_path) == []


def test_attempts_that_make_progress_do_not_count(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "MIN_PROGRESS", 10_000)
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(20_000)] * 12
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert ranges(host)[1:] == [f"bytes={20_000 * n}-" for n in range(1, 13)]


def test_attempts_that_download_the_same_again_count(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "MIN_PROGRESS", 10_000)
    url = host.put("/x", BODY, ranges=False)
    host.script["/x"] = [cut(20_000)] * 99
    assert "IncompleteRead(20000 bytes read, " in refused(tmp_path, File(url=url))
    assert len(host.seen) == 5


def test_retry_after_in_seconds(tmp_path, host, pauses):
    url = host.put("/x", BODY)
    host.script["/x"] = [status(503, Retry_After="77"), status(429, Retry_After="0")]
    assert get(tmp_path, File(url=url)) == BODY
    assert pauses == [77, 2]


def test_a_retry_after_that_is_too_long_ends_the_download(tmp_path, host, pauses):
    host.script["/x"] = [status(503, Retry_After="86400")]
    message = refused(tmp_path, File(url=host.url("/x")))
    assert "HTTP 503" in message and "Retry-After: 86400" in message and pauses == []


def test_a_refused_connection_is_named(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x"
    message = refused(tmp_path, File(url=url))
    assert url in message and "refused" in message and "BLEUPRINT_MIRROR" in message


def test_a_silent_host_times_out(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "TIMEOUT", 0.05)
    monkeypatch.setattr(http, "ATTEMPTS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        assert "timed out" in refused(tmp_path, File(url=url))


def test_a_download_that_stalls_is_resumed(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "TIMEOUT", 1.0)
    over = threading.Event()
    url = host.put("/x", BODY)
    host.script["/x"] = [stall(HALF, over)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert HALF - (1 << 16) < int(ranges(host)[1].removeprefix("bytes=").removesuffix("-")) <= HALF
    over.set()


@pytest.mark.parametrize("url", ["http://a:b/x", "http://[::1/x"])
def test_an_invalid_url_is_one_line(url):
    with pytest.raises(ValueError, match="not a valid URL") as error:
        File(url=url)
    assert url in str(error.value) and "\n" not in str(error.value)


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
    assert "HTTP 401" in refused(tmp_path, File(url=named))
    assert "Authorization" in host.asked("/old")[0].headers
    assert not any("Authorization" in seen.headers for seen in host.asked("/x"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "HTTP 401 Unauthorized (user name and password: "),
        ("machine elsewhere login me password secret\n", "HTTP 401 Unauthorized (user name and "),
        ("machine 127.0.0.1 login me password not-secret\n", "HTTP 401 Unauthorized (user name "),
        ("machine 127.0.0.1 login me secret\n", "HTTP 401 Unauthorized (user name and "),
    ],
)
def test_a_password_that_is_missing_or_wrong(tmp_path, host, netrc, content, message):
    if content is not None:
        netrc.write_text(content)
    url = host.put("/x", BODY)
    host.script["/x"] = [locked] * 2
    error = refused(tmp_path, File(url=url))
    assert message in error and "secret" not in error


def test_a_mirror_with_a_password_is_refused(monkeypatch):
    monkeypatch.setenv("BLEUPRINT_MIRROR", "http://me:secret@127.0.0.1/mirror")
    with pytest.raises(UserError, match="BLEUPRINT_MIRROR holds a user name, password") as error:
        source_of_environment()
    assert "secret" not in str(error.value)


def test_a_password_in_the_address_of_another_program_is_not_printed(capsys):
    say("postgresql://me:secret@host/db: refused, http://host:80/@x")
    printed = "bleuprint: error: postgresql://***@host/db: refused, http://host:80/@x\n"
    assert capsys.readouterr().err == printed
