import email.utils
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from bleuprint import transfer
from bleuprint.errors import UserError
from bleuprint.fetch import Source, fetch, source_of_environment
from bleuprint.manifest import File
from bleuprint.progress import Progress
from servers import Host, Proxy, cut, hang_up, in_chunks, running, serve, stall, status

# More than comes in one piece, and no two parts alike.
BODY = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(12_500))
NEW = BODY[::-1]
HALF = len(BODY) // 2
TAG, NEW_TAG = '"one"', '"two"'
DAY, NEXT_DAY = "Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"


def sum_of(body):
    return hashlib.sha256(body).hexdigest()


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The pauses that were made, none of which takes any time."""
    made = []
    monkeypatch.setattr(transfer, "time", SimpleNamespace(sleep=made.append, time=time.time))
    return made


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    monkeypatch.setattr(urllib.request, "_opener", None)  # urlopen keeps the first one's proxies
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def host():
    with running(Host()) as host:
        yield host


def place(tmp_path, mirror=None, lock=True):
    return Source(mirror, tmp_path / "store", tmp_path / "downloads.lock" if lock else None)


def get(tmp_path, file, **source):
    return fetch(file, place(tmp_path, **source)).read_bytes()


def refused(tmp_path, file, **source):
    with pytest.raises(UserError) as error:
        get(tmp_path, file, **source)
    assert "\n" not in str(error.value)
    return str(error.value)


def kept(tmp_path):
    """Whole files in the store."""
    return [file for file in (tmp_path / "store").iterdir() if len(file.name) == 64]


def left(tmp_path):
    """Everything in the store but what marks it as in use."""
    return [f for f in (tmp_path / "store").iterdir() if f.suffix not in (".lock", ".guard")]


def locked(tmp_path):
    return json.loads((tmp_path / "downloads.lock").read_text())


def ranges(host, path="/x"):
    return [seen.range for seen in host.asked(path)]


# Whole files


def test_a_file_is_fetched_once_and_kept(tmp_path, host):
    file = File(url=host.put("/x", BODY), sha256=sum_of(BODY), size=len(BODY))
    assert get(tmp_path, file) == get(tmp_path, file) == BODY
    assert len(host.seen) == 1
    assert left(tmp_path) == kept(tmp_path)
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())


def test_requests_ask_for_the_bytes_as_they_are(tmp_path, host):
    get(tmp_path, File(url=host.put("/x", BODY)))
    assert host.seen[0].headers["Accept-Encoding"] == "identity"


def test_an_empty_file_is_a_file(tmp_path, host):
    assert get(tmp_path, File(url=host.put("/x", b""))) == b""


def test_a_file_without_a_length_ends_with_its_last_chunk(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [in_chunks(BODY[:HALF], end=False), in_chunks(BODY[:HALF], BODY[HALF:])]
    assert get(tmp_path, File(url=url)) == BODY
    assert len(host.seen) == 2


def test_spaces_and_accents_in_an_address_are_quoted(tmp_path, host):
    host.put("/a%20b/%C3%A4%25?q=%C3%B6&r=1", BODY)
    assert get(tmp_path, File(url=host.url("/a b/ä%25?q=ö&r=1"))) == BODY


def test_redirects_are_followed_also_by_a_part(tmp_path, host):
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/old"] = [status(302, Location=url)] * 2
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=host.url("/old"))) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-"]


def test_redirects_in_a_circle_are_told_in_one_line(tmp_path, host):
    host.script["/a"] = [status(302, Location="/b")] * 20
    host.script["/b"] = [status(302, Location="/a")] * 20
    assert "infinite loop" in refused(tmp_path, File(url=host.url("/a")))


def test_a_redirect_to_a_local_file_is_not_followed(tmp_path, host):
    (tmp_path / "secret").write_bytes(BODY)
    host.script["/x"] = [status(302, Location=(tmp_path / "secret").as_uri())]
    assert "HTTP 302" in refused(tmp_path, File(url=host.url("/x")))
    assert left(tmp_path) == []


@pytest.mark.parametrize("code", [404, 403, 410])
def test_a_missing_page_is_not_asked_for_twice(tmp_path, host, code, pauses):
    host.script["/no"] = [status(code)] * 9
    message = refused(tmp_path, File(url=host.url("/no")))
    assert host.url("/no") in message and f"HTTP {code}" in message
    assert "BLEUPRINT_MIRROR" in message
    assert len(host.seen) == 1 and pauses == []


def test_an_answer_that_is_no_page_is_refused(tmp_path, host):
    host.script["/x"] = [status(204)]
    assert "status 204 instead of 200" in refused(tmp_path, File(url=host.url("/x")))


def test_a_part_that_was_not_asked_for_is_refused(tmp_path, host):
    host.script["/x"] = [status(206, b"abc", Content_Range="bytes 0-2/9")]
    assert "status 206 instead of 200" in refused(tmp_path, File(url=host.url("/x")))


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


def test_a_wrong_size_is_seen_before_the_file_comes(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", 1.0)
    over = threading.Event()
    url = host.put("/x", BODY)
    host.script["/x"] = [stall(0, over)]
    assert f"expected 7 bytes, found {len(BODY)}" in refused(tmp_path, File(url=url, size=7))
    assert left(tmp_path) == [] and len(host.seen) == 1
    over.set()


def test_a_wrong_size_of_a_file_without_a_length_shows_both(tmp_path, host):
    host.script["/x"] = [in_chunks(BODY)]
    message = refused(tmp_path, File(url=host.url("/x"), size=7))
    assert f"expected 7 bytes, found {len(BODY)}" in message
    assert left(tmp_path) == []


# Trouble that passes


@pytest.mark.parametrize("trouble", [status(503), status(500), status(429), hang_up, cut(9)])
def test_trouble_that_passes_is_sat_out(tmp_path, host, capfd, trouble):
    url = host.put("/x", BODY)
    host.script["/x"] = [trouble, trouble]
    assert get(tmp_path, File(url=url)) == BODY
    assert capfd.readouterr().err.count(f"{url}: ") == 2


@pytest.mark.parametrize("trouble", [status(503), hang_up, cut(9)])
def test_trouble_that_stays_is_given_up_after_longer_and_longer_pauses(
    tmp_path, host, pauses, trouble
):
    url = host.put("/x", BODY, ranges=False)
    host.script["/x"] = [trouble] * 99
    assert "cannot be fetched" in refused(tmp_path, File(url=url))
    assert len(host.seen) == transfer.TRIES == 5
    assert pauses == [1, 2, 4, 8]
    assert kept(tmp_path) == []


def test_tries_that_bring_much_do_not_count(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "ENOUGH", 10_000)
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [cut(20_000)] * 12
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host)[1:] == [f"bytes={20_000 * n}-" for n in range(1, 13)]


def test_tries_that_bring_the_same_again_do_count(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "ENOUGH", 10_000)
    url = host.put("/x", BODY, ranges=False, ETag=TAG)
    host.script["/x"] = [cut(20_000)] * 99
    assert f"20000 of {len(BODY)} bytes came" in refused(tmp_path, File(url=url))
    assert len(host.seen) == 5


def test_a_host_that_asks_for_patience_gets_it(tmp_path, host, pauses):
    url = host.put("/x", BODY)
    host.script["/x"] = [status(503, Retry_After="77"), status(429, Retry_After="0")]
    assert get(tmp_path, File(url=url)) == BODY
    assert pauses == [77, 2]


def test_a_host_may_ask_for_patience_until_a_date(tmp_path, host, pauses):
    url = host.put("/x", BODY)
    later = email.utils.formatdate(time.time() + 200, usegmt=True)
    past = email.utils.formatdate(time.time() - 200, usegmt=True)
    host.script["/x"] = [status(503, Retry_After=date) for date in (later, past, "soon")]
    assert get(tmp_path, File(url=url)) == BODY
    assert 100 < pauses[0] <= 200 and pauses[1:] == [2, 4]


def test_a_host_that_asks_for_too_much_patience_is_given_up(tmp_path, host, pauses):
    host.script["/x"] = [status(503, Retry_After="86400")]
    message = refused(tmp_path, File(url=host.url("/x")))
    assert "HTTP 503" in message and "wait 86400 s" in message and pauses == []


def test_a_host_that_does_not_answer_is_named(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x"
    message = refused(tmp_path, File(url=url))
    assert url in message and "refused" in message and "BLEUPRINT_MIRROR" in message


def test_a_silent_host_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", 0.05)
    monkeypatch.setattr(transfer, "TRIES", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        assert "timed out" in refused(tmp_path, File(url=url))


def test_a_host_that_falls_silent_midway_is_asked_for_the_rest(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", 1.0)
    over = threading.Event()
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [stall(HALF, over)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-"]
    over.set()


@pytest.mark.parametrize("url", ["http://a:b/x", "http://[::1/x", "http://u:p@h/x"])
def test_an_address_that_is_none_is_told_in_one_line(tmp_path, pauses, url):
    assert url in refused(tmp_path, File(url=url)) and pauses == []


# Going on


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"ETag": TAG}, TAG),
        ({"Last_Modified": DAY}, DAY),
        ({"ETag": TAG, "Last_Modified": DAY}, TAG),
        ({"ETag": f"W/{TAG}", "Last_Modified": DAY}, DAY),
    ],
)
def test_a_dropped_connection_is_gone_on_from(tmp_path, host, headers, version):
    url = host.put("/x", BODY, **headers)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    rest = host.seen[1]
    assert (rest.range, rest.if_range, rest.sent) == (f"bytes={HALF}-", version, len(BODY) - HALF)
    assert left(tmp_path) == kept(tmp_path)


def test_without_a_version_a_file_that_can_be_checked_is_gone_on_with(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-"]
    assert host.seen[1].if_range is None


@pytest.mark.parametrize("headers", [{}, {"ETag": f"W/{TAG}"}])
def test_without_a_version_or_a_sum_a_file_is_begun_anew(tmp_path, host, headers):
    url = host.put("/x", BODY, **headers)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, None]


def test_a_host_that_knows_no_parts_is_heard_from_the_beginning(tmp_path, host):
    url = host.put("/x", BODY, ranges=False, ETag=TAG)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    assert [seen.sent for seen in host.seen] == [HALF, len(BODY)]


def test_a_file_that_changed_meanwhile_is_not_joined_to_the_old(tmp_path, host):
    url = host.put("/x", BODY, ETag=TAG)

    def change(handler, page):
        serve(handler, page, HALF)
        host.put("/x", NEW, ETag=NEW_TAG)

    host.script["/x"] = [change]
    assert get(tmp_path, File(url=url)) == NEW
    assert host.seen[1].if_range == TAG and host.seen[1].sent == len(NEW)


def part_of(body, begin, **headers):
    """A part, whatever version was asked for."""
    span = f"bytes {begin}-{len(body) - 1}/{len(body)}"
    return status(206, body[begin:], Content_Range=span, **headers)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"ETag": TAG}, {"ETag": NEW_TAG}), ({"Last_Modified": DAY}, {"Last_Modified": NEXT_DAY})],
)
def test_a_part_of_another_version_is_not_joined_to_the_old(tmp_path, host, first, second):
    url = host.put("/x", BODY, **first)
    host.script["/x"] = [cut(HALF), part_of(NEW, HALF, **second)]
    host.script["/x"].append(lambda handler, _: serve(handler, host.pages["/new"]))
    host.put("/new", NEW, **second)
    assert get(tmp_path, File(url=url)) == NEW
    assert ranges(host) == [None, f"bytes={HALF}-", None]


def test_a_part_without_a_version_is_not_joined_without_a_sum(tmp_path, host):
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [cut(HALF), part_of(NEW, HALF)]
    host.script["/x"].append(lambda handler, _: serve(handler, host.pages["/new"]))
    host.put("/new", NEW)
    assert get(tmp_path, File(url=url, size=len(NEW))) == NEW
    assert ranges(host) == [None, f"bytes={HALF}-", None]


def test_a_part_of_a_file_of_another_size_is_not_joined_to_the_old(tmp_path, host):
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [cut(HALF), part_of(BODY + b"more", HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("span", [f"bytes {HALF + 1}-9/9", "bytes 0-9/10", "lines 1-2/3", ""])
def test_a_part_from_elsewhere_is_not_joined(tmp_path, host, span):
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [cut(HALF), status(206, BODY[HALF + 1 :], Content_Range=span)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-", None]


def test_a_part_shorter_than_asked_for_is_gone_on_from(tmp_path, host):
    url = host.put("/x", BODY, ETag=TAG)
    piece = BODY[HALF : HALF + 1000]
    span = f"bytes {HALF}-{HALF + 999}/{len(BODY)}"
    host.script["/x"] = [cut(HALF), status(206, piece, Content_Range=span, ETag=TAG)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-", f"bytes={HALF + 1000}-"]


def test_a_part_that_fails_the_sum_is_fetched_once_more_whole(tmp_path, host, capfd):
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(HALF), part_of(NEW, HALF)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, f"bytes={HALF}-", None]
    assert "once more" in capfd.readouterr().err


def test_a_file_that_fails_the_sum_again_is_given_up(tmp_path, host):
    url = host.put("/x", NEW)
    host.script["/x"] = [cut(HALF)]
    assert sum_of(NEW) in refused(tmp_path, File(url=url, sha256=sum_of(BODY)))
    assert ranges(host) == [None, f"bytes={HALF}-", None]
    assert left(tmp_path) == []


@pytest.fixture
def broken_off(tmp_path, host, monkeypatch):
    """A store with half a file, left by an earlier process."""
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [cut(HALF)]
    with monkeypatch.context() as patch:
        patch.setattr(transfer, "TRIES", 1)
        refused(tmp_path, File(url=url))
    host.seen.clear()
    partial, note = sorted(left(tmp_path))
    assert partial.read_bytes() == BODY[:HALF] and note.suffix == ".json"
    return url


def test_progress_begins_where_the_file_does(tmp_path, host, broken_off, monkeypatch):
    shown = []

    class Shown(Progress):
        def __init__(self, what, total, unit, start):
            shown.append([what, total, unit, start])
            super().__init__(what, total, unit, start)

        def advance(self, count):
            shown[-1][-1] += count

    monkeypatch.setattr(transfer, "Progress", Shown)
    host.script["/x"] = [cut(1000)]
    get(tmp_path, File(url=broken_off))
    ends = HALF + 1000, len(BODY)
    assert shown == [["x", len(BODY), "B", end] for end in ends]


def test_another_process_goes_on(tmp_path, host, broken_off):
    assert get(tmp_path, File(url=broken_off)) == BODY
    assert ranges(host) == [f"bytes={HALF}-"]


def test_a_partial_file_that_is_whole_is_taken(tmp_path, host, broken_off):
    partial, _ = sorted(left(tmp_path))
    partial.write_bytes(BODY)  # killed before it could be renamed
    assert get(tmp_path, File(url=broken_off)) == BODY
    assert [(seen.range, seen.sent) for seen in host.seen] == [(f"bytes={len(BODY)}-", 0)]


def test_a_partial_file_longer_than_the_new_version_is_begun_anew(tmp_path, host, broken_off):
    partial, _ = sorted(left(tmp_path))
    partial.write_bytes(BODY)
    host.put("/x", NEW[:HALF], ETag=NEW_TAG)
    host.script["/x"] = [status(416, Content_Range=f"bytes */{HALF}")]
    assert get(tmp_path, File(url=broken_off)) == NEW[:HALF]


@pytest.mark.parametrize("total", [f"bytes */{HALF + 1}", "bytes */*", ""])
def test_a_partial_file_beyond_the_end_is_begun_anew(tmp_path, host, broken_off, total):
    host.script["/x"] = [status(416, Content_Range=total)]
    assert get(tmp_path, File(url=broken_off)) == BODY
    assert ranges(host) == [f"bytes={HALF}-", None]


def test_a_partial_file_as_long_as_the_new_version_is_begun_anew(tmp_path, host, broken_off):
    host.put("/x", NEW[:HALF], ETag=NEW_TAG)
    host.script["/x"] = [status(416, Content_Range=f"bytes */{HALF}")]
    assert get(tmp_path, File(url=broken_off)) == NEW[:HALF]
    assert ranges(host) == [f"bytes={HALF}-", None]


def test_a_partial_file_without_a_note_is_gone_on_with_if_it_can_be_checked(
    tmp_path, host, broken_off
):
    _, note = sorted(left(tmp_path))
    note.unlink()
    assert get(tmp_path, File(url=broken_off, sha256=sum_of(BODY))) == BODY
    assert [(seen.range, seen.if_range) for seen in host.seen] == [(f"bytes={HALF}-", None)]


def test_a_partial_file_without_a_note_or_a_sum_is_begun_anew(tmp_path, host, broken_off):
    _, note = sorted(left(tmp_path))
    note.unlink()
    assert get(tmp_path, File(url=broken_off)) == BODY
    assert ranges(host) == [None]


CHILD = """if True:
    import sys
    from pathlib import Path
    from bleuprint.fetch import Source, fetch
    from bleuprint.manifest import File
    folder = Path(sys.argv[1])
    fetch(File(url=sys.argv[2]), Source(None, folder / "store", folder / "downloads.lock"))
