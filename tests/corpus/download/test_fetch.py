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
from downloads import BODY, HALF, NEW, get, kept, left, locked, place, ranges, refused, sum_of
from servers import Proxy, cut, running, stall, status

pytestmark = pytest.mark.usefixtures("pauses", "no_proxies")

# Other places


def test_the_next_place_is_tried_when_one_fails(tmp_path, host, capfd):
    wrong, right = host.put("/wrong", NEW), host.put("/right", BODY)
    places = [host.url("/no"), "http://127.0.0.1:1/x", wrong, right, host.url("/never")]
    file = File(url=places[0], mirrors=tuple(places[1:]), sha256=sum_of(BODY))
    assert get(tmp_path, file) == BODY
    assert not host.asked("/never")
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())
    lines = capfd.readouterr().err.splitlines()
    told = [line for line in lines if "; trying http" in line]
    assert [line.split(": ")[0] for line in told] == places[:3]
    assert get(tmp_path, file) == BODY and len(host.asked("/right")) == 1


def test_a_place_that_fails_midway_is_gone_on_from_at_the_next(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    first, second = host.put("/x", BODY), host.put("/y", BODY)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=first, mirrors=(second,), sha256=sum_of(BODY))) == BODY
    assert ranges(host, "/y") == [f"bytes={HALF}-"]


