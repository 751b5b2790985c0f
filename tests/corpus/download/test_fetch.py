"""Files come from a list of URLs, a mirror or the local disk; downloads.lock records their sums."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download import http
from bleuprint.corpus.download.fetch import Downloads, downloads_of_environment, fetch
from corpora import file_names
from downloads import (
    CONTENT,
    HALF_SIZE,
    NEW_CONTENT,
    complete_files,
    download,
    download_error,
    downloads_in,
    files_in_store,
    read_lock,
    requested_ranges,
    sha256_of,
)
from servers import Proxy, break_off_after, running, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

# Further URLs of a file: the setting `mirrors`


def test_the_next_url_is_tried_if_one_fails(tmp_path, host, capfd):
    """The setting `mirrors` lists further URLs. The first three URLs of this file fail."""
    missing_url = host.url("/no")  # HTTP 404.
    unreachable_url = "http://127.0.0.1:1/x"  # No server.
    wrong_url = host.put("/wrong", NEW_CONTENT)  # Another SHA-256.
    right_url = host.put("/right", CONTENT)
    later_url = host.url("/later")
    file = File(
        url=missing_url,
        mirrors=(unreachable_url, wrong_url, right_url, later_url),
        sha256=sha256_of(CONTENT),
    )

    assert download(tmp_path, file) == CONTENT

    assert not host.requests_for("/later")
    reported_urls = []
    for line in capfd.readouterr().err.splitlines():
        if ". Trying http" in line:
            reported_urls.append(line.split(": ")[0])
    assert reported_urls == [missing_url, unreachable_url, wrong_url]


def test_a_file_from_a_further_url_is_stored_under_its_first_url(tmp_path, host):
    """So a second download finds the file in the store and requests nothing."""
    right_url = host.put("/right", CONTENT)
    first_url = host.url("/no")
    file = File(url=first_url, mirrors=(right_url,), sha256=sha256_of(CONTENT))

    assert download(tmp_path, file) == CONTENT
    assert download(tmp_path, file) == CONTENT

    # The name of a file in the store is the SHA-256 of its URL.
    assert complete_files(tmp_path)[0].name == sha256_of(first_url.encode())
    assert len(host.requests_for("/right")) == 1


def test_a_download_that_breaks_off_continues_at_the_next_url(tmp_path, host, monkeypatch):
    """The next server must send only the second half, since the SHA-256 will prove the result."""
    monkeypatch.setattr(http, "MAX_ATTEMPTS", 1)
    first_url = host.put("/x", CONTENT)
    second_url = host.put("/y", CONTENT)
    # The first response ends after half of the file.
    host.respond_with("/x", [break_off_after(HALF_SIZE)])
    file = File(url=first_url, mirrors=(second_url,), sha256=sha256_of(CONTENT))

    assert download(tmp_path, file) == CONTENT

    assert requested_ranges(host, "/y") == [f"bytes={HALF_SIZE}-"]


def test_a_file_without_a_known_sha256_is_read_from_its_start_at_the_next_url(
    tmp_path, host, monkeypatch
):
    """The second URL may have another version; two halves of different versions would be joined."""
    monkeypatch.setattr(http, "MAX_ATTEMPTS", 1)
    first_url = host.put("/x", CONTENT)
    second_url = host.put("/y", NEW_CONTENT)
    # The first response ends after half of the file.
    host.respond_with("/x", [break_off_after(HALF_SIZE)])

    assert download(tmp_path, File(url=first_url, mirrors=(second_url,))) == NEW_CONTENT

    assert requested_ranges(host, "/y") == [None]


# Local files


def test_a_local_file_is_read_in_place_and_neither_stored_nor_locked(tmp_path, monkeypatch):
    """A copy of the user's own file would waste disk space and could become outdated."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "a b").write_bytes(CONTENT)

    path = fetch(File(path="inputs/a b"), downloads_in(tmp_path))

    assert path == Path("inputs/a b")
    # Neither a store nor a downloads.lock.
    assert file_names(tmp_path) == ["inputs"]


def test_a_file_url_is_read_in_place_and_neither_stored_nor_locked(tmp_path, monkeypatch):
    """A copy of the user's own file would waste disk space and could become outdated."""
    monkeypatch.chdir(tmp_path)
    local_path = tmp_path / "inputs" / "a b"
    local_path.parent.mkdir()
    local_path.write_bytes(CONTENT)
    file = File(url=local_path.as_uri(), sha256=sha256_of(CONTENT))

    path = fetch(file, downloads_in(tmp_path))

    assert path == local_path
    # Neither a store nor a downloads.lock.
    assert file_names(tmp_path) == ["inputs"]


def test_a_missing_local_file_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert download_error(tmp_path, File(path="inputs/no")) == "inputs/no: no such file"


