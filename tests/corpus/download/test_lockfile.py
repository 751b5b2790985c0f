import hashlib
import json
import subprocess
import sys
import threading

import pytest
from filelock import FileLock

from bleuprint.corpus.download.lockfile import Sum, forget, read_lock, record
from bleuprint.runtime.errors import UserError

ZEROS, ONES = "0" * 64, "1" * 64


def sum_of(body):
    return Sum(hashlib.sha256(body).hexdigest(), len(body))


def put(tmp_path, body):
    path = tmp_path / "file"
    path.write_bytes(body)
    return path


def refused(lock):
    with pytest.raises(UserError) as error:
        read_lock(lock)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_no_lock_records_nothing(tmp_path):
    assert read_lock(tmp_path / "downloads.lock") == {}


def test_what_is_recorded_is_read_again_and_lies_sorted(tmp_path):
    lock, guard = tmp_path / "downloads.lock", tmp_path / "guard"
    for url, body in (("http://z", b"last"), ("http://a", b"first!"), ("http://k", b"")):
        record(lock, url, put(tmp_path, body), guard)
    assert read_lock(lock) == {
        "http://a": sum_of(b"first!"),
        "http://k": sum_of(b""),
        "http://z": sum_of(b"last"),
    }
    text = lock.read_text()
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_the_lock_does_not_depend_on_the_order_of_downloads(tmp_path):
    locks = [tmp_path / "forth", tmp_path / "back"]
    urls = ["http://b", "http://c", "http://a"]
    for lock, order in zip(locks, (urls, urls[::-1]), strict=True):
        for url in order:
            record(lock, url, put(tmp_path, url.encode()), tmp_path / "guard")
    assert locks[0].read_bytes() == locks[1].read_bytes()


def test_what_is_recorded_stays(tmp_path):
    lock, guard = tmp_path / "downloads.lock", tmp_path / "guard"
    record(lock, "http://a", put(tmp_path, b"old"), guard)
    record(lock, "http://a", put(tmp_path, b"new"), guard)
    assert read_lock(lock) == {"http://a": sum_of(b"old")}


def test_one_entry_is_forgotten_and_the_others_stay(tmp_path):
    lock, guard = tmp_path / "downloads.lock", tmp_path / "guard"
    for url in ("http://a", "http://b", "http://c"):
        record(lock, url, put(tmp_path, url.encode()), guard)
    forget(lock, "http://b", guard)
    assert read_lock(lock) == {url: sum_of(url.encode()) for url in ("http://a", "http://c")}
    before = lock.read_bytes()
    forget(lock, "http://b", guard)
    assert lock.read_bytes() == before


def test_who_forgets_waits_for_who_records(tmp_path):
    lock, guard = tmp_path / "downloads.lock", tmp_path / "guard"
    record(lock, "http://a", put(tmp_path, b"body"), guard)
    forgetting = threading.Thread(target=forget, args=(lock, "http://a", guard))
    with FileLock(guard):
        forgetting.start()
        forgetting.join(0.3)
        assert read_lock(lock) == {"http://a": sum_of(b"body")}
    forgetting.join()
    assert read_lock(lock) == {}


def test_processes_that_record_at_once_lose_no_entry(tmp_path):
    put(tmp_path, b"body")
    code = """if True:
        import sys
        from pathlib import Path
        from bleuprint.corpus.download.lockfile import record
        folder, name = Path(sys.argv[1]), sys.argv[2]
        sys.stdin.read()
        for i in range(10):
            record(folder / "lock", f"http://{name}/{i}", folder / "file", folder / "guard")
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen([*command, name], stdin=subprocess.PIPE) for name in "abc"]
    for process in started:
        process.stdin.close()
    assert [process.wait() for process in started] == [0, 0, 0]
    assert len(read_lock(tmp_path / "lock")) == 30


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{\n<<<<<<< ours\n  "http://a": {}\n}\n', "line 2"),
        (b'{"http://a\xdf": 1}', "position 10"),
        (b"[]", "no JSON object"),
    ],
    ids=["conflict marks", "not UTF-8", "a list"],
)
def test_a_damaged_lock_is_refused(tmp_path, content, place):
    lock = tmp_path / "downloads.lock"
    lock.write_bytes(content)
    message = refused(lock)
    assert message.startswith(f"{lock}: damaged: ") and place in message


@pytest.mark.parametrize(
    "entry",
    [
        ZEROS,
        {"sha256": ZEROS},
        {"sha256": ZEROS, "size": "3"},
        {"sha256": ZEROS, "size": True},
        {"sha256": ZEROS, "size": 3, "date": "today"},
    ],
)
def test_an_entry_of_another_form_is_refused_with_its_url(tmp_path, entry):
    lock = tmp_path / "downloads.lock"
    lock.write_text(json.dumps({"http://a": {"sha256": ONES, "size": 3}, "http://b": entry}))
    message = refused(lock)
    assert message.startswith(f"{lock}:")


def test_an_address_that_a_file_was_redirected_to_is_kept_without_secrets(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    lock, address = (
        tmp_path / "downloads.lock",
        "https://me:hu/sh@cdn.example/f.gz?X-Amz-Signature=hush",
    )
    record(lock, "https://host.example/f.gz", tmp_path / "file", tmp_path / "guard", address)
    assert "hush" not in lock.read_text() and "hu/sh" not in lock.read_text()
    (known,) = read_lock(lock).values()
    assert known.redirected_to == "https://***@cdn.example/f.gz"