def test_pieces_of_two_places_are_not_joined_without_a_sum(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    first, second = host.put("/x", BODY), host.put("/y", NEW)
    host.script["/x"] = [cut(HALF)]
    assert get(tmp_path, File(url=first, mirrors=(second,))) == NEW
    assert ranges(host, "/y") == [None]


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


def test_a_file_that_a_temporary_run_lacks(tmp_path, monkeypatch):
    """Git ignores inputs/, and dvc exp run --temp copies what git and DVC track."""
    monkeypatch.setenv("DVC_ROOT", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert refused(tmp_path, File(path="inputs/no")) == (
        "inputs/no: no such file in this temporary run, which has what git or DVC tracks: "
        "dvc add inputs/no"
    )


# Proxies


def test_a_proxy_of_the_environment_is_used(tmp_path, host, monkeypatch):
    host.put("/v1/x", BODY)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert get(tmp_path, File(url="http://data.invalid/v1/x")) == BODY
    assert proxy.asked == ["http://data.invalid/v1/x"]


def test_https_goes_through_a_tunnel_of_the_proxy(tmp_path, host, monkeypatch):
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        message = refused(tmp_path, File(url="https://data.invalid/x"))
    assert proxy.asked == ["data.invalid:443"]
    assert "Tunnel connection failed: 403" in message


def test_no_proxy_is_used_for_a_host_that_is_excepted(tmp_path, host, monkeypatch):
    url = host.put("/x", BODY)
    with running(Proxy(host)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert get(tmp_path, File(url=url)) == BODY
    assert proxy.asked == []


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
    file = File(url=urls[0], mirrors=tuple(urls[1:]), sha256=sum_of(BODY))
    assert fetch(file, place(tmp_path, mirror=str(tmp_path / "mirror"))) == copy
    assert capfd.readouterr().err.count("\n") == 2
    copy.unlink()
    message = refused(tmp_path, file, mirror=str(tmp_path / "mirror"))
    assert "a.invalid/x" in message and "c.invalid/x" in message and "BLEUPRINT_MIRROR" in message
    assert str(tmp_path / "mirror/b.invalid/x") in message and sum_of(NEW) in message


def test_a_mirror_may_be_a_url(tmp_path, host):
    host.put("/copies/b.invalid/v1/x", BODY)
    file = File(url="https://a.invalid/v1/x", mirrors=("https://b.invalid/v1/x",))
    assert get(tmp_path, file, mirror=host.url("/copies/")) == BODY
    assert [seen.path for seen in host.seen] == ["/copies/a.invalid/v1/x", "/copies/b.invalid/v1/x"]
    assert kept(tmp_path)[0].name == sum_of(file.url.encode())


@pytest.mark.parametrize("path", ["../x", "%2e%2e/x", "a/..%2fx"])
def test_an_address_cannot_leave_the_mirror(tmp_path, path):
    message = refused(tmp_path, File(url=f"https://data.invalid/{path}"), mirror=str(tmp_path))
    assert "'..' in the path" in message


# downloads.lock


def test_processes_that_record_at_once_lose_no_entry(tmp_path):
    (tmp_path / "file").write_bytes(BODY)
    code = """if True:
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
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen([*command, name], stdin=subprocess.PIPE) for name in "abc"]
    for process in started:
        process.stdin.close()
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(locked(tmp_path)) == 30
    assert list(locked(tmp_path)) == sorted(locked(tmp_path))


def test_a_download_does_not_wait_for_that_of_another_file(tmp_path, host):
    """And the entry that one records while the other runs is there at the end."""
    over = threading.Event()
    slow, fast = host.put("/slow", BODY), host.put("/fast", NEW)
    host.script["/slow"] = [stall(HALF, over)]
    threads = [
        threading.Thread(target=get, args=(tmp_path, File(url=url)), daemon=True)
        for url in (slow, fast)
    ]
    try:
        threads[0].start()
        wait_until(lambda: any(seen.sent for seen in host.asked("/slow")))
        threads[1].start()
        threads[1].join(60)
        assert not threads[1].is_alive()
        assert threads[0].is_alive()
        assert list(locked(tmp_path)) == [fast]
    finally:
        over.set()
    threads[0].join(60)
    assert {url: each["sha256"] for url, each in locked(tmp_path).items()} == {
        fast: sum_of(NEW),
        slow: sum_of(BODY),
    }


def wait_until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_file_with_a_sha256_in_the_settings_is_not_locked(tmp_path, host):
    get(tmp_path, File(url=host.put("/x", BODY), sha256=sum_of(BODY)))
    assert not (tmp_path / "downloads.lock").exists()


def test_a_recorded_sum_stays_when_the_file_is_recorded_again(tmp_path):
    """As when another process has recorded the URL in the meantime."""
    url = "http://a"
    file = tmp_path / "file"
    for body in (BODY, NEW):
        file.write_bytes(body)
        source = place(tmp_path)
        source.unrecorded[url] = file
        source.record()
    assert locked(tmp_path) == {url: {"sha256": sum_of(BODY), "size": len(BODY)}}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{\n<<<<<<< ours\n  "http://a": {}\n}\n', "line 2"),
        ("[]", "[] is not a mapping"),
        ('{"http://a": 1}', "damaged"),
        ('{"http://a": {"size": 1}}', "field http://a.sha256 is missing"),
    ],
)
def test_a_damaged_lock_is_refused(tmp_path, content, place):
    lock = tmp_path / "downloads.lock"
    lock.write_text(content)
    message = refused(tmp_path, File(url="http://a"))
    assert message.startswith(f"{lock} is damaged: ") and place in message


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


def test_the_lock_holds_for_mirrors_and_other_places(tmp_path, host):
    url = host.put("/x", BODY)
    get(tmp_path, File(url=url))
    empty_store(tmp_path)
    copy = put_in_mirror(tmp_path, "127.0.0.1/x", NEW)
    message = refused(tmp_path, File(url=url), mirror=str(tmp_path / "mirror"))
    assert str(copy) in message and sum_of(BODY) in message and f"remove the entry {url}" in message
    host.script["/x"] = [status(404)] * 2
    wrong, right = host.put("/wrong", NEW), host.put("/right", BODY)
    assert sum_of(NEW) in refused(tmp_path, File(url=url, mirrors=(wrong,)))
    assert get(tmp_path, File(url=url, mirrors=(wrong, right))) == BODY


def test_a_download_without_a_sum_is_locked_under_its_address_also_from_a_mirror(tmp_path):
    put_in_mirror(tmp_path, "data.invalid/x", BODY)
    url = "https://data.invalid/x"
    get(tmp_path, File(url=url), mirror=str(tmp_path / "mirror"))
    assert locked(tmp_path) == {url: {"sha256": sum_of(BODY), "size": len(BODY)}}


def test_the_environment_says_where_files_come_from_and_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.setenv("BLEUPRINT_MIRROR", "/copies")
    root = Path(os.path.realpath(tmp_path))
    assert downloads_of_environment() == Downloads(
        "/copies", root / "work/downloads", root / "downloads.lock"
    )