def test_a_local_file_that_is_missing_in_a_temporary_run_must_be_tracked(tmp_path, monkeypatch):
    """Git ignores inputs/, and `dvc exp run --temp` copies only what Git and DVC track."""
    # In a temporary run, DVC_ROOT is the project, and the current folder is another one.
    monkeypatch.setenv("DVC_ROOT", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)

    message = download_error(tmp_path, File(path="inputs/no"))

    assert message == (
        "inputs/no: no such file. This temporary run contains only files that Git or DVC tracks. "
        "To track it: dvc add inputs/no"
    )


# Proxies


def test_a_file_is_fetched_through_the_proxy_in_http_proxy(tmp_path, host, monkeypatch):
    """The host name does not exist, so that only the proxy can answer."""
    host.put("/v1/x", CONTENT)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)

        assert download(tmp_path, File(url="http://data.invalid/v1/x")) == CONTENT

    assert proxy.requested_addresses == ["http://data.invalid/v1/x"]


def test_https_goes_through_a_tunnel_of_the_proxy(tmp_path, host, monkeypatch):
    """The proxy of this test refuses tunnels with the status 403."""
    monkeypatch.setattr(http, "MAX_ATTEMPTS", 1)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)

        message = download_error(tmp_path, File(url="https://data.invalid/x"))

    # The request CONNECT names only the host and the port of HTTPS, 443.
    assert proxy.requested_addresses == ["data.invalid:443"]
    assert "Tunnel connection failed: 403" in message


def test_a_host_in_no_proxy_is_reached_without_the_proxy(tmp_path, host, monkeypatch):
    """The server of the file runs on 127.0.0.1."""
    url = host.put("/x", CONTENT)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")

        assert download(tmp_path, File(url=url)) == CONTENT

    assert proxy.requested_addresses == []


# Mirrors of all hosts: the variable BLEUPRINT_MIRROR


def put_in_mirror(tmp_path, name, content):
    """Write the copy of a file to the folder mirror/, and return its path.

    Args:
        tmp_path: The folder of the test.
        name: The name of the host, and the path of the file there.
        content: The content of the file.
    """
    path = tmp_path / "mirror" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_mirror_folder_replaces_every_host(tmp_path, prefix):
    """On a cluster without internet, BLEUPRINT_MIRROR names a folder with copies of all files.

    The copy of https://HOST/PATH is MIRROR/HOST/PATH; %20 in a URL is a space.
    """
    copy = put_in_mirror(tmp_path, "data.invalid/v1/y z?f=x", CONTENT)
    file = File(url="https://data.invalid/v1/y%20z?f=x", sha256=sha256_of(CONTENT))
    source = downloads_in(tmp_path, mirror=f"{prefix}{tmp_path}/mirror")

    assert fetch(file, source) == copy


def test_the_mirror_has_a_folder_for_the_host_of_each_url(tmp_path, capfd):
    """The copy of https://HOST/PATH is MIRROR/HOST/PATH; each URL of the file is tried."""
    put_in_mirror(tmp_path, "b.invalid/x", NEW_CONTENT)
    right_copy = put_in_mirror(tmp_path, "c.invalid/x", CONTENT)
    file = File(
        url="https://a.invalid/x",
        mirrors=("https://b.invalid/x", "https://c.invalid/x"),
        sha256=sha256_of(CONTENT),
    )
    source = downloads_in(tmp_path, mirror=str(tmp_path / "mirror"))

    path = fetch(file, source)

    assert path == right_copy
    # A warning each for the missing copy of a.invalid and the wrong copy of b.invalid.
    assert capfd.readouterr().err.count("\n") == 2


def test_the_error_for_a_mirror_without_a_right_copy_names_all_places(tmp_path):
    """Of three places, two have no copy, and the third one has a copy with another SHA-256."""
    wrong_copy = put_in_mirror(tmp_path, "b.invalid/x", NEW_CONTENT)
    file = File(
        url="https://a.invalid/x",
        mirrors=("https://b.invalid/x", "https://c.invalid/x"),
        sha256=sha256_of(CONTENT),
    )

    message = download_error(tmp_path, file, mirror=str(tmp_path / "mirror"))

    assert "a.invalid/x" in message
    assert "c.invalid/x" in message
    assert "BLEUPRINT_MIRROR" in message
    assert str(wrong_copy) in message
    assert sha256_of(NEW_CONTENT) in message


