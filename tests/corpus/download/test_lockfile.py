import hashlib
import json
import subprocess
import sys

import pytest

from bleuprint.corpus.download.lockfile import Sum, read_lock, record
from bleuprint.runtime.errors import UserError

ZEROS = "0" * 64


def test_what_is_recorded_is_read_again_lies_sorted_and_stays(tmp_path):
    lock, guard, file = (tmp_path / name for name in ("downloads.lock", "guard", "file"))
    assert read_lock(lock) == {}
    for url, body in (("http://z", b"last"), ("http://a", b"first!"), ("http://z", b"new")):
        file.write_bytes(body)
        record(lock, {url: file}, guard)
    sums = {"http://a": b"first!", "http://z": b"last"}
    assert read_lock(lock) == {
        url: Sum(hashlib.sha256(body).hexdigest(), len(body)) for url, body in sums.items()
    }
    text = lock.read_text()
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_processes_that_record_at_once_lose_no_entry(tmp_path):
    (tmp_path / "file").write_bytes(b"body")
    code = """if True:
        import sys
        from pathlib import Path
        from bleuprint.corpus.download.lockfile import record
        folder, name = Path(sys.argv[1]), sys.argv[2]
        sys.stdin.read()
        for i in range(10):
            record(folder / "lock", {f"http://{name}/{i}": folder / "file"}, folder / "guard")
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
        (b'{"http://a": 1}', ""),
        (f'{{"http://a": {{"sha256": "{ZEROS}"}}}}'.encode(), "size"),
        (f'{{"http://a": {{"sha256": "{ZEROS}", "size": "3"}}}}'.encode(), "size"),
    ],
)
def test_a_damaged_lock_is_refused(tmp_path, content, place):
    lock = tmp_path / "downloads.lock"
    lock.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_lock(lock)
    message = str(error.value)
    assert message.startswith(f"{lock}:") and place in message and "\n" not in message
