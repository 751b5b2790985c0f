import gzip
import hashlib
import http.server
import json
import socket
import threading
from collections import Counter
from pathlib import Path

import pytest

from bleuprint import fetch
from bleuprint.download import download_corpus
from bleuprint.errors import UserError
from bleuprint.fetch import Source
from bleuprint.pairs import TextFolder
from bleuprint.settings import File, FilePair, Files
from corpora import LINE_ENDS_ELSEWHERE

GERMAN = b"Guten Tag.\nBis bald!\n"
ENGLISH = b"Good day.\nSee you soon!\n"


class Host(http.server.ThreadingHTTPServer):
    """A web server whose every answer a test decides, and which counts the requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files, self.failures, self.asked = {}, {}, Counter()
        self.prefix = f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, path):
        return f"{self.prefix}{path}"


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked[self.path] += 1
        failures = server.failures.get(self.path, [])
        failure = failures.pop(0) if failures else None
        body = server.files.get(self.path)
        if failure == "short":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
        elif failure == "hang up":
            self.connection.close()
        elif isinstance(failure, str):
            self.send_response(302)
            self.send_header("Location", failure)
            self.end_headers()
        elif failure or body is None:
            self.send_error(failure or 404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def host(monkeypatch):
    monkeypatch.setattr(fetch, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Host() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        server.files = {"/a/x.de": GERMAN, "/a/x.en": ENGLISH}
        yield server
        server.shutdown()


def sum_of(body):
    return hashlib.sha256(body).hexdigest()


def download(folder, source, target, mirror=None):
    raw = TextFolder(folder / "raw", "de", "en")
    files = Files({"a": FilePair(source, target)}, {}, {})
    place = Source(mirror, folder / "store")
    download_corpus("c", files, raw, folder / "ledger.json", place)
    return tuple(file.read_bytes() for file in raw.files("train.a"))


def two(host, **german):
    return File(url=host.url("/a/x.de"), **german), File(url=host.url("/a/x.en"))


def refused(tmp_path, *arguments, **keywords):
    """The message; and nothing is left that looks finished."""
    with pytest.raises(UserError) as error:
        download(tmp_path, *arguments, **keywords)
    assert not (tmp_path / "raw").exists() and not (tmp_path / "ledger.json").exists()
    return str(error.value)


def stored(tmp_path):
    return [f for f in (tmp_path / "store").iterdir() if f.suffix != ".lock"]


def test_files_come_from_their_host_and_only_once(tmp_path, host):
    files = two(host, sha256=sum_of(GERMAN), size=len(GERMAN))
    assert download(tmp_path, *files) == (GERMAN, ENGLISH)
    assert download(tmp_path, *files) == (GERMAN, ENGLISH)
    assert host.asked == {"/a/x.de": 1, "/a/x.en": 1}
    account = json.loads((tmp_path / "ledger.json").read_text())["sets"]["train.a"]
    assert (account["pairs_in"], account["pairs_out"]) == (2, 2)


def test_a_run_cut_short_keeps_what_it_has_fetched(tmp_path, host):
    german, english = two(host)
    refused(tmp_path, german, File(url=host.url("/missing")))
    assert download(tmp_path, german, english) == (GERMAN, ENGLISH)
    assert host.asked["/a/x.de"] == 1


def test_a_stored_file_with_another_sum_is_fetched_again(tmp_path, host):
    download(tmp_path, *two(host))
    host.files["/a/x.de"] = GERMAN.upper()
    files = two(host, sha256=sum_of(GERMAN.upper()))
    assert download(tmp_path, *files)[0] == GERMAN.upper()
    assert host.asked == {"/a/x.de": 2, "/a/x.en": 1}


def test_a_missing_page_is_not_asked_for_twice(tmp_path, host):
    message = refused(tmp_path, File(url=host.url("/no.de")), File(url=host.url("/a/x.en")))
    assert host.url("/no.de") in message and "HTTP 404" in message
    assert "BLEUPRINT_MIRROR" in message
    assert host.asked["/no.de"] == 1


@pytest.mark.parametrize("failure", [503, 500, 429, "short", "hang up"])
def test_trouble_that_passes_is_sat_out(tmp_path, host, capfd, failure):
    host.failures["/a/x.de"] = [failure, failure]
    assert download(tmp_path, *two(host)) == (GERMAN, ENGLISH)
    assert host.asked["/a/x.de"] == 3
    assert capfd.readouterr().err.count("trying again") == 2


HALF = f"{len(GERMAN) // 2} of {len(GERMAN)} bytes"


@pytest.mark.parametrize(("failure", "cause"), [(503, "HTTP 503"), ("short", HALF)])
def test_trouble_that_stays_is_told(tmp_path, host, failure, cause):
    host.failures["/a/x.de"] = [failure] * 9
    assert cause in refused(tmp_path, *two(host))
    assert host.asked["/a/x.de"] == 3
    assert all(file.suffix == ".partial" for file in stored(tmp_path))


def test_redirects_are_followed(tmp_path, host):
    host.failures["/old"] = [host.url("/a/x.de")]
    old = File(url=host.url("/old"))
    assert download(tmp_path, old, two(host)[1]) == (GERMAN, ENGLISH)


def test_a_wrong_sum_shows_both_and_leaves_nothing(tmp_path, host):
    message = refused(tmp_path, *two(host, sha256="0" * 64))
    assert "0" * 64 in message and sum_of(GERMAN) in message and host.url("/a/x.de") in message
    assert stored(tmp_path) == []


def test_a_wrong_size_shows_both_and_leaves_nothing(tmp_path, host):
    message = refused(tmp_path, *two(host, size=7))
    assert f"expected 7 bytes, found {len(GERMAN)}" in message
    assert stored(tmp_path) == []


def test_a_host_that_does_not_answer(tmp_path, host):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x.de"
    message = refused(tmp_path, File(url=url), two(host)[1])
    assert url in message and "refused" in message and "BLEUPRINT_MIRROR" in message


def test_a_silent_host_is_given_up(tmp_path, host, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.de"
        assert "timed out" in refused(tmp_path, File(url=url), two(host)[1])


def test_a_mirror_folder_stands_in_for_every_host(tmp_path, host):
    for name, body in (("x.de", GERMAN), ("y z.en", ENGLISH)):
        path = tmp_path / "mirror" / "data.invalid" / "v1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    german = File(url="https://data.invalid/v1/x.de", sha256=sum_of(GERMAN))
    english = File(url="https://data.invalid/v1/y%20z.en")
    mirror = str(tmp_path / "mirror")
    assert download(tmp_path, german, english, mirror=mirror) == (GERMAN, ENGLISH)
    assert host.asked == {}


def test_what_a_mirror_folder_lacks_or_holds_wrongly_is_named(tmp_path):
    (tmp_path / "mirror" / "data.invalid").mkdir(parents=True)
    copy = tmp_path / "mirror" / "data.invalid" / "x.de"
    german = File(url="https://data.invalid/x.de", sha256=sum_of(GERMAN))
    arguments = (tmp_path, german, german, str(tmp_path / "mirror"))
    message = refused(*arguments)
    assert "https://data.invalid/x.de" in message and str(copy) in message
    copy.write_bytes(ENGLISH)
    message = refused(*arguments)
    assert str(copy) in message and sum_of(ENGLISH) in message
    assert copy.exists()


def test_a_mirror_may_be_a_url(tmp_path, host):
    host.files["/copies/data.invalid/v1/x.de"] = GERMAN
    host.files["/copies/data.invalid/v1/x.en"] = ENGLISH
    files = [File(url=f"https://data.invalid/v1/x.{side}") for side in ("de", "en")]
    assert download(tmp_path, *files, mirror=host.url("/copies/")) == (GERMAN, ENGLISH)
    assert host.asked.total() == 2


def test_a_url_cannot_leave_the_mirror(tmp_path):
    for path in ("../x.de", "%2e%2e/x.de"):
        url = f"https://data.invalid/{path}"
        message = refused(tmp_path, File(url=url), File(url=url), mirror=str(tmp_path))
        assert "'..' in the path" in message


def test_gzip_is_unpacked_and_the_sum_is_of_the_packed_file(tmp_path, host):
    packed = host.files["/a/x.de.gz"] = gzip.compress(GERMAN)
    german = File(url=host.url("/a/x.de.gz"), sha256=sum_of(packed), size=len(packed))
    assert download(tmp_path, german, two(host)[1]) == (GERMAN, ENGLISH)


@pytest.mark.parametrize("damage", ["truncated", "changed", "not gzip", "empty"])
def test_a_damaged_gzip_file_is_named_and_not_kept(tmp_path, host, damage):
    packed = gzip.compress(GERMAN * 100)
    host.files["/a/x.de.gz"] = {
        "truncated": packed[:-9],
        "changed": packed[:20] + bytes([packed[20] ^ 0xFF]) + packed[21:],
        "not gzip": GERMAN,
        "empty": b"",
    }[damage]
    message = refused(tmp_path, File(url=host.url("/a/x.de.gz")), two(host)[1])
    assert host.url("/a/x.de.gz") in message and "truncated or damaged gzip" in message
    host.files["/a/x.de.gz"] = gzip.compress(GERMAN)
    german = File(url=host.url("/a/x.de.gz"))
    assert download(tmp_path, german, two(host)[1]) == (GERMAN, ENGLISH)


def test_local_files_and_file_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("inputs").mkdir()
    Path("inputs/a.de").write_bytes(GERMAN)
    (tmp_path / "a b.en").write_bytes(ENGLISH)
    url = (tmp_path / "a b.en").as_uri()
    english = File(url=url, sha256=hashlib.sha256(ENGLISH).hexdigest())
    with pytest.raises(ValueError, match="needs sha256"):
        File(url=url)
    assert download(tmp_path, File(path="inputs/a.de"), english) == (GERMAN, ENGLISH)
    assert "inputs/b.de: no such file" in refused_again(tmp_path, File(path="inputs/b.de"), english)


def refused_again(tmp_path, *files):
    with pytest.raises(UserError) as error:
        download(tmp_path / "again", *files)
    return str(error.value)


def test_other_schemes_are_refused(tmp_path):
    ftp = File(url="ftp://data.invalid/x.de")
    assert "ftp://data.invalid/x.de: not an address of http" in refused(tmp_path, ftp, ftp)


def test_texts_that_are_not_parallel_are_refused_with_their_counts(tmp_path, host):
    host.files["/a/x.de"] += b"mehr\n"
    message = refused(tmp_path, *two(host))
    source, target = (file.url for file in two(host))
    assert message == f"{source} has 3 lines and {target} has 2: not parallel"


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path, host):
    host.files["/a/x.de"] = b"gut\nstra\xdfe\n"
    source, _ = two(host)
    expected = f"{source.url}:2: byte 5 of the line is 0xdf: not UTF-8"
    assert refused(tmp_path, *two(host)) == expected


def test_empty_files_are_refused(tmp_path, host):
    host.files = dict.fromkeys(host.files, b"")
    assert "holds no lines" in refused(tmp_path, *two(host))


def test_texts_keep_their_bytes(tmp_path, host):
    odd = f"\ufeffa\r\nb{''.join(LINE_ENDS_ELSEWHERE)}\x00 without an end".encode()
    host.files["/a/x.de"] = odd
    assert download(tmp_path, *two(host)) == (odd, ENGLISH)


def test_the_query_of_a_url_is_part_of_its_place_in_a_mirror(tmp_path):
    folder = tmp_path / "mirror" / "data.invalid"
    folder.mkdir(parents=True)
    (folder / "get?f=x.de").write_bytes(GERMAN)
    (folder / "get?f=x.en").write_bytes(ENGLISH)
    files = [File(url=f"https://data.invalid/get?f=x.{side}") for side in ("de", "en")]
    assert download(tmp_path, *files, mirror=str(tmp_path / "mirror")) == (GERMAN, ENGLISH)