def test_a_mirror_may_be_a_url(tmp_path, host):
    """The copy of https://HOST/PATH is at MIRROR/HOST/PATH; the first host has no copy here."""
    host.put("/copies/b.invalid/v1/x", CONTENT)
    file = File(url="https://a.invalid/v1/x", mirrors=("https://b.invalid/v1/x",))

    assert download(tmp_path, file, mirror=host.url("/copies/")) == CONTENT

    requested_paths = [request.path for request in host.requests]
    assert requested_paths == ["/copies/a.invalid/v1/x", "/copies/b.invalid/v1/x"]
    # The file is stored under its first URL.
    assert complete_files(tmp_path)[0].name == sha256_of(b"https://a.invalid/v1/x")


@pytest.mark.parametrize("path", ["../x", "%2e%2e/x", "a/..%2fx"])
def test_a_url_cannot_lead_out_of_the_mirror(tmp_path, path):
    """Otherwise, settings from the internet could read any file of this machine."""
    file = File(url=f"https://data.invalid/{path}")

    message = download_error(tmp_path, file, mirror=str(tmp_path))

    assert "the path of a URL must not contain '..'" in message


# downloads.lock


def test_processes_that_record_sums_at_the_same_time_lose_no_entry(tmp_path):
    """Three processes write ten entries each to one downloads.lock.

    If a process overwrote the lock with an old copy, the entries of the others would be lost.
    """
    (tmp_path / "file").write_bytes(CONTENT)
    program = """if True:
        import sys
        from pathlib import Path
        from bleuprint.corpus.download.fetch import Downloads
        folder, name = Path(sys.argv[1]), sys.argv[2]
        sys.stdin.read()
        for i in range(10):
            source = Downloads(None, folder / "store", folder / "downloads.lock")
            source.unrecorded[f"http://{name}/{i}"] = folder / "file"
            source.record()
    """
    processes = []
    for name in "abc":
        command = [sys.executable, "-c", program, str(tmp_path), name]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE))

    # The processes begin when their input is closed.
    for process in processes:
        process.stdin.close()

    assert [process.wait() for process in processes] == [0, 0, 0]
    urls = list(read_lock(tmp_path))
    assert len(urls) == 3 * 10
    assert urls == sorted(urls)


def test_a_download_does_not_wait_for_the_download_of_another_file(tmp_path, host):
    """The server stops in the middle of the slow file until `may_finish` is set."""
    slow_url = host.put("/slow", CONTENT)
    fast_url = host.put("/fast", NEW_CONTENT)
    may_finish = threading.Event()
    host.respond_with("/slow", [stall(HALF_SIZE, may_finish)])
    slow = threading.Thread(target=download, args=(tmp_path, File(url=slow_url)), daemon=True)
    fast = threading.Thread(target=download, args=(tmp_path, File(url=fast_url)), daemon=True)

    try:
        slow.start()
        wait_until_bytes_are_sent(host, "/slow")
        fast.start()
        fast.join(60)
        # The fast download is complete while the slow one still waits.
        assert not fast.is_alive()
        assert slow.is_alive()
        assert list(read_lock(tmp_path)) == [fast_url]
    finally:
        may_finish.set()
    slow.join(60)

    # The slow download keeps the entry that was recorded while it ran.
    sums = {url: entry["sha256"] for url, entry in read_lock(tmp_path).items()}
    assert sums == {fast_url: sha256_of(NEW_CONTENT), slow_url: sha256_of(CONTENT)}


def wait_until_bytes_are_sent(host, path):
    """Wait until the host has sent the first bytes of a file, at most a minute."""
    deadline = time.monotonic() + 60
    while not any(request.sent_bytes for request in host.requests_for(path)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_with_a_sha256_in_the_settings_is_not_locked(tmp_path, host):
    download(tmp_path, File(url=host.put("/x", CONTENT), sha256=sha256_of(CONTENT)))

    assert not (tmp_path / "downloads.lock").exists()


def test_a_later_download_does_not_overwrite_the_recorded_sum_of_a_url(tmp_path):
    """Two processes may download a URL at the same time; the first recorded SHA-256 is valid."""
    url = "http://a"
    path = tmp_path / "file"

    for content in (CONTENT, NEW_CONTENT):
        path.write_bytes(content)
        source = downloads_in(tmp_path)
        # The state of a process after the download, before it records the sum.
        source.unrecorded[url] = path
        source.record()

    assert read_lock(tmp_path) == {url: {"sha256": sha256_of(CONTENT), "size": len(CONTENT)}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param('{\n<<<<<<< ours\n  "http://a": {}\n}\n', "line 2", id="merge conflict"),
        pytest.param("[]", "[] is not a mapping", id="list"),
        pytest.param('{"http://a": 1}', "damaged", id="number as entry"),
        pytest.param(
            '{"http://a": {"size": 1}}', "field http://a.sha256 is missing", id="entry without sum"
        ),
    ],
)
def test_a_damaged_lock_is_refused(tmp_path, content, problem):
    """Without the recorded SHA-256 sums, a file that changed on its host would go unnoticed."""
    lock = tmp_path / "downloads.lock"
    lock.write_text(content)

    message = download_error(tmp_path, File(url="http://a"))

    assert message.startswith(f"{lock} is damaged: ")
    assert problem in message


