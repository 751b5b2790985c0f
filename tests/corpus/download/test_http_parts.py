import signal
import subprocess
import sys
import threading
import time

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.runtime.progress import Progress
from downloads import (
    BODY,
    CHILD,
    DAY,
    HALF,
    NEW,
    NEW_TAG,
    NEXT_DAY,
    TAG,
    get,
    kept,
    left,
    locked,
    ranges,
    refused,
    sum_of,
)
from servers import cut, serve, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")


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
        patch.setattr(http, "TRIES", 1)
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

    monkeypatch.setattr(http, "Progress", Shown)
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