"""


def test_a_killed_process_costs_no_byte_twice(tmp_path, host):
    over = threading.Event()
    url = host.put("/x", BODY, ETag=TAG)
    host.script["/x"] = [stall(HALF, over)]
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), url])
    partial = tmp_path / "store" / f"{sum_of(url.encode())}.partial"
    while not partial.exists() or partial.stat().st_size < 100_000:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    over.set()
    size = partial.stat().st_size
    assert partial.read_bytes() == BODY[:size]
    assert kept(tmp_path) == [] and not (tmp_path / "downloads.lock").exists()
    assert get(tmp_path, File(url=url)) == BODY
    rest = host.seen[1:]
    assert [(seen.range, seen.sent) for seen in rest] == [(f"bytes={size}-", len(BODY) - size)]


def test_two_processes_after_one_file_fetch_it_once(tmp_path, host):
    url = host.put("/x", BODY)
    command = [sys.executable, "-c", CHILD, str(tmp_path), url]
    children = [subprocess.Popen(command) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert len(host.seen) == 1 and locked(tmp_path)[url]["sha256"] == sum_of(BODY)


# Other places


def test_the_next_place_is_tried_when_one_fails(tmp_path, host, capfd):
    wrong, right = host.put("/wrong", NEW), host.put("/right", BODY)
    places = [host.url("/no"), "http://127.0.0.1:1/x", wrong, right, host.url("/never")]
    file = File(url=places[0], also_at=tuple(places[1:]), sha256=sum_of(BODY))
    assert get(tmp_path, file) == BODY
    assert not host.asked("/never")
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())
    lines = capfd.readouterr().err.splitlines()
    told = [line for line in lines if "; trying http" in line]
    assert [line.split(": ")[0] for line in told] == places[:3]
    assert get(tmp_path, file) == BODY and len(host.asked("/right")) == 1


def test_when_every_place_fails_one_line_names_them_all(tmp_path, host):
    wrong = host.put("/wrong", NEW)
    places = [host.url("/no"), wrong, host.url("/gone")]
    host.script["/gone"] = [status(410)]
    message = refused(tmp_path, File(url=places[0], also_at=tuple(places[1:]), sha256=sum_of(BODY)))
    assert all(place in message for place in places)
    assert "HTTP 404" in message and sum_of(NEW) in message and "HTTP 410" in message


def test_a_place_that_fails_midway_is_gone_on_from_at_the_next(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "TRIES", 1)
    first, second = host.put("/x", BODY, ETag=TAG), host.put("/y", BODY, ETag=NEW_TAG)
    host.script["/x"] = [cut(HALF)]
    file = File(url=first, also_at=(second,), sha256=sum_of(BODY))
    assert get(tmp_path, file) == BODY
    assert ranges(host, "/y") == [f"bytes={HALF}-"] and host.asked("/y")[0].if_range is None


@pytest.mark.parametrize("known", [{}, {"size": len(BODY)}])
def test_pieces_of_two_places_are_not_joined_without_a_sum(tmp_path, host, monkeypatch, known):
    monkeypatch.setattr(transfer, "TRIES", 1)
    first, second = host.put("/x", BODY, ETag=TAG), host.put("/y", NEW, ETag=TAG)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=first, also_at=(second,), **known)) == NEW
    assert ranges(host, "/y") == [None]


def test_an_address_of_another_scheme_is_refused_before_anything_is_fetched(tmp_path, host):
    message = refused(tmp_path, File(url=host.put("/x", BODY), also_at=("ftp://data.invalid/x",)))
    assert "ftp://data.invalid/x: not an address of http" in message and host.seen == []


def test_local_files_and_file_urls_are_read_where_they_lie_and_not_locked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "a b").write_bytes(BODY)
    local = File(path="inputs/a b")
    by_url = File(url=(inputs / "a b").as_uri(), sha256=sum_of(BODY))
    assert fetch(local, place(tmp_path)) == Path("inputs/a b")
    assert fetch(by_url, place(tmp_path)) == inputs / "a b"
    assert refused(tmp_path, File(path="inputs/no")) == "inputs/no: no such file"
    assert [file.name for file in tmp_path.iterdir()] == ["inputs"]


# Mirrors


def put_in_mirror(tmp_path, name, body):
    path = tmp_path / "mirror" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def test_a_mirror_folder_stands_in_for_every_host(tmp_path):
    copy = put_in_mirror(tmp_path, "data.invalid/v1/y z?f=x", BODY)
    file = File(url="https://data.invalid/v1/y%20z?f=x", sha256=sum_of(BODY))
    for mirror in (tmp_path / "mirror", f"file://{tmp_path}/mirror"):
        assert fetch(file, place(tmp_path, mirror=str(mirror))) == copy


def test_each_address_has_its_place_in_the_mirror(tmp_path, capfd):
    put_in_mirror(tmp_path, "b.invalid/x", NEW)
    copy = put_in_mirror(tmp_path, "c.invalid/x", BODY)
    urls = [f"https://{name}.invalid/x" for name in "abc"]
    file = File(url=urls[0], also_at=tuple(urls[1:]), sha256=sum_of(BODY))
    assert fetch(file, place(tmp_path, mirror=str(tmp_path / "mirror"))) == copy
    assert capfd.readouterr().err.count("\n") == 2
    copy.unlink()
    message = refused(tmp_path, file, mirror=str(tmp_path / "mirror"))
    assert all(url in message for url in (urls[0], urls[2])) and "no such" not in message
    assert str(tmp_path / "mirror/b.invalid/x") in message and sum_of(NEW) in message


def test_a_mirror_may_be_a_url(tmp_path, host):
    host.put("/copies/b.invalid/v1/x", BODY)
    file = File(url="https://a.invalid/v1/x", also_at=("https://b.invalid/v1/x",))
    assert get(tmp_path, file, mirror=host.url("/copies/")) == BODY
    assert [seen.path for seen in host.seen] == ["/copies/a.invalid/v1/x", "/copies/b.invalid/v1/x"]
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())


@pytest.mark.parametrize("path", ["../x", "%2e%2e/x", "a/..%2fx"])
def test_an_address_cannot_leave_the_mirror(tmp_path, path):
    message = refused(tmp_path, File(url=f"https://data.invalid/{path}"), mirror=str(tmp_path))
    assert "'..' in the path" in message


# Proxies


def test_a_proxy_is_gone_through(tmp_path, host, monkeypatch):
    host.put("/v1/x", BODY)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert get(tmp_path, File(url="http://data.invalid/v1/x")) == BODY
        assert proxy.asked == ["http://data.invalid/v1/x"]


def test_a_proxy_is_gone_through_to_https(tmp_path, host, monkeypatch):
    monkeypatch.setattr(transfer, "TRIES", 1)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        message = refused(tmp_path, File(url="https://data.invalid/x"))
        assert proxy.asked == ["data.invalid:443"] and "Tunnel connection failed: 403" in message


def test_a_proxy_is_gone_past_where_the_user_says_so(tmp_path, host, monkeypatch):
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert get(tmp_path, File(url=host.put("/x", BODY))) == BODY
        assert proxy.asked == []


# downloads.lock


def test_what_has_no_sum_is_locked_by_its_first_download(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    assert locked(tmp_path) == {url: {"sha256": sum_of(BODY), "size": len(BODY)}}


def test_what_has_a_sum_is_not_locked(tmp_path, host):
    get(tmp_path, File(url=host.put("/x", BODY), sha256=sum_of(BODY)))
    assert not (tmp_path / "downloads.lock").exists()


def empty_store(tmp_path):
    """As on another machine, to which the lock came by git."""
    for file in kept(tmp_path):
        file.unlink()


def test_a_changed_file_is_refused_until_its_entry_is_removed(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    empty_store(tmp_path)
    host.put("/x", NEW)
    lock = tmp_path / "downloads.lock"
    for _ in range(2):
        message = refused(tmp_path, File(url=url))
        assert sum_of(BODY) in message and sum_of(NEW) in message
        assert message.endswith(f"remove the entry {url} from {lock} and what is in work/downloads")
        assert left(tmp_path) == []
    lock.write_text("{}")
    assert get(tmp_path, File(url=url)) == NEW
    assert locked(tmp_path)[url]["sha256"] == sum_of(NEW)


def test_a_stored_file_that_is_not_the_locked_one_is_fetched_anew(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url), lock=False)
    host.put("/x", NEW)
    lock = {url: {"sha256": sum_of(NEW), "size": len(NEW)}}
    (tmp_path / "downloads.lock").write_text(json.dumps(lock))
    assert get(tmp_path, File(url=url)) == NEW


def test_a_stored_file_that_is_not_the_locked_one_is_not_taken_for_the_new_one(tmp_path, host):
    url = host.put("/x", b"older than the lock")
    get(tmp_path, File(url=url), lock=False)
    host.put("/x", NEW)
    lock = tmp_path / "downloads.lock"
    lock.write_text(json.dumps({url: {"sha256": sum_of(BODY), "size": len(BODY)}}))
    assert sum_of(NEW) in refused(tmp_path, File(url=url))
    lock.unlink()
    assert get(tmp_path, File(url=url)) == NEW


def test_a_stored_file_is_locked_without_being_fetched_again(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url), lock=False)
    get(tmp_path, File(url=url))
    assert len(host.seen) == 1 and locked(tmp_path)[url]["sha256"] == sum_of(BODY)


def test_the_lock_holds_for_mirrors_and_other_places(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    empty_store(tmp_path)
    copy = put_in_mirror(tmp_path, "127.0.0.1/x", NEW)
    message = refused(tmp_path, File(url=url), mirror=str(tmp_path / "mirror"))
    assert str(copy) in message and sum_of(BODY) in message and f"remove the entry {url}" in message
    host.script["/x"] = [status(404)] * 2
    wrong, right = host.put("/wrong", NEW), host.put("/right", BODY)
    assert sum_of(NEW) in refused(tmp_path, File(url=url, also_at=(wrong,)))
    assert get(tmp_path, File(url=url, also_at=(wrong, right))) == BODY


def test_a_download_from_a_mirror_is_locked_under_its_address(tmp_path):
    put_in_mirror(tmp_path, "data.invalid/x", BODY)
    url = "https://data.invalid/x"
    get(tmp_path, File(url=url), mirror=str(tmp_path / "mirror"))
    assert locked(tmp_path) == {url: {"sha256": sum_of(BODY), "size": len(BODY)}}


def test_a_locked_sum_lets_a_file_without_a_version_be_gone_on_with(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    empty_store(tmp_path)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, None, f"bytes={HALF}-"]


def test_a_spoilt_lock_is_told_before_anything_is_fetched(tmp_path, host):
    (tmp_path / "downloads.lock").write_text("<<<<<<<")
    assert "downloads.lock:1: not valid JSON" in refused(tmp_path, File(url=host.put("/x", BODY)))
    assert host.seen == []


def test_the_environment_says_where_files_come_from_and_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setenv("BLEUPRINT_MIRROR", "/copies")
    root = Path(os.path.realpath(tmp_path))
    assert source_of_environment() == Source(
        "/copies", root / "work/downloads", root / "downloads.lock"
    )