def empty_store(tmp_path):
    """Remove downloaded files, as on another machine, where only downloads.lock is, from Git."""
    for file in complete_files(tmp_path):
        file.unlink()


def test_a_file_that_differs_from_the_lock_is_refused_each_time(tmp_path, host):
    """The host changes the file after its SHA-256 was recorded: results would change, too."""
    url = host.put("/x", CONTENT)
    download(tmp_path, File(url=url))
    empty_store(tmp_path)
    host.put("/x", NEW_CONTENT)

    # A refused file must not be kept, or a second attempt would find it in the store.
    for _ in range(2):
        message = download_error(tmp_path, File(url=url))
        assert sha256_of(CONTENT) in message
        assert sha256_of(NEW_CONTENT) in message
        assert message.endswith(
            f"remove the entry {url} from {tmp_path / 'downloads.lock'} and all files in "
            "work/downloads"
        )
        assert files_in_store(tmp_path) == []


def test_a_changed_file_is_accepted_once_its_entry_was_removed_from_the_lock(tmp_path, host):
    """Removing the entry is how a user accepts the new version."""
    url = host.put("/x", CONTENT)
    download(tmp_path, File(url=url))
    empty_store(tmp_path)
    host.put("/x", NEW_CONTENT)
    download_error(tmp_path, File(url=url))  # The new version is refused.

    (tmp_path / "downloads.lock").write_text("{}")
    content = download(tmp_path, File(url=url))

    assert content == NEW_CONTENT
    assert read_lock(tmp_path)[url]["sha256"] == sha256_of(NEW_CONTENT)


def test_a_stored_file_that_differs_from_the_lock_is_downloaded_again(tmp_path, host):
    """A lock from another machine records the new version; the store still has the old one."""
    url = host.put("/x", CONTENT)
    download(tmp_path, File(url=url), has_lock=False)
    host.put("/x", NEW_CONTENT)
    lock = {url: {"sha256": sha256_of(NEW_CONTENT), "size": len(NEW_CONTENT)}}
    (tmp_path / "downloads.lock").write_text(json.dumps(lock))

    content = download(tmp_path, File(url=url))

    assert content == NEW_CONTENT


@pytest.fixture
def locked_url(tmp_path, host):
    """The URL of a file whose sum is in downloads.lock, but which is not in the store."""
    url = host.put("/x", CONTENT)
    download(tmp_path, File(url=url))
    empty_store(tmp_path)
    return url


def test_a_copy_in_a_mirror_that_differs_from_the_lock_is_refused(tmp_path, locked_url):
    """The lock records the SHA-256 of CONTENT for `locked_url`, which is at 127.0.0.1/x."""
    wrong_copy = put_in_mirror(tmp_path, "127.0.0.1/x", NEW_CONTENT)

    message = download_error(tmp_path, File(url=locked_url), mirror=str(tmp_path / "mirror"))

    assert str(wrong_copy) in message
    assert sha256_of(CONTENT) in message
    assert f"remove the entry {locked_url}" in message


def test_a_file_from_another_url_must_have_the_locked_sum(tmp_path, host, locked_url):
    """The lock records the SHA-256 of CONTENT for `locked_url`, which now answers with 404."""
    host.respond_with("/x", [status(404), status(404)])
    wrong_url = host.put("/wrong", NEW_CONTENT)
    right_url = host.put("/right", CONTENT)

    message = download_error(tmp_path, File(url=locked_url, mirrors=(wrong_url,)))
    content = download(tmp_path, File(url=locked_url, mirrors=(wrong_url, right_url)))

    assert sha256_of(NEW_CONTENT) in message
    assert content == CONTENT


def test_a_file_from_a_mirror_is_locked_under_its_url(tmp_path):
    """So the lock is the same with and without a mirror."""
    put_in_mirror(tmp_path, "data.invalid/x", CONTENT)
    url = "https://data.invalid/x"

    download(tmp_path, File(url=url), mirror=str(tmp_path / "mirror"))

    assert read_lock(tmp_path) == {url: {"sha256": sha256_of(CONTENT), "size": len(CONTENT)}}


def test_environment_variables_set_the_mirror_and_the_folder_of_the_project(tmp_path, monkeypatch):
    """BLEUPRINT_MIRROR is the mirror, DVC_ROOT the project: downloads and lock are kept there."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setenv("BLEUPRINT_MIRROR", "/copies")

    downloads = downloads_of_environment()

    root = Path(os.path.realpath(tmp_path))
    assert downloads == Downloads("/copies", root / "work/downloads", root / "downloads.lock")
