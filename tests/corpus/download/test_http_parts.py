"""Downloads that break off and are resumed, in one process or in the next."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.runtime.progress import Progress
from downloads import BODY, CHILD, HALF, NEW, get, kept, left, ranges, refused, sum_of
from servers import cut, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

REST = f"bytes={HALF}-"


def test_a_file_with_a_sum_is_resumed(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, REST]
    assert host.seen[1].sent == len(BODY) - HALF
    assert left(tmp_path) == kept(tmp_path)


def test_a_file_without_a_sum_is_downloaded_again(tmp_path, host):
    url = host.put("/x", BODY, ETag='"one"')
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url)) == BODY
    assert ranges(host) == [None, None]


def test_a_host_without_ranges_sends_the_whole_file(tmp_path, host):
    url = host.put("/x", BODY, ranges=False)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert [seen.sent for seen in host.seen] == [HALF, len(BODY)]


def part_of(body, begin):
    return status(206, body[begin:], Content_Range=f"bytes {begin}-{len(body) - 1}/{len(body)}")


def test_a_part_shorter_than_requested_is_resumed(tmp_path, host):
    url = host.put("/x", BODY)
    span = f"bytes {HALF}-{HALF + 999}/{len(BODY)}"
    host.script["/x"] = [cut(HALF), status(206, BODY[HALF : HALF + 1000], Content_Range=span)]
    assert get(tmp_path, File(url=url, sha256=sum_of(BODY))) == BODY
    assert ranges(host) == [None, REST, f"bytes={HALF + 1000}-"]


def test_parts_of_different_versions_are_refused_and_removed(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(HALF), part_of(NEW, HALF)]
    file = File(url=url, sha256=sum_of(BODY))
    assert "the download was removed" in refused(tmp_path, file)
    assert left(tmp_path) == []
    assert get(tmp_path, file) == BODY
    assert ranges(host) == [None, REST, None]


def test_a_part_of_a_file_of_another_size_is_refused(tmp_path, host):
    url = host.put("/x", BODY)
    host.script["/x"] = [cut(HALF), part_of(BODY + b"more", HALF)]
    message = refused(tmp_path, File(url=url, sha256=sum_of(BODY), size=len(BODY)))
    assert f"expected {len(BODY)} bytes, found {len(BODY) + 4}" in message


@pytest.fixture
def broken_off(tmp_path, host, monkeypatch):
    """A file of which an earlier process left half."""
    file = File(url=host.put("/x", BODY), sha256=sum_of(BODY))
    host.script["/x"] = [cut(HALF)]
    with monkeypatch.context() as patch:
        patch.setattr(http, "ATTEMPTS", 1)
        refused(tmp_path, file)
    host.seen.clear()
    (partial,) = left(tmp_path)
    assert partial.read_bytes() == BODY[:HALF]
    return file


def test_another_process_resumes(tmp_path, host, broken_off):
    assert get(tmp_path, broken_off) == BODY
    assert ranges(host) == [REST]


def test_progress_begins_at_the_size_of_the_partial_file(tmp_path, host, broken_off, monkeypatch):
    shown = []

    class Shown(Progress):
        def __init__(self, what, total, unit, start):
            shown.append([what, total, unit, start])
            super().__init__(what, total, unit, start)

        def advance(self, count):
            shown[-1][-1] += count

    monkeypatch.setattr(http, "Progress", Shown)
    host.script["/x"] = [cut(1000)]
    get(tmp_path, broken_off)
    assert shown == [["x", len(BODY), "B", end] for end in (HALF + 1000, len(BODY))]


def test_a_partial_file_that_is_complete_is_used(tmp_path, host, broken_off):
    (partial,) = left(tmp_path)
    partial.write_bytes(BODY)  # killed before it could be renamed
    assert get(tmp_path, broken_off) == BODY
    assert [(seen.range, seen.sent) for seen in host.seen] == [(f"bytes={len(BODY)}-", 0)]


@pytest.mark.parametrize("total", [f"bytes */{HALF}", "bytes */*", ""])
def test_a_partial_file_that_is_too_long_is_removed(tmp_path, host, broken_off, total):
    (partial,) = left(tmp_path)
    partial.write_bytes(NEW + BODY)
    host.script["/x"] = [status(416, Content_Range=total)]
    assert "the download was removed" in refused(tmp_path, broken_off)
    assert get(tmp_path, broken_off) == BODY
    assert ranges(host) == [f"bytes={2 * len(BODY)}-", None]


def test_a_killed_process_costs_no_byte_twice(tmp_path, host):
    over = threading.Event()
    url = host.put("/x", BODY)
    (tmp_path / "downloads.lock").write_text(
        f'{{"{url}": {{"sha256": "{sum_of(BODY)}", "size": {len(BODY)}}}}}'
    )
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
    assert kept(tmp_path) == []
    assert get(tmp_path, File(url=url)) == BODY
    rest = host.seen[1:]
    assert [(seen.range, seen.sent) for seen in rest] == [(f"bytes={size}-", len(BODY) - size)]


def test_two_processes_download_a_file_once(tmp_path, host):
    url = host.put("/x", BODY)
    (tmp_path / "downloads.lock").write_text(
        f'{{"{url}": {{"sha256": "{sum_of(BODY)}", "size": {len(BODY)}}}}}'
    )
    command = [sys.executable, "-c", CHILD, str(tmp_path), url]
    children = [subprocess.Popen(command) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert len(host.seen) == 1
