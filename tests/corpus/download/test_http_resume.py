"""Downloads that break off are resumed, in the same process or in the next one."""

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
    CONTENT,
    DOWNLOAD_PROGRAM,
    HALF_SIZE,
    complete_files,
    download,
    download_error,
    files_in_store,
    requested_ranges,
    sha256_of,
)
from servers import break_off_after, stall

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")


@pytest.mark.parametrize(
    ("sha256", "accepts_ranges", "requested_range", "sent_bytes"),
    [
        pytest.param(
            sha256_of(CONTENT),
            True,
            f"bytes={HALF_SIZE}-",
            HALF_SIZE,
            id="file with a sum: the rest is sent",
        ),
        pytest.param(
            sha256_of(CONTENT),
            False,
            f"bytes={HALF_SIZE}-",
            len(CONTENT),
            id="server that ignores ranges: the whole file is sent",
        ),
        pytest.param(
            None, True, None, len(CONTENT), id="file without a sum: the whole file is requested"
        ),
        pytest.param(
            None, False, None, len(CONTENT), id="file without a sum from a server without ranges"
        ),
    ],
)
def test_only_a_file_with_a_sum_is_resumed(
    tmp_path, host, sha256, accepts_ranges, requested_range, sent_bytes
):
    """Only a known SHA-256 can prove that both halves are of the same version of the file."""
    url = host.put("/x", CONTENT, ranges=accepts_ranges, ETag='"one"')
    # The first response ends after half of the file.
    host.respond_with("/x", [break_off_after(HALF_SIZE)])

    assert download(tmp_path, File(url=url, sha256=sha256)) == CONTENT

    assert requested_ranges(host) == [None, requested_range]
    assert host.requests[1].sent_bytes == sent_bytes
    assert files_in_store(tmp_path) == complete_files(tmp_path)


def test_a_download_that_stalls_is_resumed(tmp_path, host, file, monkeypatch):
    """The server sends half of the file, and then nothing more until `may_finish` is set."""
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", 1.0)
    may_finish = threading.Event()
    host.respond_with("/x", [stall(HALF_SIZE, may_finish)])

    assert download(tmp_path, file) == CONTENT

    resumed_range = requested_ranges(host)[1]
    resumed_at = int(resumed_range.removeprefix("bytes=").removesuffix("-"))
    # The last read may have returned less than its 64 KiB, which are then lost.
    assert HALF_SIZE - (1 << 16) < resumed_at <= HALF_SIZE
    may_finish.set()


@pytest.fixture
def partial_file(tmp_path, host, file, monkeypatch):
    """The first half of `file`, which an earlier process downloaded."""
    # The first response ends after half of the file.
    host.respond_with("/x", [break_off_after(HALF_SIZE)])
    with monkeypatch.context() as patch:
        patch.setattr(http, "MAX_ATTEMPTS", 1)
        download_error(tmp_path, file)
    host.requests.clear()
    files = files_in_store(tmp_path)
    assert len(files) == 1
    assert files[0].read_bytes() == CONTENT[:HALF_SIZE]
    return files[0]


@pytest.mark.usefixtures("partial_file")
def test_the_next_process_resumes_a_download(tmp_path, host, file):
    """An earlier process downloaded the first half of the file."""
    # The first response of this process ends after 1,000 bytes.
    host.respond_with("/x", [break_off_after(1000)])

    assert download(tmp_path, file) == CONTENT

    assert requested_ranges(host) == [f"bytes={HALF_SIZE}-", f"bytes={HALF_SIZE + 1000}-"]


@pytest.mark.usefixtures("partial_file")
def test_the_progress_bar_of_a_resumed_download_counts_the_bytes_on_disk(
    tmp_path, host, file, monkeypatch
):
    """An earlier process downloaded the first half of the file."""
    bars = []

    class RecordedProgress(Progress):
        """A progress bar that records its arguments, and how far it advances."""

        def __init__(self, what, total, unit, start):
            bars.append([what, total, unit, start])
            super().__init__(what, total, unit, start)

        def advance(self, count):
            bars[-1][-1] += count

    monkeypatch.setattr(http, "Progress", RecordedProgress)
    host.respond_with("/x", [break_off_after(1000)])

    download(tmp_path, file)

    # The first attempt breaks off after 1,000 bytes, the second one reaches the end. Each bar has
    # the name, the total, the unit and the last position.
    assert bars == [
        ["x", len(CONTENT), "B", HALF_SIZE + 1000],
        ["x", len(CONTENT), "B", len(CONTENT)],
    ]


def test_a_partial_file_that_is_complete_is_not_downloaded_again(
    tmp_path, host, file, partial_file
):
    """A process may be killed after the last byte, before it renames the file."""
    partial_file.write_bytes(CONTENT)

    assert download(tmp_path, file) == CONTENT

    # The request asks for the bytes after the last one; the server has none to send.
    assert requested_ranges(host) == [f"bytes={len(CONTENT)}-"]
    assert host.requests[0].sent_bytes == 0


@pytest.fixture
def start_download(tmp_path, host):
    """A function that starts a process that downloads the file /x, whose sum is locked."""
    url = host.put("/x", CONTENT)
    (tmp_path / "downloads.lock").write_text(
        f'{{"{url}": {{"sha256": "{sha256_of(CONTENT)}", "size": {len(CONTENT)}}}}}'
    )
    command = [sys.executable, "-c", DOWNLOAD_PROGRAM, str(tmp_path), url]
    return lambda: subprocess.Popen(command)


def test_bytes_that_a_killed_process_downloaded_are_not_downloaded_again(
    tmp_path, host, start_download
):
    """A process is killed when it has at least 100,000 bytes; the next one asks for the rest."""
    may_finish = threading.Event()
    host.respond_with("/x", [stall(HALF_SIZE, may_finish)])
    process = start_download()
    partial_file = tmp_path / "store" / f"{sha256_of(host.url('/x').encode())}.partial"
    while not partial_file.exists() or partial_file.stat().st_size < 100_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    may_finish.set()
    size = partial_file.stat().st_size
    assert partial_file.read_bytes() == CONTENT[:size]
    assert complete_files(tmp_path) == []

    assert download(tmp_path, File(url=host.url("/x"))) == CONTENT

    assert requested_ranges(host)[1:] == [f"bytes={size}-"]
    assert host.requests[1].sent_bytes == len(CONTENT) - size


def test_two_processes_download_a_file_once(host, start_download):
    processes = [start_download(), start_download()]

    assert [process.wait() for process in processes] == [0, 0]
    assert len(host.requests) == 1
